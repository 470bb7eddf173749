package redisstore_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

// collectAs waits to be told of a ticket, and returns what was granted.
func (m *member) collectAs(id store.ID) store.Result {
	m.Helper()
	end := time.After(patience)
	for {
		if m.heard[id] {
			delete(m.heard, id)
			if r := m.do(store.Op{Kind: store.OpPoll, ID: id}); r.State != store.Waiting {
				return r
			}
		}
		select {
		case ids := <-m.told:
			for _, told := range ids {
				m.heard[told] = true
			}
		case <-end:
			m.Fatal("nobody told of it")
		}
	}
}

// crowded is a member that has 3 of 6 places, beside one that is no member and has the others.
func crowded(t *testing.T, url, direct string) (m, other *member, held, theirs []store.ID) {
	t.Helper()
	m = join(t, url, failing(store.FailShare, slotsOf(6)))
	other = join(t, direct, passing(slotsOf(6)))
	m.joined()
	long := ask(1)
	long.TTL = time.Hour
	for range 3 {
		held = append(held, m.take(1))
		theirs = append(theirs, other.must(long, store.Granted))
	}
	return m, other, held, theirs
}

// isCutOff waits until a member knows that the store is lost.
func (m *member) isCutOff() {
	m.Helper()
	await(m.T, "it is cut off", func() bool { _, _ = m.try(ask(1), quick); return m.lost() })
}

// Requests that wait in Redis when it is lost are granted within the share, before newer ones. Redis hears of it when it is
// back, and nothing is left behind.
func TestWhoWaitsInRedisGoesOnWithinTheShare(t *testing.T) {
	for how, cut := range down {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := redisrun.New(t, persistent...)
			m, _, held, _ := crowded(t, server.URL(), server.URL())
			var ids []store.ID
			for range 4 {
				ids = append(ids, m.must(waiting(ask(1)), store.Waiting))
			}
			m.store.AnswerWithin(0)
			if err := cut(server); err != nil {
				t.Fatal(err)
			}
			m.isCutOff()
			newer := m.must(waiting(ask(1)), store.Waiting)
			for _, id := range held {
				m.close(id)
			}
			var got []store.ID
			for _, id := range ids[:3] { // its share is the half that it had
				r := m.collectAs(id)
				if r.State != store.Granted || r.ID == id || r.Waited <= 0 {
					t.Fatalf("of %v became %+v", id, r)
				}
				got = append(got, r.ID)
			}
			if o, _ := m.pool.(store.Alarm).Outage(); o.Granted != 3 {
				t.Errorf("%d were granted", o.Granted)
			}
			for _, id := range []store.ID{ids[3], newer} {
				if s := m.state(id); s != store.Waiting {
					t.Errorf("without room it is %v", s)
				}
			}
			m.close(got[0])
			if r := m.collectAs(ids[3]); r.State != store.Granted {
				t.Errorf("the last one is %+v", r)
			} else {
				got[0] = r.ID
			}
			m.store.AnswerWithin(unhurried)
			up(t, how, server)
			m.back()
			if s := m.snapshot(); s.InFlight != 6 || s.Waiting[0] > 1 || s.Counters.Sent != 6+3 {
				t.Errorf("%d are in flight, want 6; %v wait, want the newer one; %d were sent, want 9", s.InFlight, s.Waiting, s.Counters.Sent)
			}
			for _, id := range got {
				m.close(id)
			}
			m.must(store.Op{Kind: store.OpCancel, ID: newer}, store.Ended)
			await(t, "nothing is left", func() bool {
				s := m.snapshot()
				open, waits, void := redisstore.Notes(m.pool)
				return s.InFlight == 3 && s.Waiting[0] == 0 && open+waits+void == 0
			})
		})
	}
}

// Waiting requests keep their places in Redis during a short outage.
func TestWhoWaitsInRedisKeepsItsPlace(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	c := newCutter(t, server.Addr())
	m, other, _, theirs := crowded(t, c.url(), server.URL())
	first := m.must(waiting(ask(1)), store.Waiting)
	second := other.must(waiting(ask(1)), store.Waiting)
	m.store.AnswerWithin(0)
	began := time.Now()
	c.block(true)
	m.isCutOff()
	if s := m.state(first); s != store.Waiting {
		t.Errorf("meanwhile it is %v", s)
	}
	m.store.AnswerWithin(unhurried)
	c.block(false)
	m.back()
	slow := time.Since(began) > 5*time.Second // Redis may have given the request up
	freed := time.Now()
	other.close(theirs[0])
	r := m.collectAs(first)
	slow = slow || time.Since(freed) > time.Second // Redis may have taken back a grant that was not collected
	switch {
	case r.State == store.Granted && r.ID == first:
		if s := other.state(second); s != store.Waiting {
			t.Errorf("the one behind it is %v", s)
		}
	case slow && r.State != store.Granted: // it asks again
	default:
		t.Errorf("it is %+v", r)
	}
}

