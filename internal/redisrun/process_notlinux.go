//go:build unix && !linux

package redisrun

import "syscall"

// dieWithParent is a wish that other systems have no means for.
func dieWithParent() *syscall.SysProcAttr { return nil }
