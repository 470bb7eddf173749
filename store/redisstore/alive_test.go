//go:build linux || darwin

package redisstore_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

// rolls are the files by which processes of a machine know that others live.
func rolls(t *testing.T, dir string) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(dir, "members"), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// The pool withheld the share of a killed process until its lease ended, five minutes later.
func TestAKilledMemberOfTheSameMachineLeavesItsShare(t *testing.T) {
	t.Parallel()
	server, dir := redisrun.New(t), t.TempDir()
	spec := failing(store.FailShare, brief(30), slotsOf(8))
	stays := join(t, server.URL(), spec, redisstore.WithStateDir(dir))
	var killed []*member
	for range 4 {
		m := join(t, server.URL(), spec, redisstore.WithStateDir(dir))
		op := ask(1)
		op.Tie = store.TieBeat
		m.must(op, store.Granted)
		killed = append(killed, m)
	}
	await(t, "all are members", func() bool { return len(stays.snapshot().Members) == 5 })
	if n := len(rolls(t, dir)); n != 5 {
		t.Fatalf("%d files, want 5", n)
	}
	for _, m := range killed {
		m.store.Kill()
	}
	await(t, "nothing of theirs is left", func() bool {
		s := stays.snapshot()
		return len(s.Members) == 1 && s.InFlight == 0 && s.Limits[0].Withheld == 0 && s.Limits[1].Remaining == 8
	})
	if n := len(rolls(t, dir)); n != 1 {
		t.Errorf("%d files are left, want 1", n)
	}
	if err := stays.store.Close(); err != nil {
		t.Fatal(err)
	}
	if left := rolls(t, dir); len(left) != 0 {
		t.Errorf("a process that ended left %v", left)
	}
}

// The death of a process was not noticed if its lock file had been removed with the state directory.
func TestAMemberWhoseFileWasRemovedMakesItAnew(t *testing.T) {
	t.Parallel()
	server, dir := redisrun.New(t), t.TempDir()
	spec := failing(store.FailShare, slotsOf(8))
	stays := join(t, server.URL(), spec, redisstore.WithStateDir(dir))
	killed := join(t, server.URL(), spec, redisstore.WithStateDir(dir))
	op := ask(1)
	op.Tie = store.TieBeat
	killed.must(op, store.Granted)
	if err := os.RemoveAll(filepath.Join(dir, "members")); err != nil {
		t.Fatal(err)
	}
	redisstore.Bury(killed.pool)
	if n := len(rolls(t, dir)); n == 0 {
		t.Fatal("its file was not made anew")
	}
	killed.store.Kill()
	await(t, "its place is free", func() bool { return stays.snapshot().InFlight == 0 })
}

// Only a file that a process had locked proves that it died.
func TestNothingElseProvesADeath(t *testing.T) {
	t.Parallel()
	server, dir := redisrun.New(t), t.TempDir()
	spec := failing(store.FailShare, slotsOf(8))
	alive := join(t, server.URL(), spec, redisstore.WithStateDir(dir))
	elsewhere := join(t, server.URL(), spec, redisstore.WithStateDir(t.TempDir())) // on another machine
	for _, m := range []*member{alive, elsewhere} {
		op := ask(1)
		op.Tie = store.TieGone
		m.must(op, store.Granted)
	}
	roll := rolls(t, dir)[0]
	at := filepath.Dir(roll)
	other := redisstore.ProcessName(elsewhere.store)
	if err := os.WriteFile(filepath.Join(at, other), nil, 0o600); err != nil { // its lock is still to come
		t.Fatal(err)
	}
	if err := os.Symlink(roll, filepath.Join(at, "100001")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(at, "100002"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(at, "notes"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		redisstore.Bury(alive.pool)
	}
	if s := alive.snapshot(); s.InFlight != 2 {
		t.Errorf("%d in flight, want 2", s.InFlight)
	}
	elsewhere.store.Kill()
	redisstore.Bury(alive.pool)
	if s := alive.snapshot(); s.InFlight != 2 {
		t.Errorf("after a death elsewhere %d are in flight, want 2", s.InFlight)
	}
}

// Sluice must not create files behind a symbolic link in the state directory.
func TestMemoryBehindALinkIsLeftAlone(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	spec := failing(store.FailShare, brief(30), slotsOf(8))
	for _, name := range []string{"redis", "redis/members"} {
		dir, away := t.TempDir(), t.TempDir()
		link := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(away, link); err != nil {
			t.Fatal(err)
		}
		m := join(t, server.URL(), spec, redisstore.WithStateDir(filepath.Join(dir, "redis")))
		_ = m.pool.Apply(t.Context(), []store.Op{ask(1)}) // whether a busy server answers in time does not matter
		redisstore.Bury(m.pool)
		_ = m.store.Close()
		if list, err := os.ReadDir(away); err != nil || len(list) != 0 {
			t.Errorf("%s: behind the link there is %v, %v", name, list, err)
		}
	}
}
