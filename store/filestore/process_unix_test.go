//go:build linux || darwin

package filestore_test

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// apart puts a child into a group of its own, so that it can be killed with its children.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func (c *child) killAll() { _ = syscall.Kill(-c.cmd.Process.Pid, syscall.SIGKILL) }

func killSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }

// killed reports whether a process was ended by SIGKILL.
func killed(s *os.ProcessState) bool {
	w, ok := s.Sys().(syscall.WaitStatus)
	return ok && w.Signaled() && w.Signal() == syscall.SIGKILL
}

func (c *child) signal(s syscall.Signal) {
	if err := c.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		c.t.Errorf("signal %v: %v", s, err)
	}
}

// stop stops the process, and waits until it has: a signal takes a moment to get through.
func (c *child) stop() {
	c.t.Helper()
	c.signal(syscall.SIGSTOP)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(c.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || !status.Stopped() {
			c.t.Fatalf("it did not stop: %v, %v", status, err)
		}
		return
	}
}

// goOn lets a process go on that was stopped.
func (c *child) goOn() { c.signal(syscall.SIGCONT) }

// dump ends a process, which says where it is.
func (c *child) dump() { c.signal(syscall.SIGQUIT) }

// burnt is what this process has used of the processor.
func burnt() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		giveUp("%v", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// holdBell makes a bell, and holds it as a process would that is alive.
func holdBell(t *testing.T, path string) {
	t.Helper()
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
}
