//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyReload has c told when somebody asks for a reload by a signal.
func notifyReload(c chan<- os.Signal) { signal.Notify(c, syscall.SIGHUP) }
