//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// named is a spec with these limits.
func named(limits ...store.Limit) store.Spec {
	s := fourLimits()
	s.Limits = limits
	return s
}

// Callers with different configurations took turns, and each found the limit that the other lacked unused.
func TestALimitThatOthersLackKeepsItsCharges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	minute := store.Limit{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: 3, Window: time.Minute, Guard: store.GuardOff}
	other := store.Limit{Name: "other", Kind: store.Rolling, Unit: "requests", Size: 100, Window: time.Minute, Guard: store.GuardOff}
	bucket := store.Limit{Name: "minute", Kind: store.Bucket, Unit: "requests", Size: 3, Window: time.Hour, Guard: store.GuardOff}
	try := func(limits ...store.Limit) (granted bool) {
		s, p := opened(t, dir, named(limits...))
		defer s.Close()
		ops := []store.Op{ask("a", 0, time.Minute)}
		if err := p.Apply(context.Background(), ops); err != nil {
			t.Fatal(err)
		}
		return ops[0].Result.State == store.Granted
	}
	counts := map[string]int{}
	for range 10 {
		for name, limits := range map[string][]store.Limit{
			"both": {minute, other}, "another order": {other, minute}, "one": {other}, "another kind": {bucket, other},
		} {
			if try(limits...) {
				counts[name]++
			}
		}
	}
	if counts["both"]+counts["another order"] != 3 || counts["another kind"] != 3 || counts["one"] != 10 {
		t.Errorf("granted %v", counts)
	}
}

// A configuration that is edited often does not run out of slots for its limits.
func TestLimitsCanBeRenamedForEver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i := range 40 {
		l := store.Limit{Kind: store.Bucket, Unit: "requests", Size: 5, Window: time.Second, Guard: store.GuardOff}
		l.Name = "limit" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		s, p := opened(t, dir, named(l))
		ops := []store.Op{ask("a", 0, time.Minute)}
		if err := p.Apply(context.Background(), ops); err != nil || ops[0].Result.State != store.Granted {
			t.Fatalf("name %d: %v, %v", i, ops[0].Result.State, err)
		}
		if err := p.Apply(context.Background(), []store.Op{{Kind: store.OpClose, ID: ops[0].ID}}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Limits of other processes still count for a process that restates: another window is refused, and the smaller size
// wins.
func TestRestatingDoesNotOverruleOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	minute := store.Limit{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: 3, Window: time.Minute, Guard: store.GuardOff}
	mine, _ := opened(t, dir, named(minute))
	others, other := opened(t, dir, named(minute))
	restate := func(size int64, window time.Duration) (store.Pool, error) {
		l := minute
		l.Size, l.Window = size, window
		s := named(l)
		s.Restate = true
		return mine.Pool(context.Background(), s)
	}
	size := func() int64 {
		t.Helper()
		s, err := other.Snapshot(context.Background())
		if err != nil || len(s.Limits) != 1 {
			t.Fatalf("%+v %v", s.Limits, err)
		}
		return s.Limits[0].Size
	}
	if _, err := restate(3, time.Hour); err == nil {
		t.Error("another window was taken on under another process")
	}
	if _, err := restate(9, time.Minute); err != nil || size() != 3 {
		t.Errorf("%v, and %d is in force", err, size())
	}
	if err := others.Close(); err != nil {
		t.Fatal(err)
	}
	p, err := restate(9, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := p.Snapshot(context.Background()); err != nil || s.Limits[0].Size != 9 {
		t.Errorf("alone: %+v %v", s.Limits, err)
	}
}

// A process that has opened a pool very often does not reuse the number of an open session.
func TestSessionsAreToldApartForEver(t *testing.T) {
	t.Parallel()
	spec := fourLimits()
	s, first := opened(t, t.TempDir(), spec)
	defer s.Close()
	s.LastSession(spec.Name, 0xffff)
	for range 3 {
		p, err := s.Pool(context.Background(), spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Apply(context.Background(), []store.Op{ask("a", 0, time.Minute)}); err != nil {
		t.Errorf("the session that was open all the time: %v", err)
	}
}
