//go:build linux || darwin

package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/sluicehq/sluice/store"
)

// bell is a named pipe by which other processes notify this one: tickets of its own were decided, or it has to wake
// at some time. The pipe of a dead process has no reader, and a process that rings it notices.
type bell struct {
	file *os.File
	path string
	done chan struct{}
}

// The pipe carries ids in this form. An id with number 0 asks the process to check the time.
const (
	idLen   = 16
	pipeful = 32 << 10    // after a read of half of this, some ids may not have fitted in
	maxRing = 512 / idLen // ids per write, which the pipe keeps together
)

func bellPath(dir string, process uint64) string {
	return filepath.Join(dir, fmt.Sprintf("bell-%012x", process))
}

// hang creates the bell of a process. It calls heard from one goroutine with the received ids. all says that some
// ids may be missing.
func hang(dir string, process uint64, heard func(ids []store.ID, all bool)) (*bell, error) {
	path := bellPath(dir, process)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, failed("make", path, err)
	}
	// Opened for writing too: the pipe then always has a writer, and reads never end.
	f, err := os.OpenFile(path, os.O_RDWR|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, failed("open", path, errors.Join(err, os.Remove(path)))
	}
	b := &bell{file: f, path: path, done: make(chan struct{})}
	go b.listen(heard)
	return b, nil
}

func (b *bell) listen(heard func([]store.ID, bool)) {
	defer close(b.done)
	buf := make([]byte, pipeful)
	var ids []store.ID
	have := 0
	for {
		n, err := b.file.Read(buf[have:])
		if err != nil {
			return
		}
		have += n
		ids = ids[:0]
		whole := have / idLen * idLen
		for at := 0; at < whole; at += idLen {
			ids = append(ids, store.ID{Session: binary.LittleEndian.Uint64(buf[at:]), N: binary.LittleEndian.Uint64(buf[at+8:])})
		}
		have = copy(buf, buf[whole:have])
		heard(ids, whole >= pipeful/2)
	}
}

// silence closes the pipe and leaves its path.
func (b *bell) silence() { _ = b.file.Close() }

func (b *bell) take() error {
	err := errors.Join(b.file.Close(), os.Remove(b.path))
	<-b.done
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process has removed it
	}
	return err
}

// ring sends ids to a process. It reports whether the process is alive.
func ring(dir string, process uint64, ids []store.ID) (alive bool) {
	fd, err := unix.Open(bellPath(dir, process), unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return !errors.Is(err, unix.ENXIO) && !errors.Is(err, unix.ENOENT)
	}
	defer unix.Close(fd) //nolint:errcheck // nothing is lost with it
	var buf [maxRing * idLen]byte
	for len(ids) > 0 {
		n := min(len(ids), maxRing)
		for i, id := range ids[:n] {
			binary.LittleEndian.PutUint64(buf[i*idLen:], id.Session)
			binary.LittleEndian.PutUint64(buf[i*idLen+8:], id.N)
		}
		// A full pipe has enough notices.
		_, _ = unix.Write(fd, buf[:n*idLen])
		ids = ids[n:]
	}
	return true
}