// Redis grants a request, and its answer is lost. Then the process grants it as well. Redis takes its grant back when it hears of
// that.
func TestRedisAndTheProcessGrantTheSameRequest(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	c := newCutter(t, server.Addr())
	m, other, held, theirs := crowded(t, c.url(), server.URL())
	id := m.must(waiting(ask(1)), store.Waiting)
	m.store.AnswerWithin(0)
	c.swallow(0, 1<<20) // from now on what is asked is done, and no answer arrives
	other.close(theirs[0])
	if s := m.state(id); s != store.Waiting {
		t.Errorf("it is %v", s)
	}
	c.block(true)
	m.isCutOff()
	m.close(held[0])
	r := m.collectAs(id)
	if r.State != store.Granted || r.ID == id {
		t.Fatalf("it is %+v", r)
	}
	c.swallow(0, 0)
	m.store.AnswerWithin(unhurried)
	c.block(false)
	m.back()
	if s := other.snapshot(); s.InFlight != 2+2+1 || s.Waiting[0] != 0 { // others' two, two from before, and the one
		t.Errorf("%d are in flight, %v wait", s.InFlight, s.Waiting)
	}
	m.close(r.ID)
	if s := other.snapshot(); s.InFlight != 2+2 {
		t.Errorf("in the end %d are in flight", s.InFlight)
	}
}

// Requests that were cancelled during an outage, or whose session was closed, no longer wait in Redis afterwards.
func TestCancelsAndClosedSessionsWithoutRedis(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	c := newCutter(t, server.Addr())
	m, other, held, _ := crowded(t, c.url(), server.URL())
	also := &member{T: t, store: m.store, told: make(chan []store.ID, 1000), heard: map[store.ID]bool{}}
	also.pool = also.open(failing(store.FailShare, slotsOf(6)))
	var ids []store.ID
	for range 3 {
		ids = append(ids, m.must(waiting(ask(1)), store.Waiting))
		also.must(waiting(ask(1)), store.Waiting)
	}
	m.store.AnswerWithin(0)
	c.block(true)
	m.isCutOff()
	m.must(store.Op{Kind: store.OpCancel, ID: ids[0]}, store.Ended)
	if s := m.state(ids[0]); s != store.Ended {
		t.Errorf("what was cancelled is %v", s)
	}
	if err := also.pool.Close(); err != nil {
		t.Error(err)
	}
	m.close(held[0])
	m.close(held[1])
	got := m.collectAs(ids[1])
	if got.State != store.Granted {
		t.Errorf("it is %+v", got)
	}
	m.must(store.Op{Kind: store.OpCancel, ID: ids[2]}, store.Ended) // it was granted, and perhaps told of
	m.store.AnswerWithin(unhurried)
	c.block(false)
	m.back()
	if s := other.snapshot(); s.InFlight != 3+1+1 || s.Waiting[0] != 0 { // others' three, one from before, and the one
		t.Errorf("%d are in flight, %v wait", s.InFlight, s.Waiting)
	}
}

// callers are goroutines of one process that want to send without end through a gate.
type callers struct {
	store *redisstore.Store
	pool  store.Pool // of the gate, to look at
	sent  func() []time.Time
}

func (c *callers) lost() bool { _, lost := c.pool.(store.Alarm).Outage(); return lost }

// call has callers begin, until ctx ends. Nearly all of them wait at any time.
func call(ctx context.Context, t *testing.T, url string, size int64, window time.Duration) *callers {
	t.Helper()
	st, err := redisstore.Open(ctx, slowly(url), redisstore.WithStateDir(""))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	st.AnswerWithin(unhurried)
	g, err := sluice.OpenWithStore(ctx, st, sluice.Config{Store: url, Resources: map[string]sluice.Resource{
		"api": {Limits: []sluice.Limit{{Name: "brief", Kind: sluice.Rolling, Size: size, Window: window}}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var sent []time.Time
	var wg sync.WaitGroup
	t.Cleanup(func() { wg.Wait(); _ = g.Close() })
	for range 12 {
		wg.Go(func() {
			for ctx.Err() == nil {
				ticket, err := g.Acquire(ctx, sluice.Request{Resource: "api", Agent: "a"})
				at := time.Now()
				switch {
				case err != nil:
					time.Sleep(10 * time.Millisecond)
				case ticket.Stale():
					_ = ticket.Cancel()
				default: // it has arrived at that moment
					mu.Lock()
					sent = append(sent, at)
					mu.Unlock()
					_ = ticket.Close()
				}
			}
		})
	}
	look, err := st.Pool(ctx, store.Spec{Name: "api", ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	await(t, "it is a member", func() bool { return redisstore.Share(look) > 0 })
	return &callers{st, look, func() []time.Time {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(sent)
	}}
}

// Callers of a gate that wait in Redis when it is lost go on within the share. Together with those of a gate that still reaches
// Redis they keep to the limit.
func TestQueuesOfGatesKeepToTheLimitTogether(t *testing.T) {
	t.Parallel()
	const window, size = 2 * time.Second, 12
	server := redisrun.New(t)
	c := newCutter(t, server.Addr())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	here, there := call(ctx, t, c.url(), size, window), call(ctx, t, server.URL(), size, window)
	await(t, "both send", func() bool { return len(here.sent()) > 0 && len(there.sent()) > 0 })
	here.store.AnswerWithin(0)
	c.block(true)
	await(t, "it is cut off", here.lost)
	before := len(here.sent())
	await(t, "those who waited go on", func() bool { return len(here.sent()) >= before+3 })
	if !here.lost() {
		t.Error("Redis was back before")
	}
	here.store.AnswerWithin(unhurried)
	c.block(false)
	await(t, "Redis is back", func() bool { return !here.lost() })
	before = len(here.sent()) + len(there.sent())
	await(t, "all go on", func() bool { return len(here.sent())+len(there.sent()) >= before+size/2 })
	cancel()
	var all []span
	for _, at := range append(here.sent(), there.sent()...) {
		all = append(all, span{at, at})
	}
	if n := mostWithin(all, window); n > size {
		t.Errorf("%d arrived in a window, of %d", n, size)
	}
}
