//go:build linux || darwin

package filestore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// tight lets one go; the next has to wait for a minute.
func tight() store.Spec {
	return specOf(store.Limit{Kind: store.Rolling, Size: 1, Window: time.Minute, Guard: store.GuardOff})
}

// holdout is the task of a process that waits in line while something happens to the files.
type holdout struct{ Dir string }

// It says when it waits, and what becomes of it.
var _ = role("holdout", func(k holdout) {
	s, err := filestore.Open(k.Dir)
	if err != nil {
		giveUp("open: %v", err)
	}
	ctx := context.Background()
	p, err := s.Pool(ctx, tight())
	if err != nil {
		giveUp("pool: %v", err)
	}
	ops := []store.Op{ask("first", 0, time.Hour)}
	if err := p.Apply(ctx, ops); err != nil {
		giveUp("%v", err)
	}
	w := watch(p)
	ops = []store.Op{ask("second", time.Hour, time.Hour)}
	if err := p.Apply(ctx, ops); err != nil || ops[0].Result.State != store.Waiting {
		giveUp("%v %v", ops[0].Result.State, err)
	}
	say("waiting %d", os.Getpid())
	<-w.decided(ops[0].ID)
	// It finds that the store cannot be used, or was made anew and does not know it; or it waits on.
	poll := []store.Op{{Kind: store.OpPoll, ID: ops[0].ID}}
	err = p.Apply(ctx, poll)
	if state := poll[0].Result.State; err == nil && state != store.Unknown && state != store.Waiting || err != nil && !errors.Is(err, store.ErrUnavailable) {
		giveUp("told, and then: %v %v", state, err)
	}
	say("told: %v %v", poll[0].Result.State, err)
	if _, err := p.Snapshot(ctx); err != nil && !errors.Is(err, store.ErrUnavailable) {
		giveUp("snapshot: %v", err)
	}
	if err := s.Close(); err != nil && !errors.Is(err, store.ErrUnavailable) {
		giveUp("close: %v", err)
	}
	say("done")
})

// Whatever happens to the files while they are in use, waiting requests are notified, and no process crashes.
func TestWhoWaitsLearnsThatTheFilesAreGone(t *testing.T) {
	t.Parallel()
	cut := func(size int64) func(string) error {
		return func(path string) error { return os.Truncate(path, size) }
	}
	cases := []struct {
		name, file string
		harm       func(path string) error
	}{
		{"state removed", "state", os.Remove},
		{"state emptied", "state", cut(0)},
		{"state cut to its header, journal emptied", "*", cut(filestore.HeaderSize)},
		{"directory removed", ".", os.RemoveAll},
	}
	// They take their time: all at once.
	waiting := make([]*child, len(cases))
	dirs := make([]string, len(cases))
	for i := range cases {
		dirs[i] = t.TempDir()
		waiting[i] = start(t, "holdout", holdout{dirs[i]})
	}
	for i, c := range cases {
		waiting[i].expect("waiting")
		paths, err := filepath.Glob(filepath.Join(dirs[i], "pools", "pool", c.file))
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.Mode().IsRegular() || info.IsDir() {
				if err := c.harm(path); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for i, c := range cases {
		h := waiting[i]
		t.Logf("%s: %s", c.name, h.expect("told: "))
		h.expect("done")
		if state := h.wait(); !state.Success() {
			t.Errorf("%s: %v\n%s", c.name, state, h.errs)
		}
	}
}

// A state that is removed while a request waits: the pool still learns that memory was lost, so that grants of before are not forgotten,
// and the process can still be notified.
func TestAStateRemovedWhileARequestWaitsIsLostMemory(t *testing.T) {
	t.Parallel()
	s, p := opened(t, t.TempDir(), tight())
	watch(p)
	ctx := context.Background()
	ops := []store.Op{ask("first", 0, time.Hour)}
	if err := p.Apply(ctx, ops); err != nil || ops[0].Result.State != store.Granted {
		t.Fatal(ops[0].Result.State, err)
	}
	ops = []store.Op{ask("second", time.Hour, time.Hour)}
	if err := p.Apply(ctx, ops); err != nil || ops[0].Result.State != store.Waiting {
		t.Fatal(ops[0].Result.State, err)
	}
	state := s.StatePath("pool")
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	time.Sleep(200 * time.Millisecond) // a process looks at its path ten times a second
	ops = []store.Op{ask("third", 0, time.Hour)}
	if err := p.Apply(ctx, ops); err != nil {
		t.Fatal(err)
	}
	if got := ops[0].Result.State; got == store.Granted {
		t.Error("a request was granted, although the grants of before are not known any more")
	}
	bells, err := filepath.Glob(filepath.Join(filepath.Dir(state), "bell-*"))
	if err != nil || len(bells) != 1 {
		t.Errorf("bells: %v, %v", bells, err)
	}
	ops = []store.Op{ask("fourth", time.Hour, time.Hour)}
	if err := p.Apply(ctx, ops); err != nil || ops[0].Result.State != store.Waiting {
		t.Errorf("%v, %v", ops[0].Result.State, err)
	}
}

// A state that is truncated while its journal is intact is repaired.
func TestAStateCutShortWhileInUseIsMended(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{filestore.HeaderSize, filestore.HeaderSize + 40<<10, filestore.HeaderSize + 100<<10} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			s, p := opened(t, t.TempDir(), wide())
			ctx := context.Background()
			if err := p.Apply(ctx, []store.Op{ask("a", 0, time.Hour), ask("b", 0, time.Hour)}); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(s.StatePath("pool"), size); err != nil {
				t.Fatal(err)
			}
			for range 5 { // the first may say that something is wrong
				ops := []store.Op{ask("c", 0, time.Hour)}
				ops[0].ID = store.ID{N: 100}
				if err := p.Apply(ctx, ops); err != nil {
					unusable(t, err, "damaged")
				}
			}
			snap, err := p.Snapshot(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if snap.Limits[0].Used != 3 {
				t.Errorf("%d charged, want all three", snap.Limits[0].Used)
			}
			same(t, s)
		})
	}
}

