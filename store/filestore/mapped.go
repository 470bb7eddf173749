//go:build linux || darwin || windows

package filestore

import (
	"errors"
	"math"
	"os"

	"github.com/sluicehq/sluice/internal/flat"
)

// page is what files are laid out in: the largest page size that is common.
const page = 16 << 10

// reach is how much of a file is mapped, whatever its size: what lies beyond its end becomes
// usable when the file grows, and nothing has to be mapped again.
const reach = min(4<<30, math.MaxInt/8)

// ensure makes the file at least size bytes long, with room for them on the disk.
func (m *mapped) ensure(size int64) error {
	if size <= m.size {
		return nil
	}
	if err := m.look(); err != nil || size <= m.size { // another process may have seen to it
		return err
	}
	if size > int64(len(m.mem)) {
		return flat.ErrFull
	}
	size = min(granular(size), int64(len(m.mem)))
	if err := allocate(m.file, m.size, size); err != nil {
		return os.NewSyscallError("fallocate", err)
	}
	return m.cover(size)
}

// look finds out how long the file is. All of it is in memory then.
func (m *mapped) look() error {
	info, err := m.file.Stat()
	if err != nil {
		return err
	}
	return m.cover(info.Size())
}

func (m *mapped) close() error { return errors.Join(m.unmap(), m.file.Close()) }
