package main

import (
	"os"
	"syscall"
)

// relayed are caught so that this process does not end before its child. The console sends
// them to both.
var relayed = []os.Signal{os.Interrupt, syscall.SIGTERM}

func asksToEnd(os.Signal) bool { return true }

func reachedChild(os.Signal) bool { return true }

func alone(os.Signal) {}

func waitFor(p *os.Process) (int, error) {
	state, err := p.Wait()
	if err != nil {
		return 0, err
	}
	return state.ExitCode(), nil
}
