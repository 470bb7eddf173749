//go:build linux || darwin || windows

package filestore

import (
	"errors"
	"math"
	"os"

	"github.com/sluicehq/sluice/internal/flat"
)

// page is the unit of file layout: the largest common page size.
const page = 16 << 10

// reach is how much of a file is mapped, whatever its size. The part beyond its end becomes usable when the file
// grows, without mapping it again.
const reach = min(4<<30, math.MaxInt/8)

// ensure makes the file at least size bytes long, with room for them on the disk.
func (m *mapped) ensure(size int64) error {
	if size <= m.size {
		return nil
	}
	if err := m.look(); err != nil || size <= m.size { // another process may have grown it
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

// look updates the known size of the file and maps all of it.
func (m *mapped) look() error {
	info, err := m.file.Stat()
	if err != nil {
		return err
	}
	return m.cover(info.Size())
}

func (m *mapped) close() error { return errors.Join(m.unmap(), m.file.Close()) }
