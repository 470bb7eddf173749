package redisstore_test

import (
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

func slotsOf(n int64) store.Limit {
	return store.Limit{Name: "slots", Kind: store.Concurrency, Unit: "requests", Size: n}
}

func TestAnotherProcessWakesWhoWaits(t *testing.T) {
	t.Parallel()
	url := single.URL() + "?prefix=wake1"
	a, b := join(t, url, passing(slotsOf(1))), join(t, url, passing(slotsOf(1)))
	soonest := patience
	for range 5 {
		held := a.take(1)
		id := b.must(waiting(ask(1)), store.Waiting)
		began := time.Now()
		a.close(held)
		switch s := b.collect(id); s {
		case store.Granted:
			soonest = min(soonest, time.Since(began))
			b.close(id)
		case store.Ended: // it was told so late that the grant had lapsed
		default:
			t.Fatalf("it is %v", s)
		}
	}
	// Those who wait are asked after every three seconds as well. A busy machine can be as late as that, but not every time.
	if soonest > 2*time.Second {
		t.Errorf("it took %v to hear of it", soonest)
	}
}

func TestTimeWakesWhoWaits(t *testing.T) {
	t.Parallel()
	url := single.URL() + "?prefix=wake2"
	limit := perMinute(1)
	limit.Window = time.Second
	a, b := join(t, url, passing(limit)), join(t, url, passing(limit))
	a.take(1)
	id := b.must(waiting(ask(1)), store.Waiting)
	if s := b.collect(id); s != store.Granted {
		t.Fatalf("it is %v", s)
	}
}

// A request waited forever if the message that granted it was lost with its connection.
func TestWhoMissedAMessageIsTold(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	a, b := join(t, server.URL(), passing(slotsOf(1))), join(t, server.URL(), passing(slotsOf(1)))
	held := a.take(1)
	id := b.must(waiting(ask(1)), store.Waiting)
	do(t, server, "CLIENT", "KILL", "TYPE", "pubsub")
	a.close(held)
	if s := b.collect(id); s != store.Granted {
		t.Fatalf("it is %v", s)
	}
}

// The requests of a killed process stayed in the queue and blocked those behind them.
func TestWhoWaitsDiesWithItsProcess(t *testing.T) {
	t.Parallel()
	url := single.URL() + "?prefix=dead"
	a, b := join(t, url, passing(slotsOf(1))), join(t, url, passing(slotsOf(1)))
	a.take(1)
	b.must(waiting(ask(1)), store.Waiting)
	c := join(t, url, passing(slotsOf(1)))
	alive := c.must(waiting(ask(1)), store.Waiting)
	b.store.Kill()
	await(t, "the one that was killed is out of the queue", func() bool { return a.snapshot().Waiting[0] == 1 })
	if s := c.state(alive); s != store.Waiting {
		t.Errorf("the one that lives is %v", s)
	}
	if _, waits, _ := redisstore.Notes(c.pool); waits != 1 {
		t.Errorf("%d are noted", waits)
	}
}

// A request that was granted by another member's limits was never told.
func TestOtherLimitsWakeWhoWaits(t *testing.T) {
	t.Parallel()
	url := single.URL() + "?prefix=reform"
	a := join(t, url, passing(slotsOf(2)))
	a.take(1)
	a.take(1)
	id := a.must(waiting(ask(1)), store.Waiting)
	if s := a.state(id); s != store.Waiting {
		t.Fatalf("it is %v", s)
	}
	// A smaller size holds, a larger one does not while others are there.
	b := join(t, url, passing(slotsOf(1)))
	if size := b.snapshot().Limits[0].Size; size != 1 {
		t.Errorf("the size is %d", size)
	}
	join(t, url, passing(slotsOf(5)))
	if size := b.snapshot().Limits[0].Size; size != 1 {
		t.Errorf("the size is %d", size)
	}
}

// A process that is alone replaces limits that earlier processes left behind.
func TestWhoIsAloneReplacesTheLimits(t *testing.T) {
	t.Parallel()
	url := single.URL() + "?prefix=alone"
	a := join(t, url, poolOf(slotsOf(2)))
	a.joined()
	b := join(t, url, poolOf(slotsOf(5)))
	if size := b.snapshot().Limits[0].Size; size != 2 {
		t.Errorf("beside another the size is %d", size)
	}
	_ = a.store.Close()
	_ = b.store.Close()
	c := join(t, url, poolOf(slotsOf(5)))
	if size := c.snapshot().Limits[0].Size; size != 5 {
		t.Errorf("alone the size is %d", size)
	}
	other := slotsOf(5)
	other.Kind, other.Window = store.Rolling, time.Minute
	_ = c.store.Close()
	d := join(t, url, poolOf(other))
	d.take(4)
	if l := d.snapshot().Limits; len(l) != 1 || l[0].Used != 4 {
		t.Errorf("limits: %+v", l)
	}
}

// Opening a pool gave up after two seconds, whatever timeout the URL stated.
func TestOpeningAPoolTakesTheTimeThatTheURLAllows(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	s, err := redisstore.Open(t.Context(), server.URL()+"?timeout=1m", redisstore.WithStateDir(""))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	opened := make(chan error, 1)
	go func() {
		_, err := s.Pool(t.Context(), passing(slotsOf(1)))
		opened <- err
	}()
	select {
	case err := <-opened:
		t.Errorf("it gave up: %v", err)
	case <-time.After(2500 * time.Millisecond): // two tries of a second each, and a pause between them
	}
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Error(err)
	}
}
