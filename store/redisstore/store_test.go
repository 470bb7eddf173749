package redisstore_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/redisstore"
	"github.com/sluicehq/sluice/store/storetest"
)

// The suite of stores runs on a real Redis in virtual time: a bubble of testing/synctest in which calls to Redis take no
// time, and stamps are those of the bubble. A goroutine of a bubble must not wait for one outside it by a channel of the
// bubble, or time would pass meanwhile. So all channels between them are made outside.

// outside carries out calls for goroutines of bubbles.
type outside struct {
	calls chan *call
	spare chan *call
}

type call struct {
	do   func()
	done chan struct{}
}

func newOutside(t *testing.T) *outside {
	const atOnce = 64
	o := &outside{make(chan *call), make(chan *call, atOnce)}
	var wg sync.WaitGroup
	for range atOnce {
		o.spare <- &call{done: make(chan struct{})}
		wg.Go(func() {
			for c := range o.calls {
				c.do()
				c.done <- struct{}{}
			}
		})
	}
	t.Cleanup(func() {
		close(o.calls)
		wg.Wait()
	})
	return o
}

func (o *outside) run(do func()) {
	c := <-o.spare
	c.do = do
	o.calls <- c
	<-c.done
	c.do = nil
	o.spare <- c
}

func run[T any](o *outside, do func(ctx context.Context) (T, error)) (got T, err error) {
	o.run(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		got, err = do(ctx)
	})
	return got, err
}

