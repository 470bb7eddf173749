//go:build linux || darwin

package statedir_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

var noon = time.Date(2026, time.March, 4, 12, 0, 0, 0, time.UTC)

// The users of a state directory, each of which makes its files there and uses them.

func spend(dir string) error {
	l := ledger.NewDir(filepath.Join(dir, "budgets"), false)
	pot := ledger.Pot{Budget: "day", Size: 100, Period: ledger.Day.At(noon)}
	_, err := l.Take(context.Background(), ledger.Order{Lines: []ledger.Account{{Pot: pot}}, Amount: 1, Now: noon, TTL: time.Hour})
	return errors.Join(err, l.Close())
}

func lookAtBudgets(dir string) error {
	l := ledger.NewDir(filepath.Join(dir, "budgets"), true)
	_, err := l.Read(context.Background(), nil)
	return errors.Join(err, l.Close())
}

func log(dir string) error {
	w := eventlog.Open(dir)
	w.Add(inspect.Event{Time: noon, Kind: inspect.EventSend, Resource: "api"})
	err := w.Close()
	return errors.Join(err, w.Err())
}

func readLog(dir string) error {
	_, err := eventlog.Read(dir, time.Time{}, func(inspect.Event) bool { return true })
	return err
}

func bury(dir string) error {
	list, err := deadletter.Open(filepath.Join(dir, "dead-letters"))
	if err != nil {
		return err
	}
	_, _, err = list.Add(deadletter.Entry{Agent: "a", Argv: deadletter.Texts([]string{"true"}), Dir: "/"})
	return err
}

// retry claims all dead letters.
func retry(dir string) error {
	list, err := deadletter.Open(filepath.Join(dir, "dead-letters"))
	if err != nil {
		return err
	}
	entries, err := list.Entries()
	if err == nil && len(entries) == 0 {
		err = deadletter.ErrUnknown
	}
	for _, e := range entries {
		c, claimed := list.Claim(e.ID)
		err = errors.Join(err, claimed)
		if claimed == nil {
			err = errors.Join(err, c.Update(e))
			c.Release()
		}
	}
	return err
}

func openStore(dir string) error {
	s, err := filestore.Open(dir)
	if err != nil {
		return err
	}
	wait := store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}
	spec := store.Spec{Name: "pool", Classes: []store.Class{{Name: "p0", Weight: 1}}, MaxWaiting: 10, Throttle: wait, Overload: wait}
	_, err = s.Pool(context.Background(), spec)
	return errors.Join(err, s.Close())
}

func theOnly(t *testing.T, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) != 1 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	return found[0]
}

// A link inside the state directory let the user who put it there write or read other files of the owner.
func TestALinkInPlaceOfAFileIsNotFollowed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		file   string
		first  func(dir string) error // makes the file
		use    func(dir string) error
		silent bool // the file is a help: without it the use goes on
	}{
		{file: "budgets/budgets.lock", first: spend, use: spend},
		{file: "budgets/budgets.jsonl", first: spend, use: spend},
		{file: "budgets/budgets.lock", first: spend, use: lookAtBudgets},
		{file: "budgets/budgets.jsonl", first: spend, use: lookAtBudgets},
		{file: "events.lock", first: log, use: log},
		{file: "events.jsonl", first: log, use: log},
		{file: "events.lock", first: log, use: readLog},
		{file: "events.jsonl", first: log, use: readLog},
		{file: "dead-letters/*.json", first: bury, use: retry},
		{file: "pools/pool/state", first: openStore, use: openStore},
		{file: "pools/pool/members", first: openStore, use: openStore},
		{file: "pools/pool/journal-*", first: openStore, use: openStore},
		{file: "pools/CACHEDIR.TAG", first: openStore, use: openStore, silent: true},
		{file: "pools/.collected", first: openStore, use: openStore, silent: true},
	}
	for _, c := range cases {
		for _, dangling := range []bool{false, true} {
			dir := t.TempDir()
			if err := c.first(dir); err != nil {
				t.Fatal(c.file, err)
			}
			path, away := theOnly(t, filepath.Join(dir, c.file)), filepath.Join(t.TempDir(), "away")
			replace(t, path, away)
			if dangling {
				if err := os.Remove(away); err != nil {
					t.Fatal(err)
				}
			}
			before, _ := os.ReadFile(away) // it may be missing
			if err := c.use(dir); (err == nil) != c.silent {
				t.Errorf("%s, dangling %v: the error is %v", c.file, dangling, err)
			}
			after, err := os.ReadFile(away)
			if string(after) != string(before) || dangling != os.IsNotExist(err) {
				t.Errorf("%s, dangling %v: behind the link there is %q, %v", c.file, dangling, after, err)
			}
		}
	}
}

