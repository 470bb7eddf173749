//go:build linux || darwin

package filestore

import (
	"errors"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// page is what files are laid out in: the largest page size that is common.
const page = 16 << 10

// reach is how much of a file is mapped, whatever its size: what lies beyond its end becomes
// usable when the file grows, and nothing has to be mapped again.
const reach = min(4<<30, math.MaxInt/8)

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

// ensure makes the file at least size bytes long, with room for them on the disk.
func (m *mapped) ensure(size int64) error {
	if size <= m.size {
		return nil
	}
	if err := m.look(); err != nil || size <= m.size { // another process may have seen to it
		return err
	}
	if size > int64(len(m.mem)) {
		return unix.ENOSPC
	}
	if err := allocate(int(m.file.Fd()), m.size, size); err != nil {
		return os.NewSyscallError("fallocate", err)
	}
	m.size = size
	return nil
}

// look finds out how long the file is.
func (m *mapped) look() error {
	info, err := m.file.Stat()
	if err == nil {
		m.size = info.Size()
	}
	return err
}

func (m *mapped) close() error {
	return errors.Join(unix.Munmap(m.mem), m.file.Close())
}

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