// stopper is the task of a process that stops in the middle of a step.
type stopper struct{ Dir string }

var _ = role("stopper", func(k stopper) {
	armed := false
	goesOn := make(chan os.Signal, 1)
	signal.Notify(goesOn, syscall.SIGCONT)
	s, err := filestore.Open(k.Dir, filestore.WithFault(func(where string) {
		if armed && where == "begun" {
			armed = false
			say("stopping %d", os.Getpid())
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			<-goesOn // some threads may run on for a moment
		}
	}))
	if err != nil {
		giveUp("open: %v", err)
	}
	p, err := s.Pool(context.Background(), wide())
	if err != nil {
		giveUp("pool: %v", err)
	}
	armed = true
	if err := p.Apply(context.Background(), []store.Op{ask("stopped", 0, time.Hour)}); err != nil {
		giveUp("apply: %v", err)
	}
	say("went on")
	select {} // until it is killed
})

func TestAStoppedProcessThatHoldsTheLockIsNamed(t *testing.T) {
	t.Parallel()
	for _, ends := range []bool{false, true} {
		t.Run(map[bool]string{false: "goes on", true: "is killed"}[ends], func(t *testing.T) {
			t.Parallel()
			const patient = 200 * time.Millisecond
			dir := t.TempDir()
			_, p := opened(t, dir, wide(), filestore.WithPatience(patient))
			ctx := context.Background()
			if err := p.Apply(ctx, []store.Op{ask("before", 0, time.Hour)}); err != nil {
				t.Fatal(err)
			}
			c := start(t, "stopper", stopper{dir})
			if said, want := c.next(), fmt.Sprint("stopping ", c.cmd.Process.Pid); said != want {
				t.Fatal(said)
			}
			for range 3 { // in bounded time, again and again
				began := time.Now()
				err := p.Apply(ctx, []store.Op{ask("meanwhile", 0, time.Hour)})
				unusable(t, err, fmt.Sprint("process ", c.cmd.Process.Pid))
				if took := time.Since(began); took > 20*patient {
					t.Errorf("it took %v to say so", took)
				}
			}
			s, err := filestore.Open(dir, filestore.WithPatience(patient))
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			_, err = s.Pool(ctx, wide()) // and for one that comes new
			unusable(t, err, fmt.Sprint("process ", c.cmd.Process.Pid))
			want := int64(2)
			if ends {
				c.kill()
			} else {
				c.goOn()
				if said := c.next(); said != "went on" {
					t.Fatal(said)
				}
				want++ // the step that was stopped counts
			}
			if err := p.Apply(ctx, []store.Op{ask("after", 0, time.Hour)}); err != nil {
				t.Fatal(err)
			}
			snap, err := p.Snapshot(ctx)
			if err != nil || snap.Limits[0].Used != want {
				t.Errorf("%d charged, want %d; %v", snap.Limits[0].Used, want, err)
			}
		})
	}
}

