package demo

import "syscall"

// apart keeps Ctrl-C from reaching the parts. The demo receives it and stops the parts itself.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
