package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"
)

// apart keeps the terminal's signals from the daemon, which the driver stops itself. It also ends the daemon if the
// driver is killed.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// memory returns a process's own memory, and the memory of mapped files, which the system reclaims when it needs room.
func memory(pid int) (own, files int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, err
	}
	own, err = field(text, "RssAnon:")
	if err != nil {
		return 0, 0, err
	}
	files, err = field(text, "RssFile:")
	return own << 10, files << 10, err
}

// threads returns the number of threads of a process.
func threads(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	n, _ := field(text, "Threads:")
	return n
}

func field(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(line, []byte(name)); ok {
			return strconv.ParseInt(string(bytes.Fields(rest)[0]), 10, 64)
		}
	}
	return 0, fmt.Errorf("there is no %s", name)
}

// tick is the unit of times in /proc/PID/stat.
const tick = 10 * time.Millisecond

// cpu returns the processor time that a process has used.
func cpu(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[11]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * tick
}