// glutton is the task of a process that has a bound on the size of its files.
type glutton struct{ Dir string }

var _ = role("glutton", func(k glutton) {
	signal.Ignore(syscall.SIGXFSZ)
	s, err := filestore.Open(k.Dir)
	if err != nil {
		giveUp("open: %v", err)
	}
	ctx := context.Background()
	p, err := s.Pool(ctx, wide())
	if err != nil {
		giveUp("pool: %v", err)
	}
	info, err := os.Stat(s.StatePath("pool"))
	if err != nil {
		giveUp("%v", err)
	}
	journal, err := os.Stat(s.JournalPath("pool"))
	if err != nil {
		giveUp("%v", err)
	}
	room := uint64(max(info.Size(), journal.Size()) + 64<<10)
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: room, Max: unix.RLIM_INFINITY}); err != nil {
		giveUp("%v", err)
	}
	granted, failed := 0, 0
	for i := range 1000 {
		ops := []store.Op{ask(fmt.Sprint(i, strings.Repeat("x", 200)), 0, time.Hour)}
		switch err := p.Apply(ctx, ops); {
		case err == nil && ops[0].Result.State == store.Granted:
			granted++
		case errors.Is(err, store.ErrUnavailable):
			if failed++; failed == 1 {
				say("%v", err)
			}
		default:
			giveUp("%v %v", ops[0].Result.State, err)
		}
		if failed > 3 {
			break
		}
	}
	snap, err := p.Snapshot(ctx) // looking needs no room
	if err != nil || snap.Limits[0].Used != int64(granted) {
		giveUp("without room %d are seen to be charged of %d, %v", snap.Limits[0].Used, granted, err)
	}
	if _, err := p.(store.Recorder).History(ctx, 0); err != nil {
		giveUp("the past without room: %v", err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}); err != nil {
		giveUp("%v", err)
	}
	ops := []store.Op{ask("after", 0, time.Hour)}
	if err := p.Apply(ctx, ops); err != nil || ops[0].Result.State != store.Granted {
		giveUp("with room again: %v %v", ops[0].Result.State, err)
	}
	say("granted %d failed %d", granted+1, failed)
})

func TestWithoutRoomNothingIsGrantedAndNothingLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := start(t, "glutton", glutton{dir})
	t.Log(c.next())
	var granted, failed int64
	if said := c.next(); true {
		if _, err := fmt.Sscanf(said, "granted %d failed %d", &granted, &failed); err != nil || failed == 0 {
			t.Fatal(said, err)
		}
		t.Log(said)
	}
	if state := c.wait(); !state.Success() {
		t.Fatalf("%v\n%s", state, c.errs)
	}
	if n, err := charged(dir); err != nil || n != granted {
		t.Errorf("%d charged, %d granted, %v", n, granted, err)
	}
}

// stranger is the task of a process of another user, or of one without rights.
type stranger struct {
	Dir string
	UID int
}

var _ = role("stranger", func(k stranger) {
	if k.UID != 0 {
		if err := syscall.Setuid(k.UID); err != nil {
			giveUp("%v", err)
		}
	}
	_, err := charged(k.Dir)
	var hinted interface{ Hint() string }
	if !errors.Is(err, store.ErrUnavailable) || !errors.As(err, &hinted) {
		giveUp("the error is %v", err)
	}
	say("%v; %s", err, hinted.Hint())
})

func TestADirectoryWithoutRightsIsAnError(t *testing.T) {
	t.Parallel()
	uid := 0 // rights bind everybody but root, who has to become somebody else
	if os.Geteuid() == 0 {
		uid = 65534
	}
	for _, c := range []struct {
		name string
		mode os.FileMode
		make bool
		path string // whose mode it is
	}{
		{"cannot be entered", 0o000, true, ""},
		{"cannot be written to", 0o555, false, ""},
		{"pools cannot be made", 0o555, true, "pools"},
		{"state cannot be read", 0o000, true, "pools/pool/state"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.path == "pools/pool/state" {
				dir, _, _ = pristine(t)
			} else if c.make {
				if err := os.MkdirAll(filepath.Join(dir, "pools"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
				if err == nil && d.IsDir() {
					return os.Chmod(path, 0o777)
				}
				return err
			})
			if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil {
				t.Fatal(err)
			}
			at := filepath.Join(dir, c.path)
			if err := os.Chmod(at, c.mode); err != nil {
				t.Fatal(err)
			}
			defer os.Chmod(at, 0o700)
			s := start(t, "stranger", stranger{dir, uid})
			if said := s.next(); !strings.Contains(said, "permission denied") && !strings.Contains(said, "belongs to another user") {
				t.Error(said)
			} else {
				t.Log(said)
			}
			if state := s.wait(); !state.Success() {
				t.Errorf("%v\n%s", state, s.errs)
			}
		})
	}
}

