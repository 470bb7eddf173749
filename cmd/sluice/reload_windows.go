package main

import "os"

// notifyReload does nothing: there is no signal for that. POST /-/reload is.
func notifyReload(chan<- os.Signal) {}
