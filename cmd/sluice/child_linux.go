package main

import "syscall"

// childAttr ends a child whose gate was killed: it would go on without its slot, and nobody
// would hold its requests.
func childAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM} }