// Only root can change the owner of a file.
func TestAFileOfAnotherUserIsRefused(t *testing.T) {
	t.Parallel()
	dir, state, _ := pristine(t)
	err := os.Chown(state, 65534, 65534)
	if os.Geteuid() != 0 {
		if !errors.Is(err, os.ErrPermission) {
			t.Fatal(err)
		}
		return // it cannot come to this
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = charged(dir)
	unusable(t, err, "another user")
	if err := os.Chown(state, 0, 0); err != nil {
		t.Fatal(err)
	}
	if n, err := charged(dir); err != nil || n != 3 {
		t.Errorf("%d charged, %v", n, err)
	}
}

// soon calls f until it reports success, for at most ten seconds.
func soon(t *testing.T, f func() error) {
	t.Helper()
	end := time.Now().Add(10 * time.Second)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// The state directory disappears under two programs. Both switch to the same new files, and the pool counts as one
// that has lost its memory.
func TestAPoolWhoseDirectoryIsRemovedIsMadeAnew(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	ctx := context.Background()
	s1, p1 := opened(t, dir, wide())
	_, p2 := opened(t, dir, wide())
	for _, p := range []store.Pool{p1, p2} {
		if err := p.Apply(ctx, []store.Op{ask("a", 0, time.Hour)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for _, p := range []store.Pool{p1, p2} {
		soon(t, func() error {
			snap, err := p.Snapshot(ctx)
			if err == nil && (len(snap.Gates) == 0 || !strings.Contains(snap.Gates[0].Cause, "lost its memory")) {
				return fmt.Errorf("gates: %+v", snap.Gates)
			}
			return err
		})
	}
	if _, err := os.Stat(s1.StatePath("pool")); err != nil {
		t.Fatal(err)
	}
	op := ask("both", 0, time.Hour)
	op.Force = true
	if err := p1.Apply(ctx, []store.Op{op}); err != nil {
		t.Fatal(err)
	}
	snap, err := p2.Snapshot(ctx)
	if err != nil || snap.Counters.Sent != 1 {
		t.Errorf("the other program sees %d sent, %v", snap.Counters.Sent, err)
	}
}

// A state that is emptied while in use is rebuilt from the journal, and nothing is lost.
func TestAStateEmptiedWhileInUseIsMended(t *testing.T) {
	t.Parallel()
	s, p := opened(t, t.TempDir(), wide())
	ctx := context.Background()
	if err := p.Apply(ctx, []store.Op{ask("a", 0, time.Hour), ask("b", 0, time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(s.StatePath("pool"), 0); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the first may say that something is wrong
		ops := []store.Op{ask("c", 0, time.Hour)}
		ops[0].ID = store.ID{N: 100}
		if err := p.Apply(ctx, ops); err != nil {
			unusable(t, err, "damaged")
		}
	}
	snap, err := p.Snapshot(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if snap.Limits[0].Used != 3 {
		t.Errorf("%d charged, want all three", snap.Limits[0].Used)
	}
	same(t, s)
}

// A directory that other users can write to is refused, with a hint.
func TestADirectoryThatOthersCanWriteToIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	_, err := filestore.Open(dir)
	unusable(t, err, "other users can write")
	var hint interface{ Hint() string }
	if !errors.As(err, &hint) || !strings.Contains(hint.Hint(), "chmod go-w") || !strings.Contains(hint.Hint(), filepath.Join(dir, "sluice")) {
		t.Errorf("%v", err)
	}
	inside, err := filestore.Open(filepath.Join(dir, "sluice")) // as in the volume of a container
	if err != nil {
		t.Fatal(err)
	}
	inside.Close()
}

// A symbolic link in place of a file of the pool is not followed.
func TestLinksInsideTheDirectoryAreNotFollowed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"state", "members", "journal-*"} {
		dir, _, _ := pristine(t)
		found, err := filepath.Glob(filepath.Join(dir, "pools", "pool", name))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		away := filepath.Join(t.TempDir(), "away")
		if err := os.Rename(found[0], away); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(away, found[0]); err != nil {
			t.Fatal(err)
		}
		_, err = charged(dir)
		unusable(t, err, "symbolic link")
	}
}
