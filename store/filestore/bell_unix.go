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

// bell is a named pipe by which other processes tell this one that tickets of its were
// decided, or that it has to see to the time. A process that has died leaves a pipe that nobody
// reads: whoever rings notices.
type bell struct {
	file *os.File
	path string
	done chan struct{}
}

// Ids go through the pipe in this form. The zero id asks to see to the time.
const (
	idLen   = 16
	pipeful = 32 << 10    // so much at once, and some may not have fitted in
	maxRing = 512 / idLen // what is written at once is not torn apart
)

func bellPath(dir string, process uint64) string {
	return filepath.Join(dir, fmt.Sprintf("bell-%012x", process))
}

// hang makes the bell of a process. heard is called, from one goroutine, with the ids that came;
// all tells that some may be missing.
func hang(dir string, process uint64, heard func(ids []store.ID, all bool)) (*bell, error) {
	path := bellPath(dir, process)
	if err := unix.Mkfifo(path, 0o600); err != nil {
		return nil, failed("make", path, err)
	}
	// For writing too: so the pipe has a writer always, and reading it never ends.
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

// silence lets go of the pipe. Its path is left as it is.
func (b *bell) silence() { _ = b.file.Close() }

func (b *bell) take() error {
	err := errors.Join(b.file.Close(), os.Remove(b.path))
	<-b.done
	if errors.Is(err, fs.ErrNotExist) {
		return nil // somebody has cleared up
	}
	return err
}

// ring tells a process of ids. It reports whether the process is there to hear it.
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
		// A pipe that is full has been rung enough.
		_, _ = unix.Write(fd, buf[:n*idLen])
		ids = ids[n:]
	}
	return true
}
