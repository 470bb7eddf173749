//go:build linux || darwin

package filestore

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// remaps is false: a file is mapped once, beyond its end, and grows without another call.
const remaps = false

// cheapClock is false: reading the time since boot takes a system call.
const cheapClock = false

// descriptor is the system's handle of an open file.
type descriptor = int

func descriptorOf(f *os.File) descriptor { return int(f.Fd()) }

// errTaken means that another open file has the lock.
const errTaken = unix.EWOULDBLOCK

// transient lists errors about resources that have run out for now.
var transient = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN, syscall.EINTR}

func duplicate(fd descriptor) (descriptor, error) {
	return unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
}

func closeDescriptor(fd descriptor) { _ = unix.Close(fd) }

// tryLock takes the exclusive lock of an open file if it is free.
func tryLock(fd descriptor) error { return flockNow(fd, unix.LOCK_EX) }

// waitLock waits for the lock of an open file.
func waitLock(fd descriptor) error {
	for {
		if err := unix.Flock(fd, unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// shareLock takes the shared lock of an open file, and reports whether no other process has it.
func shareLock(fd descriptor) (alone bool, err error) {
	alone = tryLock(fd) == nil
	return alone, flockNow(fd, unix.LOCK_SH)
}

// mapped is a memory-mapped file.
type mapped struct {
	file *os.File
	mem  []byte
	size int64 // bytes allocated on disk, as far as this process knows
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

// cover records that the file has grown.
func (m *mapped) cover(size int64) error {
	m.size = size
	return nil
}

// granular returns the file size to allocate for size bytes.
func granular(size int64) int64 { return size }

// fill writes zeros, for file systems that cannot reserve space.
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

// shorten returns unused disk space.
func shorten(f *os.File, size int64) error { return f.Truncate(size) }

// anonymous returns memory outside the heap. Untouched pages take no memory.
func anonymous(size int64) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	return mem, os.NewSyscallError("mmap", err)
}

func forget(mem []byte) { _ = unix.Munmap(mem) }

// readStart reads the beginning of a file, even while another thread waits for its lock.
func readStart(f *os.File, buf []byte) (int, error) { return f.ReadAt(buf, 0) }

// movePool moves the files of a pool, which may be open and mapped.
func movePool(dir, aside string) error { return os.Rename(dir, aside) }

// checkOwner rejects files of other users. It removes the access of other users from its own files.
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
