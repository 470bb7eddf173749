package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// Names that the bars refer to.
const (
	nameBare         = "bare: flock + 256 bytes of mmap"
	nameJSON         = "flock + JSON, window of 80"
	nameSQLite       = "SQLite WAL, bucket"
	nameFileAcquire  = "sluice, acquire"
	nameFileComplete = "sluice, acquire + close"
)

// The contenders that share a file. Sluice adds itself in sluicefile.go.
var fileContenders = []fileContender{
	{nameBare, 8, nil, openBare},
	{nameJSON, 1, prepareJSON, openJSON(false)},
	{"the same, file kept open", 1, prepareJSON, openJSON(true)},
	{nameSQLite, 1, func(dir string) error { return prepareSQLite(dir, wideOpen) }, func(dir string) (fileTaker, error) {
		b, err := openSQLite(dir, wideOpen, wideOpen, time.Now)
		if err != nil {
			return fileTaker{}, err
		}
		return fileTaker{take: b.take, done: b.close}, nil
	}},
}

// openBare is the floor: the kernel's lock, and as many bytes as a small state has.
func openBare(dir string) (fileTaker, error) {
	f, err := os.OpenFile(filepath.Join(dir, "bare"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return fileTaker{}, err
	}
	fd := int(f.Fd())
	const size = 4096
	if err := f.Truncate(size); err != nil {
		return fileTaker{}, errors.Join(err, f.Close())
	}
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fileTaker{}, errors.Join(err, f.Close())
	}
	take := func() (bool, error) {
		if err := flock(fd, unix.LOCK_EX); err != nil {
			return false, err
		}
		for i := range 256 {
			mem[i]++
		}
		return true, flock(fd, unix.LOCK_UN)
	}
	return fileTaker{take: take, done: func() error { return errors.Join(unix.Munmap(mem), f.Close()) }}, nil
}