func TestALinkInPlaceOfAClaimIsNotFollowed(t *testing.T) {
	t.Parallel()
	dir, away := t.TempDir(), filepath.Join(t.TempDir(), "away")
	if err := bury(dir); err != nil {
		t.Fatal(err)
	}
	entry := theOnly(t, filepath.Join(dir, "dead-letters", "*.json"))
	id := entry[:len(entry)-len(".json")]
	for _, link := range []string{id + ".claim", filepath.Join(filepath.Dir(id), ".tmp-"+filepath.Base(id))} {
		if err := os.Symlink(away, link); err != nil {
			t.Fatal(err)
		}
		if err := retry(dir); !errors.Is(err, statedir.ErrLink) {
			t.Errorf("%s: the error is %v", link, err)
		}
		if _, err := os.Lstat(away); err == nil {
			t.Errorf("%s: the link was followed", link)
		}
		_ = os.Remove(link)
	}
}

func TestALinkInPlaceOfADirectoryIsNotFollowed(t *testing.T) {
	t.Parallel()
	cases := []struct {
		dir string
		use func(dir string) error
	}{
		{"budgets", spend},
		{"budgets", lookAtBudgets},
		{"dead-letters", bury},
		{"dead-letters", retry},
		{"pools", openStore},
		{"pools/pool", openStore},
	}
	for _, c := range cases {
		dir, away := t.TempDir(), t.TempDir()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, c.dir)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(away, filepath.Join(dir, c.dir)); err != nil {
			t.Fatal(err)
		}
		if err := c.use(dir); !errors.Is(err, statedir.ErrLink) {
			t.Errorf("%s: the error is %v", c.dir, err)
		}
		if list, err := os.ReadDir(away); err != nil || len(list) != 0 {
			t.Errorf("%s: behind the link there is %v, %v", c.dir, list, err)
		}
	}
}

// Files were kept in a directory in which other users could replace them.
func TestADirectoryThatOthersCanWriteToIsRefusedByAll(t *testing.T) {
	t.Parallel()
	for name, use := range map[string]func(dir string) error{"budgets": spend, ".": log, "dead-letters": bury, "pools": openStore} {
		dir := t.TempDir()
		if err := os.MkdirAll(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(filepath.Join(dir, name), 0o777); err != nil { //nolint:gosec // as it should not be
			t.Fatal(err)
		}
		if err := use(dir); !errors.Is(err, statedir.ErrWritable) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}

// The state directory itself may be a link, because its user has put it there.
func TestTheStateDirectoryMayBeALink(t *testing.T) {
	t.Parallel()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(t.TempDir(), link); err != nil {
		t.Fatal(err)
	}
	for _, use := range []func(dir string) error{spend, lookAtBudgets, log, readLog, bury, retry, openStore} {
		if err := use(link); err != nil {
			t.Error(err)
		}
	}
}

// replace moves a file away and leaves a link to it.
func replace(t *testing.T, path, away string) {
	t.Helper()
	if err := os.Rename(path, away); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(away, path); err != nil {
		t.Fatal(err)
	}
}
