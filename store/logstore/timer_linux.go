package logstore

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// kernelTimer is a timer of the kernel. Those of Go fire up to a millisecond late in a process that has nothing else to do, because
// it then waits in whole milliseconds. A limit of 100/s would lose 5% by that.
type kernelTimer struct {
	fd   int
	file *os.File // of fd
}

// preciseAfterFunc is [afterFunc] with a timer of the kernel, if there is one more.
func preciseAfterFunc(d time.Duration, f func()) timer {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return afterFunc(d, f)
	}
	t := &kernelTimer{fd, os.NewFile(uintptr(fd), "timer")}
	go func() {
		for fired := make([]byte, 8); ; { // until Stop
			if _, err := t.file.Read(fired); err != nil {
				return
			}
			go f() // it may be reset meanwhile
		}
	}()
	t.Reset(d)
	return t
}

func (t *kernelTimer) Reset(d time.Duration) bool {
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(max(int64(d), 1))} // zero would stop it
	return unix.TimerfdSettime(t.fd, 0, &at, nil) == nil
}

// Stop ends the timer for good. Reset must not follow.
func (t *kernelTimer) Stop() bool { return t.file.Close() == nil }
