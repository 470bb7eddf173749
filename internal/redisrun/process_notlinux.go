//go:build unix && !linux

package redisrun

import "syscall"

// dieWithParent returns nil: other systems have no such option.
func dieWithParent() *syscall.SysProcAttr { return nil }
