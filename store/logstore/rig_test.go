package logstore_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/storetest"
)

// advance lets virtual time pass, and what is due then happen.
func advance(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// uptime is the clock of a machine in virtual time.
func uptime(machine uint64) logstore.Clock {
	began := time.Now()
	return logstore.Clock{Machine: machine, Uptime: func() time.Duration { return time.Since(began) }}
}

// serverAt returns a server whose clock shows the start of the suite's tests.
func serverAt(w *world.World) *world.Server {
	s := w.Server()
	s.StepClock(storetest.Start.Sub(store.Time(time.Now().UnixMicro())))
	return s
}

// openModel returns a store on the model of an engine. All sessions share a process.
func openModel(*testing.T) storetest.Harness {
	s := serverAt(world.New(1))
	return storetest.Harness{
		Store:   logstore.New(s.Connect(), logstore.WithClock(uptime(1)), logstore.WithTouch(0), logstore.Passive()),
		Advance: advance, RemindsLate: true,
	}
}

func openMem(*testing.T) storetest.Harness {
	c := storetest.NewClock(storetest.Start)
	return storetest.Harness{Store: memstore.New(memstore.WithClock(c)), Advance: c.Advance}
}

// apart is a store in which each session has a process of its own.
type apart struct {
	open func() *logstore.Store

	mu     sync.Mutex
	all    []*logstore.Store
	closed bool
}

// Pool implements [store.Store]. A session that restates belongs to the first process: it replaces what others said there.
func (a *apart) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, store.ErrClosed
	}
	if spec.Restate && len(a.all) > 0 {
		return a.all[0].Pool(ctx, spec)
	}
	s := a.open()
	a.all = append(a.all, s)
	return s.Pool(ctx, spec)
}

// Close implements [store.Store].
func (a *apart) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var errs []error
	for _, s := range a.all {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// Pools implements [store.Lister].
func (a *apart) Pools(ctx context.Context) (store.Listing, error) { return a.all[0].Pools(ctx) }

// Secret implements [store.Secrets].
func (a *apart) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	return a.all[len(a.all)-1].Secret(ctx, name, fresh)
}
