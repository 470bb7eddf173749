package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

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

func openBucket(dir string) (fileTaker, error) {
	b, err := openSQLite(dir, wideOpen, wideOpen, time.Now)
	if err != nil {
		return fileTaker{}, err
	}
	return fileTaker{take: b.take, done: b.close}, nil
}

// openSQLite also prepares the statements that begin and end a transaction, which is the fastest way.
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

// take takes one from the bucket. A lock timeout counts as refused.
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
