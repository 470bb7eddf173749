package main

import "os"

// notifyReload does nothing: Windows has no such signal. Use POST /-/reload.
func notifyReload(chan<- os.Signal) {}
