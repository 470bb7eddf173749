package demo

import "syscall"

// apart keeps Ctrl-C from reaching the parts: the demo gets it, and ends them one after the other.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
