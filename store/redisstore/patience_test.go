package redisstore_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

// A server that replies late for minutes is lost a few times; then the timeout grows.
func TestASlowServerIsNotLostAgainAndAgain(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	m := join(t, server.URL(), failing(store.FailClosed, slotsOf(1000)))
	m.take(1)
	m.store.AnswerWithin(0)
	var outages atomic.Int32
	m.pool.(store.Alarm).OnOutage(func(_ store.Outage, over bool) {
		if !over {
			outages.Add(1)
		}
	})
	const rounds, late = 8, 700 * time.Millisecond
	for range rounds {
		if err := server.Pause(); err != nil {
			t.Fatal(err)
		}
		woken := make(chan error, 1)
		time.AfterFunc(late, func() { woken <- server.Resume() })
		for began := time.Now(); ; {
			if _, err := m.try(ask(1), patience); err == nil {
				break
			} else if time.Since(began) > patience {
				t.Fatal("it does not come back:", err)
			}
		}
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
	}
	if n := outages.Load(); n > rounds/2 {
		t.Errorf("the store was lost in %d of %d rounds", n, rounds)
	}
}

func TestTheTimeoutOfAURLIsPatience(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		10 * time.Millisecond: 500 * time.Millisecond, 2 * time.Second: 500 * time.Millisecond, 8 * time.Second: 2 * time.Second, time.Minute: 5 * time.Second,
	} {
		if got := redisstore.AnswerFor(timeout); got != want {
			t.Errorf("with a timeout of %v an answer may take %v, want %v", timeout, got, want)
		}
	}
}
