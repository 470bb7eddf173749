package filestore

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// bootMicros returns the time since boot, including sleep, in microseconds.
func bootMicros() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("filestore: the system has no monotonic clock: " + err.Error()) // macOS has it since 10.12
	}
	return t.Nano() / 1000
}

func bootID() (id [16]byte, err error) {
	text, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return id, err
	}
	n := 0
	for _, c := range []byte(text) { // a UUID: 32 digits
		if c != '-' && n < 2*len(id) {
			id[n/2] = id[n/2]<<4 | c&0xf ^ c>>4
			n++
		}
	}
	return id, nil
}

// flockNow takes the lock of an open file if it is free.
func flockNow(fd, how int) error {
	for {
		if err := unix.Flock(fd, how|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

func unlock(fd int) { _ = unix.Flock(fd, unix.LOCK_UN) } // unlocking an open file cannot fail

// allocate makes a file size bytes long and allocates its disk space.
func allocate(f *os.File, from, size int64) error {
	fd := int(f.Fd())
	room := &unix.Fstore_t{Flags: unix.F_ALLOCATEALL, Posmode: unix.F_PEOFPOSMODE, Length: size - from}
	if err := unix.FcntlFstore(uintptr(fd), unix.F_PREALLOCATE, room); err != nil {
		if errors.Is(err, unix.ENOTSUP) {
			return fill(fd, from, size)
		}
		return err
	}
	return unix.Ftruncate(fd, size)
}

// onNetwork reports whether a path is on a network file system.
func onNetwork(path string) (bool, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		return false, err
	}
	return st.Flags&unix.MNT_LOCAL == 0, nil
}
