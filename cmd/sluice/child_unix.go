//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// relayed are the signals that mean the child. SIGPIPE is among them only so that a message
// that nobody reads does not kill this process before its child.
var relayed = []os.Signal{
	syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
	syscall.SIGWINCH, syscall.SIGTSTP, syscall.SIGCONT, syscall.SIGPIPE,
}

// shellHint is how a shell's own command is run.
const shellHint = "sh -c '...'"

// letGo has nothing to do: where a child can learn of its parent's death, the system tells it.
func letGo() {}

func asksToEnd(sig os.Signal) bool {
	return sig == syscall.SIGINT || sig == syscall.SIGTERM || sig == syscall.SIGHUP || sig == syscall.SIGQUIT
}

// reachedChild tells that a signal need not be passed on. What a terminal sends goes to all
// processes in its foreground; a second Ctrl-C would mean something else to many programs.
func reachedChild(sig os.Signal) bool {
	switch sig {
	case syscall.SIGPIPE:
		return true // it is about our own output
	case syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTSTP, syscall.SIGWINCH:
		return inForeground()
	default:
		return false
	}
}

// inForeground reports whether the terminal that controls this process, if there is one, sends it
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

// waitFor waits for the end of a child. Where it stops, by Ctrl-Z or of its own will, this process
// stops as well: the shell looks at this one, and would wait for it.
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
			// Reading the terminal from the background (SIGTTIN) stops all processes by itself.
			if s := status.StopSignal(); (s == syscall.SIGTSTP || s == syscall.SIGSTOP) && hasTerminal() {
				stopSelf()
			}
		}
	}
}
