package ledger

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/ctxlock"
	"github.com/sluicehq/sluice/internal/filelock"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// The files of a directory.
const (
	journal = "budgets.jsonl"
	lock    = "budgets.lock"
)

// Bounds of the file.
const (
	maxLine  = 64 << 10
	rewrite  = 1 << 20 // size in bytes from which the file is rewritten, if most of it is history
	mostFile = 256 << 20
)

// headline is the first line of the file and identifies it.
const headline = `{"sluice":"budgets","version":1}` + "\n"

// Dir is a ledger in a directory, for all processes of a user on one machine. It is one append-only file of lines,
// under a kernel lock that is released when its holder dies. Every process follows what the others write. A change
// is one line and one write, so a change that kill -9 interrupts has happened or has not.
//
// The lines are plain JSON, readable by people and by later versions. The directory is not marked as a cache,
// because the record of spending is worth a backup.
type Dir struct {
	path string
	look bool

	mu     ctxlock.Mutex
	closed bool
	lock   *os.File
	file   *os.File
	book   *book
	at     int64 // how much of the file is in the book
	least  int64 // the file's length when it was last rewritten

	written bool // this process has written lines that may not be on disk
}

// NewDir returns the ledger of a directory, which it creates when it is needed. With look it creates nothing.
func NewDir(path string, look bool) *Dir { return &Dir{mu: ctxlock.New(), path: path, look: look} }

// Take implements [Ledger].
func (d *Dir) Take(ctx context.Context, o Order) (t Taken, err error) {
	t.Full = -1
	if err := o.valid(); err != nil {
		return t, err
	}
	err = d.change(ctx, o.Now, func(b *book) *entry {
		var e *entry
		t, e = b.take(&o)
		return e
	})
	return t, err
}

// Settle implements [Ledger].
func (d *Dir) Settle(ctx context.Context, receipt string, actual int64, now time.Time) error {
	return d.end(ctx, now, func(b *book) *entry { return b.settle(receipt, actual) })
}

// Cancel implements [Ledger].
func (d *Dir) Cancel(ctx context.Context, receipt string, now time.Time) error {
	return d.end(ctx, now, func(b *book) *entry {
		if b.open[receipt] == nil {
			return nil
		}
		return &entry{Op: "cancel", ID: receipt}
	})
}

