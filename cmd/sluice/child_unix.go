//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// relayed lists the signals that are passed to the child. SIGPIPE is included so that unread output does not kill this
// process before its child.
var relayed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGPIPE,
}

// shellHint shows how to run a command of the shell itself.
const shellHint = "sh -c '...'"

// letGo does nothing: where a child can learn of its parent's death, the system tells it.
func letGo() {}

func asksToEnd(sig os.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// reachedChild reports whether the child has got a signal without our help. A terminal sends signals to all processes
// in its foreground, and many programs treat a second Ctrl-C differently.
func reachedChild(sig os.Signal) bool {
	switch sig {
	case syscall.SIGPIPE:
		return true // it concerns our own output
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGWINCH:
		return inForeground()
	default:
		return false
	}
}

// inForeground reports whether this process is in the foreground of its controlling terminal, which then sends it
// signals.
func inForeground() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer func() { _ = tty.Close() }()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == syscall.Getpgrp()
}

func hasTerminal() bool {
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	return tty.Close() == nil
}

// alone does what a signal would do to a process without a child.
func alone(sig os.Signal) {
	if sig == syscall.SIGTSTP {
		stopSelf()
	}
}

// stopSelf stops this process until it is continued.
func stopSelf() { _ = syscall.Kill(syscall.Getpid(), syscall.SIGSTOP) }

// waitFor waits for the end of a child. If the child stops, by Ctrl-Z or by itself, this process stops too: the shell
// watches this process, and would wait for it.
func waitFor(p *os.Process) (int, error) {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return 0, err
		case status.Exited():
			return status.ExitStatus(), nil
		case status.Signaled():
			return exitSignal + int(status.Signal()), nil
		case status.Stopped():
			// Reading the terminal from the background (SIGTTIN) stops all processes anyway.
			if s := status.StopSignal(); (s == syscall.SIGTSTP || s == syscall.SIGSTOP) && hasTerminal() {
				stopSelf()
			}
		}
	}
}
