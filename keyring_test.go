package sluice_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/store"
)

var bothKeys = []string{"11111111", "22222222"}

// anyKey returns a request that may use either key.
func anyKey(agent string) sluice.Request {
	return sluice.Request{Resource: "api", Agent: agent, Keys: bothKeys}
}

func TestTheFirstKeyThatCanGoIsTaken(t *testing.T) {
	g := split(t, "mem:", sluice.Resource{Limits: twoAnHour, SplitKeys: true})
	for _, want := range []string{"11111111", "11111111", "22222222", "22222222"} {
		ticket, err := g.Try(t.Context(), anyKey("a"))
		if err != nil || ticket.Key() != want {
			t.Fatalf("%q %v, want %q", ticket.Key(), err, want)
		}
		_ = ticket.Close()
	}
	_, err := g.Try(t.Context(), anyKey("a"))
	var e *sluice.Error
	if !errors.Is(err, sluice.ErrNotNow) || !errors.As(err, &e) || e.Limit != "hour" || e.RetryAt.IsZero() {
		t.Errorf("with no room on either: %v", err)
	}
	big := anyKey("a")
	big.Cost = []sluice.Amount{{Unit: sluice.Requests, N: 3}}
	if _, err := g.Try(t.Context(), big); !errors.Is(err, sluice.ErrCapacity) {
		t.Errorf("more than either can hold: %v", err)
	}
}

// A request that waits for one key takes another that has room earlier, whichever process learns of it.
func TestARequestThatWaitsTakesTheOtherKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []sluice.Limit{{Name: "places", Kind: store.Concurrency, Size: 1}}
		g := split(t, "mem:", sluice.Resource{Limits: limits, SplitKeys: true})
		var held []sluice.Ticket
		for range bothKeys {
			ticket, err := g.Try(t.Context(), anyKey("a"))
			if err != nil {
				t.Fatal(err)
			}
			held = append(held, ticket)
		}
		for _, first := range held { // whichever key it waits for, one of them becomes free
			got := make(chan sluice.Ticket)
			go func() {
				ticket, err := g.Acquire(t.Context(), anyKey("b"))
				if err != nil {
					t.Error(err)
				}
				got <- ticket
			}()
			time.Sleep(time.Minute)
			key := first.Key()
			_ = first.Close()
			freed := time.Now()
			ticket := <-got
			if ticket.Waited() < 59*time.Second {
				t.Errorf("it says that it waited %v", ticket.Waited())
			}
			if ticket.Key() != key || time.Since(freed) > time.Second {
				t.Errorf("key %s was free; %s was taken after %v", key, ticket.Key(), time.Since(freed))
			}
			_ = ticket.Close()
			if first, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Key: key}); err != nil {
				t.Errorf("something is left in the place: %v", err)
			} else {
				defer func() { _ = first.Close() }()
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := g.Acquire(ctx, anyKey("b")); !errors.Is(err, sluice.ErrDeadline) && !errors.Is(err, sluice.ErrCancelled) {
			t.Errorf("nothing became free: %v", err)
		}
	})
}

// Requests that wait for a key that is set aside continue with another, in their turn.
func TestAKeyThatIsSetAsideIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []sluice.Limit{{Name: "minute", Kind: store.Rolling, Size: 6, Window: time.Minute}}
		g := split(t, "mem:", sluice.Resource{Limits: limits, SplitKeys: true})
		const requests = 60
		var keys []string
		got := make(chan string, requests)
		for range requests {
			go func() {
				ticket, err := g.Acquire(t.Context(), anyKey("a"))
				if err != nil {
					t.Error(err)
				}
				got <- ticket.Key()
				_, _ = ticket.Answer(sluice.Answer{Verdict: store.VerdictOK})
				_ = ticket.Close()
			}()
		}
		time.Sleep(90 * time.Second)
		if err := inside.Of(g).SetKeyAside(t.Context(), "api", bothKeys[0], time.Hour, "revoked"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for range len(got) {
			keys = append(keys, <-got)
		}
		before, began := len(keys), time.Now()
		for len(keys) < requests {
			keys = append(keys, <-got)
		}
		if slices.Contains(keys[before:], bothKeys[0]) {
			t.Error("a request went with the key that was set aside")
		}
		if took := time.Since(began); before < 20 || took > time.Duration(requests-before)*time.Minute/6+2*time.Minute {
			t.Errorf("%d went with two keys; the rest took %v with one", before, took)
		}
		status, err := g.Resource(t.Context(), "api")
		if err != nil || len(status.Gates) != 1 || status.Gates[0].Scope != "key="+bothKeys[0] || status.Gates[0].Cause != "revoked" {
			t.Errorf("%+v %v", status.Gates, err)
		}
		if err := g.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if ticket, err := g.Try(t.Context(), anyKey("a")); err != nil || ticket.Key() != bothKeys[0] {
			t.Errorf("after a resume: %q %v", ticket.Key(), err)
		}
	})
}