// end ends a reservation. If the books do not exist and must not be created, it does nothing.
func (d *Dir) end(ctx context.Context, now time.Time, decide func(*book) *entry) error {
	err := d.change(ctx, now, decide)
	if d.look && errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Tell implements [Ledger].
func (d *Dir) Tell(ctx context.Context, l Account, now time.Time) (first bool, err error) {
	err = d.change(ctx, now, func(b *book) *entry {
		e := b.tell(&l)
		first = e != nil
		return e
	})
	return first && err == nil, err
}

// Read implements [Ledger].
func (d *Dir) Read(ctx context.Context, pots []Pot) (list []Balance, err error) {
	if err := d.mu.LockContext(ctx); err != nil {
		return nil, d.failed(err)
	}
	defer d.mu.Unlock()
	err = d.locked(ctx, func() error {
		list = d.book.balances(pots)
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // nothing was ever spent
	}
	return list, err
}

// Close implements [Ledger].
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	var errs []error
	if d.file != nil {
		if d.written {
			errs = append(errs, d.file.Sync())
		}
		errs = append(errs, d.file.Close())
	}
	if d.lock != nil {
		errs = append(errs, d.lock.Close())
	}
	d.file, d.lock = nil, nil
	return errors.Join(errs...)
}

// change brings the book up to date, and applies the change that decide returns, if any.
func (d *Dir) change(ctx context.Context, now time.Time, decide func(*book) *entry) error {
	if err := d.mu.LockContext(ctx); err != nil {
		return d.failed(err)
	}
	defer d.mu.Unlock()
	return d.locked(ctx, func() error {
		e := decide(d.book)
		if e == nil {
			return nil
		}
		if err := d.append(e); err != nil {
			return err
		}
		d.book.apply(e)
		if d.at > rewrite && d.at > 4*d.least {
			d.compact(now)
		}
		return nil
	})
}

// locked calls f with the lock held and the book up to date.
func (d *Dir) locked(ctx context.Context, f func() error) error {
	if d.closed {
		return errClosed
	}
	if err := d.take(ctx); err != nil {
		return d.failed(err)
	}
	defer filelock.Unlock(d.lock)
	if err := d.follow(); err != nil {
		return d.failed(err)
	}
	if err := f(); err != nil {
		return d.failed(err)
	}
	return nil
}

// patience is how long another process may hold the lock. It needs microseconds, unless it was stopped.
const patience = 5 * time.Second

var errHeld = errors.New("another process has had them locked for seconds")

// take locks the lock file at its path. The open one may have been removed with the directory.
func (d *Dir) take(ctx context.Context) error {
	for {
		if err := d.prepare(); err != nil {
			return err
		}
		err := filelock.Wait(ctx, d.lock, patience)
		if errors.Is(err, filelock.ErrLocked) {
			err = errHeld
		}
		if !statedir.Gone(d.lock, d.lock.Name()) {
			return err
		}
		_ = d.lock.Close() // which unlocks it
		d.lock = nil
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (d *Dir) failed(err error) error {
	return fmt.Errorf("%w: budgets in %s: %w", store.ErrUnavailable, d.path, err)
}

// prepare creates the directory and the lock.
func (d *Dir) prepare() (err error) {
	if d.lock != nil {
		return nil
	}
	if err := statedir.NoLink(d.path); err != nil {
		return err
	}
	flags := os.O_RDWR
	if !d.look {
		if err := statedir.MakeInside(d.path); err != nil {
			return err
		}
		flags |= os.O_CREATE
	}
	d.lock, err = statedir.Open(filepath.Join(d.path, lock), flags)
	return err
}

// follow reads what others have written. If the file was replaced, follow reads it from the beginning.
func (d *Dir) follow() error {
	name := filepath.Join(d.path, journal)
	if d.file != nil {
		mine, err := d.file.Stat()
		there, thereErr := os.Stat(name)
		if err != nil || thereErr != nil || !os.SameFile(mine, there) || there.Size() < d.at {
			_ = d.file.Close() // it was only read, or the kernel has every line
			d.file = nil
		}
	}
	if d.file == nil {
		flags := os.O_RDWR | os.O_APPEND
		if !d.look {
			flags |= os.O_CREATE
		}
		f, err := statedir.Open(name, flags)
		if err != nil {
			return err
		}
		d.file, d.book, d.at, d.least = f, newBook(), 0, 0
	}
	return d.readOn()
}

var errForeign = errors.New(journal + " was written by a later version, or by something else")

// readOn reads the lines that are not in the book yet. The lock is held. An incomplete last line was left by a
// process that died, so its change has not happened.
func (d *Dir) readOn() error {
	info, err := d.file.Stat()
	if err != nil {
		return err
	}
	size := info.Size()
	if size > mostFile {
		return fmt.Errorf("%s has %d bytes, more than there can be", journal, size)
	}
	in := bufio.NewReaderSize(io.NewSectionReader(d.file, d.at, size-d.at), maxLine)
	whole := d.at == 0
	for d.at < size {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			if d.at == 0 && !strings.HasPrefix(headline, string(text)) {
				return errForeign // nor is it an incomplete headline
			}
			break
		}
		if err != nil {
			return err
		}
		if d.at == 0 && string(text) != headline {
			return errForeign
		}
		d.at += int64(len(text))
		var e entry
		if json.Unmarshal(bytes.TrimSpace(text), &e) == nil { // lines that cannot be read are not counted
			d.book.apply(&e)
		}
	}
	if whole {
		d.least = d.at
	}
	if d.at < size {
		if err := statedir.Truncate(d.file, d.at); err != nil {
			return err
		}
	}
	if d.at == 0 && !d.look {
		return d.write([]byte(headline))
	}
	return nil
}

func (d *Dir) append(e *entry) error {
	text, err := json.Marshal(e)
	if err != nil {
		return err
	}
	return d.write(append(text, '\n'))
}

// write appends to the file. It removes an incomplete write.
func (d *Dir) write(text []byte) error {
	n, err := d.file.Write(text)
	if err != nil {
		if n > 0 {
			err = errors.Join(err, statedir.Truncate(d.file, d.at))
		}
		return err
	}
	d.at += int64(n)
	d.written = true
	return nil
}

// compact rewrites the file without its history. If that fails, the old file stays in use.
func (d *Dir) compact(now time.Time) {
	d.book.forget(now)
	text := bytes.NewBufferString(headline)
	enc := json.NewEncoder(text)
	enc.SetEscapeHTML(false)
	for _, e := range d.book.entries() {
		if enc.Encode(&e) != nil {
			return
		}
	}
	d.least = d.at // if it fails, it is not retried at once
	temp, err := os.CreateTemp(d.path, journal+".new-*")
	if err != nil {
		return
	}
	_, err = temp.Write(text.Bytes())
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = statedir.Rename(temp.Name(), filepath.Join(d.path, journal))
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	// The next access, also by this process, finds another file and reads it.
}
