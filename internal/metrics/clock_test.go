package metrics

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// slow is a pool that takes its time and fails as it is told.
type slow struct {
	store.Pool
	takes time.Duration
	err   error
}

func (p *slow) Apply(context.Context, []store.Op) error {
	time.Sleep(p.takes)
	return p.err
}

func (p *slow) Snapshot(context.Context) (store.Snapshot, error) {
	time.Sleep(p.takes)
	return store.Snapshot{}, p.err
}

func (p *slow) CloseTicket(store.ID, bool) error             { return p.err }
func (p *slow) CollectTicket(store.ID) (store.Result, error) { return store.Result{}, p.err }

// oneStore has one pool.
type oneStore struct {
	pool store.Pool
	err  error
}

func (s oneStore) Pool(context.Context, store.Spec) (store.Pool, error) { return s.pool, s.err }
func (s oneStore) Close() error                                         { return nil }

func TestStoreOperations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, p := New(Options{}), &slow{takes: 3 * time.Millisecond}
		pool, err := r.Store(oneStore{pool: p}).Pool(t.Context(), store.Spec{})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(kinds ...store.OpKind) {
			ops := make([]store.Op, len(kinds))
			for i, k := range kinds {
				ops[i].Kind = k
			}
			if err := pool.Apply(t.Context(), ops); !errors.Is(err, p.err) {
				t.Errorf("the error is %v, want %v", err, p.err)
			}
		}
		ask(store.OpAcquire)
		ask(store.OpAcquire, store.OpAcquire)
		ask(store.OpAcquire, store.OpClose)
		ask(store.OpAnswer, store.OpClose, store.OpAcquire)
		ask()
		p.err = fmt.Errorf("dial: %w", store.ErrUnavailable)
		ask(store.OpAcquire)
		if _, err := pool.Snapshot(t.Context()); !errors.Is(err, p.err) {
			t.Error(err)
		}
		quick := store.Can(pool).Quick
		if err := quick.CloseTicket(store.ID{}, false); !errors.Is(err, p.err) {
			t.Error(err)
		}
		if _, err := quick.CollectTicket(store.ID{}); !errors.Is(err, p.err) {
			t.Error(err)
		}
		for _, p.err = range []error{context.Canceled, store.ErrClosed} { // nothing is wrong with the store
			ask(store.OpAnswer)
		}
		p.err = context.DeadlineExceeded
		ask(store.OpHeartbeat)
		if _, err := r.Store(oneStore{err: store.ErrUnavailable}).Pool(t.Context(), store.Spec{}); err == nil {
			t.Error("a pool that cannot be opened was")
		}
		body := scrape(t, r)
		has(t, body,
			`sluice_store_operation_seconds_count{operation="acquire"} 4`, `sluice_store_operation_seconds_bucket{operation="acquire",le="0.0025"} 0`,
			`sluice_store_operation_seconds_bucket{operation="acquire",le="0.005"} 4`, `sluice_store_faults_total{operation="acquire"} 1`,
			`sluice_store_operation_seconds_count{operation="batch"} 2`, `sluice_store_faults_total{operation="batch"} 0`,
			`sluice_store_faults_total{operation="snapshot"} 1`, `sluice_store_faults_total{operation="close"} 1`, `sluice_store_faults_total{operation="poll"} 1`,
			`sluice_store_operation_seconds_count{operation="answer"} 2`, `sluice_store_faults_total{operation="answer"} 0`,
			`sluice_store_faults_total{operation="heartbeat"} 1`, `sluice_store_faults_total{operation="open"} 1`, `sluice_store_operation_seconds_count{operation="open"} 2`,
		)
		hasNot(t, body, `sluice_store_operation_seconds_count{operation="pause"}`)
	})
}

// A gate on a measured store works as on a plain one, and its operations are measured.
func TestGateOnAClockedStore(t *testing.T) {
	st, err := store.Open(t.Context(), "mem:")
	if err != nil {
		t.Fatal(err)
	}
	r := New(Options{})
	clocked := r.Store(st)
	g, err := sluice.OpenWithStore(t.Context(), clocked, sluice.Config{Store: "mem:", Resources: api(hourly(2)), Events: r.Event})
	if err != nil {
		t.Fatal(err)
	}
	r.SetGate(g)
	if err := acquire(t, g, sluice.Request{Agent: "a"}).Close(); err != nil {
		t.Fatal(err)
	}
	held := acquire(t, g, sluice.Request{Agent: "a"})
	if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "b"}); !errors.Is(err, sluice.ErrNotNow) {
		t.Errorf("the limit does not hold: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if rep, err := g.Report(t.Context(), time.Now().Add(-time.Hour)); err != nil || len(rep.Resources) != 1 || rep.Resources[0].Total.FirstSends != 2 {
		t.Errorf("the report is %+v, %v", rep, err)
	}
	has(t, scrape(t, r), `sluice_store_operation_seconds_count{operation="acquire"} 3`, `sluice_store_operation_seconds_count{operation="close"} 2`,
		`sluice_store_operation_seconds_count{operation="history"} 1`, "sluice_store_up 1")
	if err := errors.Join(g.Close(), clocked.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := clocked.Pool(t.Context(), store.Spec{}); err == nil {
		t.Error("the store was not closed")
	}
}

type (
	canRecord struct{}
	canAlarm  struct{}
	canQuick  struct{}
)

func (canQuick) CloseTicket(store.ID, bool) error             { return nil }
func (canQuick) CollectTicket(store.ID) (store.Result, error) { return store.Result{}, nil }
func (canRecord) History(context.Context, store.Time) (store.History, error) {
	return store.History{}, nil
}
func (canAlarm) OnOutage(func(store.Outage, bool)) {}
func (canAlarm) Outage() (store.Outage, bool)      { return store.Outage{}, true }

// A measured pool has exactly the abilities of the plain one, because callers rely on them.
func TestAbilities(t *testing.T) {
	o := New(Options{}).operated
	all := struct {
		store.Pool
		canQuick
		canRecord
		canAlarm
	}{}
	for name, pool := range map[string]store.Pool{
		"none": struct{ store.Pool }{},
		"one": struct {
			store.Pool
			canRecord
		}{},
		"all": all, "twice": &clockedPool{all, o},
	} {
		plain, measured := reflect.ValueOf(store.Can(pool)), reflect.ValueOf(store.Can(&clockedPool{pool, o}))
		for i := range plain.NumField() {
			if plain.Field(i).IsNil() != measured.Field(i).IsNil() {
				t.Errorf("%s: with a clock, %s is %v, without it %v", name, plain.Type().Field(i).Name, measured.Field(i), plain.Field(i))
			}
		}
	}
}

// Measuring allocates no memory.
func TestClockAllocatesNothing(t *testing.T) {
	pool := &clockedPool{&slow{}, New(Options{}).operated}
	ops := make([]store.Op, 1)
	if n := testing.AllocsPerRun(100, func() { _ = pool.Apply(t.Context(), ops) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
