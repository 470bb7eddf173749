//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyReload sends SIGHUP to c, also under nohup: SIGHUP never ends a daemon, so there is nothing to ignore.
func notifyReload(c chan<- os.Signal) { signal.Notify(c, syscall.SIGHUP) }