func runs(o *outside, do func(ctx context.Context) error) error {
	_, err := run(o, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// inside is an engine for the goroutines of a bubble. Its wake-ups do not leave the bubble: a subscription would never
// rest.
type inside struct {
	*outside
	engine *redisstore.Engine

	mu    sync.Mutex
	woken map[string][]chan struct{}
}

var prefixes atomic.Int64

func (o *outside) connect(t *testing.T, url string) sharedlog.Engine {
	t.Helper()
	behind := storetest.Start - store.Time(time.Now().UnixMicro())
	e, err := run(o, func(ctx context.Context) (*redisstore.Engine, error) {
		return redisstore.OpenEngine(ctx, fmt.Sprintf("%s%stimeout=1m&prefix=t%d", url, separator(url), prefixes.Add(1)))
	})
	if err != nil {
		t.Fatal(err)
	}
	var now atomic.Int64
	in := &inside{outside: &outside{o.calls, o.spare}, engine: e, woken: map[string][]chan struct{}{}}
	e.SetTime(func() store.Time { return store.Time(now.Load()) })
	return &clocked{in, func() { now.Store(time.Now().UnixMicro() + int64(behind)) }}
}

// clocked tells the engine the time of the bubble before each call.
type clocked struct {
	*inside
	tick func()
}

func (c *clocked) Log(pool string) sharedlog.Log { return &insideLog{c, c.engine.Log(pool), pool} }

func (c *clocked) Pools(context.Context) (names []string, whole bool, err error) {
	err = runs(c.outside, func(ctx context.Context) (err error) {
		names, whole, err = c.engine.Pools(ctx)
		return err
	})
	return names, whole, err
}

func (c *clocked) Secret(_ context.Context, name string, fresh []byte) ([]byte, error) {
	return run(c.outside, func(ctx context.Context) ([]byte, error) { return c.engine.Secret(ctx, name, fresh) })
}

func (c *clocked) Close() error {
	return runs(c.outside, func(context.Context) error { return c.engine.Close() })
}

type insideLog struct {
	*clocked
	log  sharedlog.Log
	name string
}

func (l *insideLog) Load(_ context.Context, known sharedlog.Position) (sharedlog.Loaded, error) {
	l.tick()
	return run(l.outside, func(ctx context.Context) (sharedlog.Loaded, error) { return l.log.Load(ctx, known) })
}

func (l *insideLog) Append(_ context.Context, at sharedlog.Position, entry []byte) (sharedlog.Entries, error) {
	l.tick()
	return run(l.outside, func(ctx context.Context) (sharedlog.Entries, error) { return l.log.Append(ctx, at, entry) })
}

func (l *insideLog) Read(_ context.Context, at sharedlog.Position) (sharedlog.Entries, error) {
	return run(l.outside, func(ctx context.Context) (sharedlog.Entries, error) { return l.log.Read(ctx, at) })
}

func (l *insideLog) Claim(_ context.Context, at sharedlog.Position, within time.Duration) (bool, error) {
	return run(l.outside, func(ctx context.Context) (bool, error) { return l.log.Claim(ctx, at, within) })
}

func (l *insideLog) Compact(_ context.Context, at sharedlog.Position, snapshot []byte) error {
	return runs(l.outside, func(ctx context.Context) error { return l.log.Compact(ctx, at, snapshot) })
}

func (l *insideLog) Keep(_ context.Context, at sharedlog.Position, unused time.Duration) error {
	return runs(l.outside, func(ctx context.Context) error { return l.log.Keep(ctx, at, unused) })
}

func (l *insideLog) Post(_ context.Context, process uint64, at sharedlog.Position) ([]sharedlog.Survivor, error) {
	return run(l.outside, func(ctx context.Context) ([]sharedlog.Survivor, error) { return l.log.Post(ctx, process, at) })
}

func (l *insideLog) Revive(_ context.Context, from sharedlog.Position, snapshot []byte) (sharedlog.Position, error) {
	return run(l.outside, func(ctx context.Context) (sharedlog.Position, error) { return l.log.Revive(ctx, from, snapshot) })
}

func (l *insideLog) channel(process uint64) string { return fmt.Sprint(l.name, " ", process) }

func (l *insideLog) Publish(_ context.Context, processes ...uint64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, process := range processes {
		for _, woken := range l.woken[l.channel(process)] {
			select {
			case woken <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

func (l *insideLog) Watch(ctx context.Context, process uint64) (<-chan struct{}, error) {
	woken := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.woken[l.channel(process)] = append(l.woken[l.channel(process)], woken)
	context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.woken, l.channel(process))
		close(woken)
	})
	return woken, nil
}

// opener returns a function that opens a store with a log of its own.
func opener(t *testing.T, url string) func(*testing.T) storetest.Harness {
	o := newOutside(t)
	return func(t *testing.T) storetest.Harness {
		began := time.Now()
		clock := logstore.Clock{Machine: 1, Uptime: func() time.Duration { return time.Since(began) }}
		return storetest.Harness{
			Store:   logstore.New(o.connect(t, url), logstore.WithClock(clock), logstore.WithTouch(0), logstore.Passive(), logstore.WithPatience(time.Hour)),
			Advance: func(d time.Duration) { time.Sleep(d); synctest.Wait() }, RemindsLate: true,
		}
	}
}

func TestStoreOnOneServer(t *testing.T) {
	t.Parallel()
	storetest.RunVirtual(t, opener(t, redisrun.New(t).URL()))
}

func TestSameDecisionsOnOneServer(t *testing.T) {
	t.Parallel()
	sameDecisions(t, opener(t, redisrun.New(t).URL()))
}

func sameDecisions(t *testing.T, open func(*testing.T) storetest.Harness) {
	storetest.DifferentialVirtual(t, func(*testing.T) storetest.Harness {
		c := storetest.NewClock(storetest.Start)
		return storetest.Harness{Store: memstore.New(memstore.WithClock(c)), Advance: c.Advance}
	}, func(t *testing.T) storetest.Harness {
		h := open(t)
		h.Store = storetest.Stepped{Store: h.Store}
		return h
	})
}

// Nothing that a store writes stays in Redis for ever, also not what it writes after a loss.
func TestPoolsExpire(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	s, err := redisstore.Open(t.Context(), server.URL()+"?timeout=30s")
	if err != nil {
		t.Fatal(err)
	}
	backoff := store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}
	p, err := s.Pool(t.Context(), store.Spec{
		Name: "api", Limits: []store.Limit{{Name: "window", Kind: store.Rolling, Unit: "requests", Size: 5, Window: time.Minute}},
		Classes: []store.Class{{Name: "p0", Weight: 1}}, Throttle: backoff, Overload: backoff,
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := redisstore.Eternal(t, server); n != "0" {
		t.Errorf("%s keys of a new pool have no end", n)
	}
	if _, err := server.Do(t.Context(), "FLUSHALL"); err != nil {
		t.Fatal(err)
	}
	if err := p.Apply(t.Context(), []store.Op{{Kind: store.OpPoll}}); err != nil {
		t.Fatal(err)
	}
	if n := redisstore.Eternal(t, server); n != "0" {
		t.Errorf("%s keys of a pool that was lost have no end", n)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// separator returns what comes before another parameter of a URL.
func separator(url string) string {
	if strings.Contains(url, "?") {
		return "&"
	}
	return "?"
}
