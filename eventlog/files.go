package eventlog

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/sluicehq/sluice/internal/filelock"
	"github.com/sluicehq/sluice/internal/statedir"
)

// file is an open file of the log.
type file interface {
	io.WriteCloser
	Stat() (fs.FileInfo, error)
}

// files is one writer's access to the log. Lines are appended under a shared lock and files are rotated under an
// exclusive one, so that no process writes into a file while it is rotated away.
type files struct {
	dir  string
	max  int64 // bytes of a file
	open func(name string) (file, error)

	lock *os.File
	out  file
	torn bool // the last line was written only in part
}

func newFiles(dir string) *files {
	return &files{dir: dir, max: MaxFile, open: openAppend}
}

func openAppend(name string) (file, error) {
	return statedir.Open(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE)
}

func (f *files) close() {
	if f.out != nil {
		_ = f.out.Close() // the kernel already has every line
		f.out = nil
	}
	if f.lock != nil {
		_ = f.lock.Close()
		f.lock = nil
	}
}

var (
	errNoDir = errors.New("there is no directory for events")
	errFull  = errors.New("the event log is full and cannot be rotated")
)

// append writes one line with a single write.
func (f *files) append(line []byte) error {
	size, err := f.hold()
	if err == nil && size+int64(len(line)) > f.max {
		size, err = f.rotate()
	}
	if err != nil {
		return err
	}
	defer filelock.Unlock(f.lock)
	if size+int64(len(line)) > f.max*Files {
		return errFull
	}
	if f.torn {
		line = append([]byte{'\n'}, line...)
	}
	n, err := f.out.Write(line)
	f.torn = n > 0 && n < len(line) || f.torn && n == 0
	return err
}

// begin creates the directory and the lock file if they do not exist. It opens the lock file again if it was removed,
// because other processes lock the file at that path.
func (f *files) begin() error {
	if f.lock != nil {
		if !statedir.Gone(f.lock, f.lock.Name()) {
			return nil
		}
		_ = f.lock.Close()
		f.lock = nil
	}
	if f.dir == "" {
		return errNoDir
	}
	if err := statedir.Make(f.dir); err != nil {
		return err
	}
	l, err := statedir.Open(filepath.Join(f.dir, lock), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	if err := mark(l); err != nil {
		_ = l.Close()
		return err
	}
	f.lock = l
	return nil
}

// How long to wait for a process that rotates. A rotation takes a moment, unless its process was stopped halfway.
const (
	lockTries = 50
	lockPause = 10 * time.Millisecond
)

// hold takes the shared lock and opens the current file if necessary. It returns the size of the file.
func (f *files) hold() (int64, error) {
	for i := 0; ; i++ {
		if err := f.begin(); err != nil {
			return 0, err
		}
		err := filelock.Try(f.lock, false)
		if err == nil {
			break
		}
		if i == lockTries || !errors.Is(err, filelock.ErrLocked) {
			return 0, err
		}
		time.Sleep(lockPause)
	}
	size, err := f.reopen()
	if err != nil {
		filelock.Unlock(f.lock)
	}
	return size, err
}

// reopen opens the current file, unless it is already open.
func (f *files) reopen() (int64, error) {
	name := fileName(f.dir, 0)
	if f.out != nil {
		is, err := f.out.Stat()
		there, thereErr := os.Stat(name)
		if err == nil && thereErr == nil && os.SameFile(is, there) {
			return there.Size(), nil
		}
		_ = f.out.Close()
		f.out, f.torn = nil, false
	}
	out, err := f.open(name)
	if err != nil {
		return 0, err
	}
	f.out = out
	is, err := out.Stat()
	if err != nil {
		return 0, err
	}
	return is.Size(), nil
}

// rotate starts a new file, unless another process is writing at this moment or has already rotated. It is called with
// the shared lock held and returns with it held. A file that cannot be rotated now grows a little beyond its bound.
func (f *files) rotate() (int64, error) {
	filelock.Unlock(f.lock)
	err := filelock.Try(f.lock, true)
	if err == nil {
		info, err := os.Stat(fileName(f.dir, 0))
		if err == nil && info.Size()+MaxLine > f.max && !statedir.Gone(f.lock, f.lock.Name()) {
			f.shift()
		}
		filelock.Unlock(f.lock)
	} else if !errors.Is(err, filelock.ErrLocked) && !errors.Is(err, errors.ErrUnsupported) {
		return 0, err
	}
	return f.hold()
}

// shift renames every file to the next older name and drops the oldest. If a rename fails, the newer files keep their
// names, so that no file is overwritten.
func (f *files) shift() {
	for i := Files - 2; i >= 0; i-- {
		err := statedir.Replace(fileName(f.dir, i), fileName(f.dir, i+1))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
}
