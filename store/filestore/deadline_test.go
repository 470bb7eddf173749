//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// A process that is stopped while it holds the lock delays all others. Callers queued behind one without a deadline
// keep their own, whether they lead the queue, wait in it, or wait for the first time.
func TestACallerBehindAStoppedLockHolderKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	s, p := opened(t, t.TempDir(), wide(), filestore.WithPatience(time.Hour))
	free := locked(t, s.StatePath("pool"))
	patient := make(chan error, 4)
	for range cap(patient) { // the first leads, the others are in line
		go func() { patient <- p.Apply(context.Background(), []store.Op{ask("patient", 0, time.Minute)}) }()
	}
	hurried := make(chan error, 20)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	for i := range cap(hurried) {
		wait := time.Duration(0)
		if i%2 == 1 {
			wait = -1
		}
		go func() { hurried <- p.Apply(ctx, []store.Op{ask("hurried", wait, time.Minute)}) }()
	}
	go func() {
		_, err := p.Snapshot(ctx)
		hurried <- err
	}()
	go func() {
		_, err := s.Pool(ctx, wide())
		hurried <- err
	}()
	late := time.After(20 * time.Second)
	for range cap(hurried) + 2 {
		select {
		case err := <-hurried:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("behind a stopped lock holder: %v, want the caller's own deadline", err)
			}
		case <-late:
			t.Fatal("a caller waits past its deadline for a lock that nobody gives back")
		}
	}
	free()
	for range cap(patient) {
		select {
		case err := <-patient:
			if err != nil {
				t.Errorf("failed with another's deadline: %v", err)
			}
		case <-late:
			t.Fatal("the lock is free and nobody goes")
		}
	}
}

// Leaders that give up, one after the other, each pass the lead on.
func TestALeaderThatGivesUpPassesTheLineOn(t *testing.T) {
	t.Parallel()
	s, p := opened(t, t.TempDir(), wide(), filestore.WithPatience(time.Hour))
	free := locked(t, s.StatePath("pool"))
	late := time.After(20 * time.Second)
	gone := make(chan error, 10)
	patient := make(chan error, 1)
	for i := range cap(gone) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Duration(10+5*i)*time.Millisecond)
		defer cancel()
		go func() { gone <- p.Apply(ctx, []store.Op{ask("gone", 0, time.Minute)}) }()
	}
	for i := range cap(gone) {
		select {
		case err := <-gone:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("with the lock taken: %v", err)
			}
		case <-late:
			t.Fatal("a caller waits past its deadline")
		}
		if i == 0 {
			go func() { patient <- p.Apply(context.Background(), []store.Op{ask("patient", 0, time.Minute)}) }()
		}
	}
	free()
	select {
	case err := <-patient:
		if err != nil {
			t.Error(err)
		}
	case <-late:
		t.Fatal("the lock is free and nobody goes")
	}
	ops := []store.Op{ask("next", 0, time.Minute)}
	if err := p.Apply(context.Background(), ops); err != nil || ops[0].Result.State != store.Granted || ops[0].ID.N != 2 {
		t.Errorf("%+v, %v, want the second ticket", ops[0].Result, err)
	}
}
