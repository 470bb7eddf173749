package redisconn

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// connections returns those that are open now.
func connections(l *Link) map[*wire]struct{} {
	l.wires.mu.Lock()
	defer l.wires.mu.Unlock()
	return maps.Clone(l.wires.open)
}

// givenUp waits until none of the connections is open any more.
func givenUp(t *testing.T, l *Link, before map[*wire]struct{}) {
	t.Helper()
	eventually(t, func() error {
		for w := range connections(l) {
			if _, ok := before[w]; ok {
				return errors.New("a stuck connection is still in use")
			}
		}
		return nil
	})
}

// briefly runs a script with a context that ends soon.
func briefly(l *Link) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	_, err := l.Run(ctx, value, "k")
	return err
}

// brieflyWithin is briefly with a deadline instead of a context.
func brieflyWithin(l *Link) error {
	_, err := l.RunWithin(20*time.Millisecond, value, []string{"k"})
	return err
}

// A server accepts bytes and does not reply. No call outlives its context, the connection is given up, and the next call is
// served when the server resumes.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		together int
		call     func(*Link) error
	}{
		"one caller": {1, briefly}, "many callers": {20, briefly}, "more than places": {maxCalls + 20, briefly},
		"one caller, no context": {1, brieflyWithin}, "many callers, no context": {20, brieflyWithin}, "more than places, no context": {maxCalls + 20, brieflyWithin},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redisrun.New(t)
			l := open(t, server.URL()+"?timeout=2s")
			all := func(check func(error)) {
				var wg sync.WaitGroup
				for range c.together {
					wg.Go(func() { check(c.call(l)) })
				}
				wg.Wait()
			}
			counted(t, l, "k", "1")
			all(func(error) {}) // calls that meet have a connection each
			before := connections(l)
			if err := server.Pause(); err != nil {
				t.Fatal(err)
			}
			stopped := time.Now()
			all(func(err error) { expect(t, err, FaultUnreachable, "did not answer in time") })
			t.Logf("calls of 20 ms were back after %v", time.Since(stopped))
			givenUp(t, l, before)
			t.Logf("the connection was given up after %v", time.Since(stopped))
			all(func(err error) {
				if Classify(err) != FaultUnreachable {
					t.Errorf("%v: %v", Classify(err), err)
				}
			})
			if err := server.Resume(); err != nil {
				t.Fatal(err)
			}
			resumed := time.Now()
			eventually(t, func() error {
				_, err := l.Run(bounded(t), value, "k")
				if err != nil { // of a dial that had begun before
					expect(t, err, FaultUnreachable, "did not answer in time")
				}
				return err
			})
			t.Logf("a call was served %v after the server went on", time.Since(resumed))
			counted(t, l, "k", "2")
		})
	}
}

// A server that stops for a moment costs callers nothing but that moment.
func TestBriefStop(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL()+"?timeout=1m")
	counted(t, l, "k", "1")
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	expect(t, briefly(l), FaultUnreachable, "did not answer in time")
	expect(t, briefly(l), FaultUnreachable, "did not answer in time")
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	counted(t, l, "k", "2")
}

// Close does not wait for a stopped server.
func TestCloseWhileStopped(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL()+"?timeout=1m")
	counted(t, l, "k", "1")
	if _, err := l.Subscribe(bounded(t), "c", func(string) {}, nil); err != nil {
		t.Fatal(err)
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	expect(t, briefly(l), FaultUnreachable, "did not answer in time") // and it is still under way
	failed := make(chan error, 2)
	go func() {
		_, err := l.Run(context.Background(), count, "k")
		failed <- err
	}()
	go func() {
		_, err := l.Subscribe(context.Background(), "d", func(string) {}, nil)
		failed <- err
	}()
	closed := make(chan struct{})
	go func() {
		l.Close()
		close(closed)
	}()
	receive(t, closed)
	for range 2 {
		expect(t, receive(t, failed), FaultClosed, "closed")
	}
}

// A stopped server is noticed on the connection for messages as well.
func TestStoppedSubscription(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL()+"?timeout=2s")
	heard, missed := make(chan string, 10), make(chan struct{}, 10)
	calls := connections(l)
	listen(t, l, "c", func(m string) { heard <- m }, func() { missed <- struct{}{} })
	before := connections(l)
	maps.DeleteFunc(before, func(w *wire, _ struct{}) bool { _, is := calls[w]; return is })
	if len(before) != 1 {
		t.Fatalf("%d connections for messages", len(before))
	}
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	givenUp(t, l, before)
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	receive(t, missed)
	if _, err := server.Do(bounded(t), "PUBLISH", "c", "x"); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, heard); got != "x" {
		t.Error(got)
	}
}
