package main

import (
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithUs makes a child process end when this process ends.
func dieWithUs() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// limitProcess limits a resource of a process to what it uses now. undo restores the previous limit.
func limitProcess(pid, resource int) (undo func(), err error) {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, resource, nil, &old); err != nil {
		return nil, err
	}
	low := unix.Rlimit{Max: old.Max}
	switch resource {
	case unix.RLIMIT_NOFILE:
		open, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
		if err != nil {
			return nil, err
		}
		low.Cur = uint64(len(open))
	case unix.RLIMIT_AS:
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
		if err != nil {
			return nil, err
		}
		pages, err := strconv.ParseUint(strings.Fields(string(text))[0], 10, 64)
		if err != nil {
			return nil, err
		}
		low.Cur = pages * uint64(os.Getpagesize())
	}
	if err := unix.Prlimit(pid, resource, &low, nil); err != nil {
		return nil, err
	}
	return func() { _ = unix.Prlimit(pid, resource, &old, nil) }, nil // the process may have ended
}
