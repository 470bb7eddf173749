//go:build linux || darwin

package filestore

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// A file is mapped once, beyond its end: it grows without another call.
const remaps = false

// cheapClock: to ask the system for the time since its start takes a call.
const cheapClock = false

// descriptor is an open file, as the system knows it.
type descriptor = int

func descriptorOf(f *os.File) descriptor { return int(f.Fd()) }

// errTaken tells that another open file has the lock.
const errTaken = unix.EWOULDBLOCK

// transient are errors about something that has run out, and comes back.
var transient = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR}

func duplicate(fd descriptor) (descriptor, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
}

func closeDescriptor(fd descriptor) { _ = unix.Close(fd) }

// tryLock takes the lock of an open file for it alone, if that is free.
func tryLock(fd descriptor) error { return flockNow(fd, unix.LOCK_EX) }

// waitLock waits for the lock of an open file.
func waitLock(fd descriptor) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// shareLock takes the lock of an open file together with others, and reports whether there are none.
func shareLock(fd descriptor) (alone bool, err error) {
	alone = tryLock(fd) == nil
	return alone, flockNow(fd, unix.LOCK_SH)
}

// mapped is a file in memory.
type mapped struct {
	file *os.File
	mem  []byte
	size int64 // up to which there is room on the disk, as far as this process knows
}

func mapFile(f *os.File, length int64) (*mapped, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &mapped{file: f, mem: mem, size: info.Size()}, nil
}

func (m *mapped) unmap() error { return unix.Munmap(m.mem) }

// cover notes that the file has grown.
func (m *mapped) cover(size int64) error {
	m.size = size
	return nil
}

// granular returns the size that a file is made to have room for size bytes.
func granular(size int64) int64 { return size }

// fill writes zeros where the file system cannot set room aside.
func fill(fd int, from, size int64) error {
	zeros := make([]byte, 1<<20)
	for from < size {
		n, err := unix.Pwrite(fd, zeros[:min(int64(len(zeros)), size-from)], from)
		if err != nil {
			return err
		}
		from += int64(n)
	}
	return nil
}

// shorten gives room on the disk back that nobody uses any more.
func shorten(f *os.File, size int64) error { return f.Truncate(size) }

// anonymous returns memory outside the heap. What is not touched takes no room.
func anonymous(size int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return mem, os.NewSyscallError("mmap", err)
}

func forget(mem []byte) { _ = unix.Munmap(mem) }

// readStart reads the beginning of a file that may be waited for.
func readStart(f *os.File, buf []byte) (int, error) { return f.ReadAt(buf, 0) }

// movePool moves the files of a pool, which may be open and mapped.
func movePool(dir, aside string) error { return os.Rename(dir, aside) }

// checkOwner refuses what belongs to somebody else, and what others can read.
func checkOwner(f *os.File, path string) error {
	info, err := f.Stat()
	if err != nil {
		return failed("open", path, err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !info.Mode().IsRegular() {
		return failed("open", path, errForeign)
	} else if ok && int(st.Uid) != os.Geteuid() {
		return failed("open", path, errOwner)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return failed("open", path, f.Chmod(0o600))
	}
	return nil
}
