//go:build !linux

package main

import "syscall"

func dieWithUs() *syscall.SysProcAttr { return nil }

// limitProcess does nothing, because only Linux lets one process limit another.
func limitProcess(int, int) (undo func(), err error) { return func() {}, nil }
