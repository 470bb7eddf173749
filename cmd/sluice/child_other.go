//go:build !linux && !windows

package main

import "syscall"

// childAttr returns nil where a child cannot be told of its parent's death.
func childAttr() *syscall.SysProcAttr { return nil }
