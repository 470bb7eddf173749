package main

import "syscall"

// childAttr ends the child if this process is killed. Otherwise the child would go on without its slot, and its
// requests would not be held.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
