package metrics

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
)

// faulty is a store that tests can break.
type faulty struct {
	store.Store
	faults *faults
}

// faults is what is wrong with a store, and how often its state was read.
type faults struct {
	fail  atomic.Bool
	out   atomic.Bool
	reads atomic.Int64
	hold  atomic.Pointer[chan struct{}] // reads wait until it is closed
}

var (
	faultyStores sync.Map // by URL
	nextStore    atomic.Int64
)

func init() {
	store.Register("faulty", func(ctx context.Context, url string) (store.Store, error) {
		f, _ := faultyStores.Load(url)
		st, err := store.Open(ctx, "mem:")
		return &faulty{st, f.(*faults)}, err
	})
}

func newFaults() (url string, f *faults) {
	url, f = fmt.Sprintf("faulty:%d", nextStore.Add(1)), &faults{}
	faultyStores.Store(url, f)
	return url, f
}

func (s *faulty) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.Store.Pool(ctx, spec)
	return &faultyPool{p, s.faults}, err
}

type faultyPool struct {
	store.Pool
	faults *faults
}

func (p *faultyPool) Snapshot(ctx context.Context) (store.Snapshot, error) {
	p.faults.reads.Add(1)
	if hold := p.faults.hold.Load(); hold != nil {
		<-*hold // whatever ctx says: the worst that a store can do
	}
	if p.faults.fail.Load() {
		return store.Snapshot{}, store.ErrUnavailable
	}
	return p.Pool.Snapshot(ctx)
}

// OnOutage makes it a store.Alarm.
func (p *faultyPool) OnOutage(func(store.Outage, bool)) {}

func (p *faultyPool) Outage() (store.Outage, bool) {
	return store.Outage{Mode: store.FailShare, Why: "it is broken"}, p.faults.out.Load()
}

func TestNoGate(t *testing.T) {
	body := scrape(t, New(Options{}))
	has(t, body, "sluice_store_up 0", "sluice_leases_lost_total 0")
	hasNot(t, body, "sluice_light", "sluice_estimate_error_ratio")
}

func TestClosedGate(t *testing.T) {
	r, g := open(t, sluice.Config{Resources: api(hourly(10))})
	if err := acquire(t, g, sluice.Request{Agent: "a", Class: sluice.P1}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	body := scrape(t, r)
	has(t, body, "sluice_store_up 0", "sluice_store_read_failures_total 1", `sluice_sends_total{class="p1",resource="api"} 1`)
	hasNot(t, body, "sluice_light", "sluice_limit_", "sluice_waiting_requests")
}

func TestStoreFails(t *testing.T) {
	url, f := newFaults()
	r, _ := open(t, sluice.Config{Store: url, Resources: api(hourly(10))})
	has(t, scrape(t, r), "sluice_store_up 1", `sluice_light{resource="api"} 0`)
	f.fail.Store(true)
	body := scrape(t, r)
	has(t, body, "sluice_store_up 0", "sluice_store_read_failures_total 1")
	hasNot(t, body, "sluice_light")
	f.fail.Store(false)
	has(t, scrape(t, r), "sluice_store_up 1", `sluice_light{resource="api"} 0`, "sluice_store_read_failures_total 1", "sluice_store_read_seconds_count 3")
}

// A process that continues within its share gets no error: its state shows the outage.
func TestOutage(t *testing.T) {
	url, f := newFaults()
	r, _ := open(t, sluice.Config{Store: url, Resources: api(hourly(10))})
	f.out.Store(true)
	body := scrape(t, r)
	has(t, body, "sluice_store_up 0", `sluice_store_outage{resource="api"} 1`)
	hasNot(t, body, "sluice_light", "sluice_limit_", "sluice_pool_")
	f.out.Store(false)
	has(t, scrape(t, r), "sluice_store_up 1", `sluice_store_outage{resource="api"} 0`)
}

// A hanging store delays a scrape by no more than the timeout, and causes one read for any number of scrapes.
func TestStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, f := newFaults()
		r, _ := open(t, sluice.Config{Store: url, Resources: api(hourly(10))})
		hold := make(chan struct{})
		release := sync.OnceFunc(func() { close(hold) })
		defer release()
		f.hold.Store(&hold)
		before := f.reads.Load()
		for range 5 {
			began := time.Now()
			has(t, scrape(t, r), "sluice_store_up 0", "sluice_store_read_failures_total 1", "sluice_store_read_seconds_count 1")
			if took := time.Since(began); took > 2*DefaultTimeout {
				t.Errorf("a scrape took %v", took)
			}
		}
		if n := f.reads.Load() - before; n != 1 {
			t.Errorf("%d reads are under way, want 1", n)
		}
		f.hold.Store(nil)
		release()
		synctest.Wait()
		has(t, scrape(t, r), "sluice_store_up 1")
	})
}

func TestScrapesShareARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, f := newFaults()
		r, _ := open(t, sluice.Config{Store: url, Resources: api(hourly(10))})
		hold := make(chan struct{})
		release := sync.OnceFunc(func() { close(hold) })
		defer release()
		f.hold.Store(&hold)
		before := f.reads.Load()
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { has(t, scrape(t, r), "sluice_store_up 1", "sluice_store_read_failures_total 0") })
		}
		synctest.Wait() // all wait for the store
		if n := f.reads.Load() - before; n != 1 {
			t.Errorf("%d reads, want 1", n)
		}
		f.hold.Store(nil)
		release()
		wg.Wait()
		if n := f.reads.Load() - before; n > 3 { // of the resource, the fleet and the budgets
			t.Errorf("%d reads in all", n)
		}
	})
}

// Too many concurrent scrapes are refused, and the daemon continues.
func TestTooManyScrapes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, f := newFaults()
		r, _ := open(t, sluice.Config{Store: url, Resources: api(hourly(10))})
		hold := make(chan struct{})
		release := sync.OnceFunc(func() { close(hold) })
		defer release()
		f.hold.Store(&hold)
		handler := r.Handler()
		var wg sync.WaitGroup
		var refused atomic.Int64
		for range maxScrapes + 4 {
			wg.Go(func() {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
				if w.Code == http.StatusServiceUnavailable {
					refused.Add(1)
				}
			})
		}
		synctest.Wait()
		f.hold.Store(nil)
		release()
		wg.Wait()
		if refused.Load() != 4 {
			t.Errorf("%d were sent away, want 4", refused.Load())
		}
	})
}

func TestConcurrent(t *testing.T) {
	r, g := open(t, sluice.Config{Resources: api(sluice.Limit{Name: "minute", Kind: sluice.Rolling, Size: 100_000, Window: time.Minute})})
	const workers, each = 8, 50
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for range each {
				t, err := g.Try(context.Background(), sluice.Request{Resource: "api", Agent: fmt.Sprint("a", w), Class: sluice.P1})
				if err != nil {
					continue
				}
				_ = t.Close(sluice.Amount{Unit: "tokens", N: 1}) // what is lost is missed below
				r.Done(sluicehttp.Exchange{Resource: "api", Class: sluice.P1, Ticket: t.ID(), Status: 200})
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			for range 5 {
				scrape(t, r)
			}
		})
	}
	wg.Wait()
	body := scrape(t, r)
	refused := strings.Count(grep(body, "sluice_refused_total"), "\n")
	has(t, body, fmt.Sprintf(`sluice_pool_sends_total{resource="api"} %d`, workers*each), fmt.Sprintf(`sluice_sends_total{class="p1",resource="api"} %d`, workers*each),
		fmt.Sprintf(`sluice_tokens_total{class="p1",kind="any",resource="api"} %d`, workers*each),
		fmt.Sprintf(`sluice_proxy_requests_total{class="p1",code="2xx",resource="api"} %d`, workers*each))
	if refused > 0 {
		t.Errorf("some were refused:\n%s", grep(body, "sluice_refused_total"))
	}
}

// What was read before a failure is exported: of a state without budgets, everything else.
func TestHalfRead(t *testing.T) {
	r, g := open(t, sluice.Config{Resources: api(hourly(10))})
	status, err := g.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	half := &reading{done: make(chan struct{}), status: status, err: store.ErrUnavailable}
	close(half.done)
	m := &maker{registry: r.registry}
	s := newState(m, &reader{gate: &r.gate, now: half}, nil)
	told := prometheus.NewRegistry()
	told.MustRegister(s)
	w := httptest.NewRecorder()
	promhttp.HandlerFor(told, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	has(t, w.Body.String(), "sluice_store_up 0", `sluice_light{resource="api"} 0`)
}