// flock goes on waiting when the runtime interrupts it.
func flock(fd, how int) error {
	for {
		if err := unix.Flock(fd, how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// jsonWindow is the rolling window that people write by hand: the times of what was sent, as
// JSON in a file, read and written whole under a lock.
type jsonWindow struct {
	lock   *os.File
	path   string
	data   *os.File // kept open; nil: opened for every request, as os.WriteFile does
	limit  int
	window time.Duration
	now    func(sent []time.Time) time.Time
}

const jsonEntries = 80

func openWindow(dir string, keep bool, limit int, window time.Duration, now func([]time.Time) time.Time) (*jsonWindow, error) {
	w := &jsonWindow{path: filepath.Join(dir, "window.json"), limit: limit, window: window, now: now}
	var err error
	if w.lock, err = os.OpenFile(w.path+".lock", os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if keep {
		if w.data, err = os.OpenFile(w.path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, errors.Join(err, w.lock.Close())
		}
	}
	return w, nil
}

func (w *jsonWindow) close() error {
	err := w.lock.Close()
	if w.data != nil {
		err = errors.Join(err, w.data.Close())
	}
	return err
}

// prepareJSON fills the window.
func prepareJSON(dir string) error {
	w, err := openWindow(dir, false, jsonEntries, time.Minute, stepClock)
	if err != nil {
		return err
	}
	for range jsonEntries {
		if _, err := w.take(); err != nil {
			return errors.Join(err, w.close())
		}
	}
	return w.close()
}

func openJSON(keep bool) func(string) (fileTaker, error) {
	return func(dir string) (fileTaker, error) {
		w, err := openWindow(dir, keep, jsonEntries, time.Minute, stepClock)
		if err != nil {
			return fileTaker{}, err
		}
		return fileTaker{take: w.take, done: w.close}, nil
	}
}

// stepClock lets as much time pass with every request as keeps the window full and yet lets
// everybody in: refusing would cost less.
func stepClock(sent []time.Time) time.Time {
	if len(sent) == 0 {
		return time.Now()
	}
	return sent[len(sent)-1].Add(time.Minute / jsonEntries)
}

func (w *jsonWindow) take() (ok bool, err error) {
	fd := int(w.lock.Fd())
	if err := flock(fd, unix.LOCK_EX); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, flock(fd, unix.LOCK_UN)) }()
	text, err := w.read()
	if err != nil {
		return false, err
	}
	var sent []time.Time
	if len(text) > 0 {
		if err := json.Unmarshal(text, &sent); err != nil {
			return false, err
		}
	}
	now := w.now(sent)
	for len(sent) > 0 && now.Sub(sent[0]) >= w.window {
		sent = sent[1:]
	}
	if len(sent) >= w.limit {
		return false, nil
	}
	if text, err = json.Marshal(append(sent, now)); err != nil {
		return false, err
	}
	err = w.write(text)
	return err == nil, err
}

func (w *jsonWindow) read() ([]byte, error) {
	if w.data == nil {
		text, err := os.ReadFile(w.path)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return text, err
	}
	if _, err := w.data.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return io.ReadAll(w.data)
}

func (w *jsonWindow) write(text []byte) error {
	if w.data == nil {
		return os.WriteFile(w.path, text, 0o600)
	}
	if err := w.data.Truncate(0); err != nil {
		return err
	}
	_, err := w.data.WriteAt(text, 0)
	return err
}

// sqliteBucket is a token bucket in a table of one row.
type sqliteBucket struct {
	db                  *sql.DB
	conn                *sql.Conn
	begin, read         *sql.Stmt
	write, commit, undo *sql.Stmt
	rate, size          float64
	now                 func() time.Time
}

func sqliteURL(dir string) string {
	options := url.Values{"_pragma": {"busy_timeout(5000)", "journal_mode(WAL)", "synchronous(NORMAL)"}}
	return "file:" + filepath.Join(dir, "bucket.db") + "?" + options.Encode()
}

func prepareSQLite(dir string, size float64) error {
	db, err := sql.Open("sqlite", sqliteURL(dir))
	if err != nil {
		return err
	}
	_, err = db.Exec("CREATE TABLE bucket (name TEXT PRIMARY KEY, tokens REAL, at INTEGER) WITHOUT ROWID")
	if err == nil {
		_, err = db.Exec("INSERT INTO bucket VALUES ('api', ?, 0)", size)
	}
	return errors.Join(err, db.Close())
}

// openSQLite takes the statements that begin and end a transaction ready-made too, which is as
// fast as it goes.
func openSQLite(dir string, rate, size float64, now func() time.Time) (*sqliteBucket, error) {
	b := &sqliteBucket{rate: rate, size: size, now: now}
	var err error
	if b.db, err = sql.Open("sqlite", sqliteURL(dir)); err != nil {
		return nil, err
	}
	ctx := context.Background()
	if b.conn, err = b.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, b.db.Close())
	}
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&b.begin, "BEGIN IMMEDIATE"},
		{&b.read, "SELECT tokens, at FROM bucket WHERE name = 'api'"},
		{&b.write, "UPDATE bucket SET tokens = ?, at = ? WHERE name = 'api'"},
		{&b.commit, "COMMIT"},
		{&b.undo, "ROLLBACK"},
	} {
		if *s.stmt, err = b.conn.PrepareContext(ctx, s.text); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", s.text, err), b.close())
		}
	}
	return b, nil
}

// take counts a lock that did not come within the timeout as refused.
func (b *sqliteBucket) take() (bool, error) {
	if _, err := b.begin.Exec(); err != nil {
		if busy(err) {
			return false, nil
		}
		return false, err
	}
	var tokens float64
	var at int64
	if err := b.read.QueryRow().Scan(&tokens, &at); err != nil {
		return false, b.end(b.undo, err)
	}
	now := max(b.now().UnixMicro(), at)
	tokens = min(b.size, tokens+b.rate*float64(now-at)/1e6)
	if tokens < 1 {
		return false, b.end(b.undo, nil)
	}
	if _, err := b.write.Exec(tokens-1, now); err != nil {
		return false, b.end(b.undo, err)
	}
	if err := b.end(b.commit, nil); err != nil {
		return false, b.end(b.undo, err)
	}
	return true, nil
}

func (b *sqliteBucket) end(how *sql.Stmt, err error) error {
	_, ended := how.Exec()
	return errors.Join(err, ended)
}

func (b *sqliteBucket) close() error { return errors.Join(b.conn.Close(), b.db.Close()) }

func busy(err error) bool {
	e, ok := errors.AsType[*sqlite.Error](err)
	return ok && e.Code()&0xff == sqlite3.SQLITE_BUSY
}
