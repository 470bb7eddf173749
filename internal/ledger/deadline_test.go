package ledger

import (
	"context"
	"errors"
	"testing"
	"time"
)

// One caller may wait for a process that was stopped while it had the file locked. Callers behind it keep their own
// deadlines.
func TestACallerBehindAnotherKeepsItsDeadline(t *testing.T) {
	t.Parallel()
	d := NewDir(t.TempDir(), false)
	d.mu.Lock() // as the one in front does
	done := make(chan error, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	go func() { _, err := d.Take(ctx, Order{Amount: 1, TTL: time.Hour}); done <- err }()
	go func() { _, err := d.Read(ctx, nil); done <- err }()
	go func() { done <- d.Settle(ctx, "receipt", 1, time.Time{}) }()
	late := time.After(20 * time.Second)
	for range cap(done) {
		select {
		case err := <-done:
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want the caller's own deadline", err)
			}
		case <-late:
			t.Fatal("a caller waits past its deadline")
		}
	}
	d.mu.Unlock()
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
