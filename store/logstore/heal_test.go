package logstore_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

// stoppable is an engine whose process can be stopped: its calls wait until it goes on.
type stoppable struct {
	sharedlog.Engine
	stopped chan struct{} // nil: it runs
}

func (s *stoppable) Log(pool string) sharedlog.Log { return &stoppableLog{s.Engine.Log(pool), s} }

func (s *stoppable) wait(ctx context.Context) error {
	if s.stopped == nil {
		return nil
	}
	select {
	case <-s.stopped:
		return nil
	case <-ctx.Done():
		return sharedlog.ErrUnavailable
	}
}

type stoppableLog struct {
	sharedlog.Log
	of *stoppable
}

func (l *stoppableLog) Append(ctx context.Context, at sharedlog.Position, entry []byte) (sharedlog.Entries, error) {
	if err := l.of.wait(ctx); err != nil {
		return sharedlog.Entries{}, err
	}
	return l.Log.Append(ctx, at, entry)
}

func (l *stoppableLog) Read(ctx context.Context, at sharedlog.Position) (sharedlog.Entries, error) {
	if err := l.of.wait(ctx); err != nil {
		return sharedlog.Entries{}, err
	}
	return l.Log.Read(ctx, at)
}

func (l *stoppableLog) Post(ctx context.Context, process uint64, at sharedlog.Position) ([]sharedlog.Survivor, error) {
	if err := l.of.wait(ctx); err != nil {
		return nil, err
	}
	return l.Log.Post(ctx, process, at)
}

// survivor is one process that uses a pool of 20 requests a minute.
type survivor struct {
	*testing.T
	pool   store.Pool
	engine *stoppable
}

// gathering is a server and processes that use a pool on it.
func gathering(t *testing.T, n int) (*world.Server, []*survivor) {
	server := serverAt(world.New(1))
	var all []*survivor
	for i := range n {
		all = append(all, join(t, server, uint64(i+1)))
	}
	return server, all
}

func join(t *testing.T, server *world.Server, machine uint64) *survivor {
	engine := &stoppable{Engine: server.Connect()}
	s := joinOn(t, engine, machine)
	s.engine = engine
	return s
}

func joinOn(t *testing.T, engine sharedlog.Engine, machine uint64, opts ...logstore.Option) *survivor {
	s := logstore.New(engine, append(opts, logstore.WithClock(uptime(machine)))...)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	spec := stormSpec()
	spec.Limits = []store.Limit{{Name: "window", Kind: store.Rolling, Unit: "requests", Size: 20, Window: time.Minute, Guard: store.GuardOff}}
	p, err := s.Pool(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return &survivor{T: t, pool: p}
}

// takes asks n times and fails unless so many are granted, within a time.
func (s *survivor) takes(n, want int, within time.Duration) {
	s.Helper()
	granted, began := 0, time.Now()
	for range n {
		ops := []store.Op{{Kind: store.OpAcquire, Agent: "a", TTL: time.Hour, Amounts: []store.Amount{{Unit: "requests", N: 1}}}}
		for {
			err := s.pool.Apply(context.Background(), ops)
			if err == nil {
				break
			}
			if time.Sleep(50 * time.Millisecond); !errors.Is(err, store.ErrUnavailable) || time.Since(began) > time.Minute {
				s.Fatal(err)
			}
		}
		if ops[0].Result.State == store.Granted {
			granted++
		}
	}
	if took := time.Since(began); granted != want || took > within {
		s.Errorf("%d granted after %v, want %d within %v", granted, took, want, within)
	}
}

// comesBack waits until the process has told the log what it knows.
func (s *survivor) comesBack() {
	s.Helper()
	for range 100 {
		if _, out := s.pool.(store.Alarm).Outage(); !out {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.Fatal("the outage is not over after 5s")
}

// A log whose end is lost is healed by the process that knows most, whoever notices first: here one that had not read the
// end and so does not miss it, or one that has just come.
func TestALostEndIsHealedByWhoKnowsIt(t *testing.T) {
	t.Parallel()
	for name, newcomer := range map[string]bool{"one that knows less": false, "a newcomer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, all := gathering(t, 3)
				all[1].takes(4, 4, time.Millisecond)
				all[2].takes(2, 2, time.Millisecond)
				time.Sleep(100 * time.Millisecond)
				all[0].takes(6, 6, time.Millisecond)
				server.LoseTail(50 * time.Millisecond) // only the first knows of its six
				next := all[1]
				if newcomer {
					next = join(t, server, 9)
				}
				next.takes(20, 8, 2*time.Second)
				for _, s := range all {
					s.takes(5, 0, 2*time.Second)
				}
			})
		})
	}
}

// A member that is stopped while the end of the log is lost holds nobody up for longer than the roll call. What the others
// have read of it counts; what only it knows it states before anything else when it goes on.
func TestAStoppedMemberOverALostEnd(t *testing.T) {
	t.Parallel()
	for name, read := range map[string]bool{"others know all": true, "it alone knows the end": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				server, all := gathering(t, 3)
				all[1].takes(4, 4, time.Millisecond)
				time.Sleep(100 * time.Millisecond)
				all[0].takes(6, 6, time.Millisecond)
				if read {
					all[1].takes(1, 1, time.Millisecond)
				}
				all[0].engine.stopped = make(chan struct{})
				server.LoseTail(50 * time.Millisecond)
				want := 20 - 4
				if read {
					want = 20 - 4 - 6 - 1
				} else {
					want -= 5 // leaves room, so that it shows what counts afterwards
				}
				all[2].takes(want, want, 2*time.Second)
				close(all[0].engine.stopped)
				all[0].comesBack()
				all[0].takes(20, 0, time.Second)
				all[1].takes(20, 0, time.Second)
			})
		})
	}
}

// Who is the only one left goes on soon.
func TestALoneSurvivorGoesOnSoon(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server, all := gathering(t, 3)
		all[0].takes(3, 3, time.Millisecond)
		all[1].takes(3, 3, time.Millisecond)
		for _, s := range all[:2] {
			s.engine.stopped = make(chan struct{})
			defer close(s.engine.stopped)
		}
		all[2].takes(1, 1, time.Millisecond)
		server.Flush()
		all[2].takes(20, 13, 2*time.Second)
		server.LoseTail(time.Millisecond)
		all[2].takes(20, 0, 2*time.Second)
	})
}
