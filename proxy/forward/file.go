package forward

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/statedir"
)

const (
	// fileLife is how long an authority in a file is valid.
	fileLife = 2 * 365 * 24 * time.Hour
	// lookEvery is how often, at most, a file is checked for a rotated authority.
	lookEvery = 2 * time.Second
	// maxFile bounds how much is read of a file.
	maxFile = 1 << 20
	// fileName is the file in the state directory.
	fileName = "ca.pem"
)

// File is an authority in the state directory, readable only for its user. It notices when another process rotates the
// authority.
type File struct {
	path string

	mu     sync.Mutex
	now    *Authority
	info   fs.FileInfo
	looked time.Time
}

// PathIn returns the path of the authority's file in a state directory.
func PathIn(dir string) string { return filepath.Join(dir, fileName) }

// LoadFile opens the authority in a state directory. The error is fs.ErrNotExist if there is none.
func LoadFile(dir string) (*File, error) {
	f := &File{path: PathIn(dir)}
	if err := f.load(); err != nil {
		return nil, err
	}
	return f, nil
}

// OpenFile opens the authority in a state directory. It creates one for hosts if there is none.
func OpenFile(dir, name string, hosts []string) (*File, error) {
	f, err := LoadFile(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	made, err := write(dir, name, hosts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(made) }()
	if err := os.Link(made, PathIn(dir)); err != nil && !errors.Is(err, fs.ErrExist) { // another process may have been first
		return nil, err
	}
	return LoadFile(dir)
}

// Rotate replaces the authority in a state directory with a new one for hosts. Clients need the new certificate.
func Rotate(dir, name string, hosts []string) (*File, error) {
	made, err := write(dir, name, hosts)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(made, PathIn(dir)); err != nil {
		_ = os.Remove(made)
		return nil, err
	}
	return LoadFile(dir)
}

// write writes a new authority to a temporary file in dir.
func write(dir, name string, hosts []string) (path string, err error) {
	if err := statedir.Make(dir); err != nil {
		return "", err
	}
	a, err := NewAuthority(name, hosts, fileLife)
	if err != nil {
		return "", err
	}
	text, err := a.marshal()
	if err != nil {
		return "", err
	}
	f, err := os.CreateTemp(dir, fileName+".*") // 0600
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// Path returns the name of the file.
func (f *File) Path() string { return f.path }

// Authority returns the authority in the file. If the file cannot be read, it returns the previous one.
func (f *File) Authority() *Authority {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) >= lookEvery {
		f.looked = time.Now()
		if info, err := os.Lstat(f.path); err == nil && (!os.SameFile(info, f.info) || !info.ModTime().Equal(f.info.ModTime())) {
			_ = f.read() // on an error the previous one stays
		}
	}
	return f.now
}

func (f *File) load() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = time.Now()
	return f.read()
}

func (f *File) read() error {
	file, err := statedir.Open(f.path, os.O_RDONLY)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if err := private(info); err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return err
	}
	a, err := parseAuthority(text)
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.now, f.info = a, info
	return nil
}
