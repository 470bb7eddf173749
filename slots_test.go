package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

func TestUserHasSoManyAgentsAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Slots: sluice.Slots{Max: 3, TTL: 4 * time.Minute}, Agents: map[string]sluice.Agent{"mine": {User: "me"}},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{roomy()}}},
		})
		first := join(t, g, sluice.JoinRequest{Agent: "a1", User: "me"})
		time.Sleep(30 * time.Second)
		others := []*sluice.Lease{join(t, g, sluice.JoinRequest{Agent: "a2", User: "me"}), join(t, g, sluice.JoinRequest{Agent: "mine"})}
		_, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "a4", User: "me"})
		e := wantError(t, err, sluice.ErrSlots)
		if e.Reason != "slots" || e.Agent != "a4" || time.Until(e.RetryAt) != 3*time.Minute+30*time.Second || e.Hint == "" {
			t.Errorf("refused with %+v", e)
		}
		if want := `agent "a4": all slots of user "me" are taken (3); the next is free when an agent leaves, or at 2000-01-01T00:04:00Z if one has died`; e.Error() != want {
			t.Errorf("it says\n  %s, want\n  %s", e, want)
		}
		again := join(t, g, sluice.JoinRequest{Agent: "a1", User: "me"}) // it has one already
		leave(t, join(t, g, sluice.JoinRequest{Agent: "b1", User: "you"}))

		others[0].Kill() // its slot comes back by itself, when its time is over
		time.Sleep(4*time.Minute - time.Millisecond)
		_, err = g.Join(t.Context(), sluice.JoinRequest{Agent: "a4", User: "me"})
		e = wantError(t, err, sluice.ErrSlots)
		time.Sleep(time.Until(e.RetryAt))
		leave(t, join(t, g, sluice.JoinRequest{Agent: "a4", User: "me"}), first, again, others[1])
	})
}

// Agents without a user share slots.
func TestAgentsWithoutAUserShareSlots(t *testing.T) {
	g := openConfig(t, sluice.Config{Slots: sluice.Slots{Max: 1}, Resources: map[string]sluice.Resource{"api": {}}})
	lease := join(t, g, sluice.JoinRequest{Agent: "a"})
	_, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "b"})
	if e := wantError(t, err, sluice.ErrSlots); strings.Contains(e.Error(), `""`) {
		t.Errorf("it says %q", e)
	}
	leave(t, join(t, g, sluice.JoinRequest{Agent: "b", User: "u"}), lease)
}

func TestFiftyAtOnceGetThreeSlots(t *testing.T) {
	g := openConfig(t, sluice.Config{Slots: sluice.Slots{Max: 3}, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{roomy()}}}})
	for _, user := range []string{"one", "two"} {
		var mu sync.Mutex
		var got []*sluice.Lease
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				l, err := g.Join(context.Background(), sluice.JoinRequest{Agent: fmt.Sprint(user, i), User: user})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					got = append(got, l)
				} else if !errors.Is(err, sluice.ErrSlots) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if len(got) != 3 {
			t.Errorf("%d of %s got one of 3 slots", len(got), user)
		}
		if user == "two" {
			leave(t, got...)
		}
	}
	if n := len(status(t, g).Agents); n != 3 {
		t.Errorf("%d are alive, want the three of the first user", n)
	}
}

func TestLeasesAndSlotsThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]sluice.Config{
		"negative renew":       {Leases: sluice.Leases{Renew: -1}},
		"negative expiry":      {Leases: sluice.Leases{Expire: -1}},
		"expiry before renew":  {Leases: sluice.Leases{Renew: 6 * time.Minute}},
		"renew at expiry":      {Leases: sluice.Leases{Renew: time.Minute, Expire: time.Minute}},
		"short expiry":         {Leases: sluice.Leases{Renew: time.Millisecond, Expire: time.Second - 1}},
		"endless expiry":       {Leases: sluice.Leases{Expire: 25 * time.Hour}},
		"negative slots":       {Slots: sluice.Slots{Max: -1}},
		"slots without end":    {Slots: sluice.Slots{Max: store.MaxSlots + 1}},
		"slots without leases": {Slots: sluice.Slots{Max: 1}, Leases: sluice.Leases{Off: true}},
		"slots before renew":   {Slots: sluice.Slots{Max: 1, TTL: time.Minute}},
		"endless slots":        {Slots: sluice.Slots{Max: 1, TTL: 25 * time.Hour}},
		"the fleet's own pool": {Resources: map[string]sluice.Resource{"(fleet)": {}}},
		"waits for itself":     {Agents: map[string]sluice.Agent{"a": {WaitsFor: []string{"a"}}}},
		"waits for all":        {Agents: map[string]sluice.Agent{"a": {WaitsFor: many("b", 17)}}},
		"waits for nobody":     {Agents: map[string]sluice.Agent{"a": {WaitsFor: []string{""}}}},
		"waits for a novel":    {Agents: map[string]sluice.Agent{"a": {WaitsFor: []string{strings.Repeat("x", 300)}}}},
	} {
		t.Run(name, func(t *testing.T) {
			g, err := sluice.Open(t.Context(), c)
			if err == nil {
				t.Fatal(g.Close(), "it was accepted")
			}
			if e := wantError(t, err, sluice.ErrInvalid); e.Error() == "" {
				t.Error("no word of what is wrong")
			}
		})
	}
}

// A gate without slots does not lift the bound that others keep.
func TestLookingDoesNotLiftTheBoundOnSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		one, two := s.open(t, sluice.Config{Slots: sluice.Slots{Max: 1}}, hourly(1000)), s.open(t, sluice.Config{}, hourly(1000))
		a := join(t, one, sluice.JoinRequest{Agent: "a", User: "u"})
		if _, err := two.Status(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := one.Join(t.Context(), sluice.JoinRequest{Agent: "b", User: "u"})
		wantError(t, err, sluice.ErrSlots)
		leave(t, a)
	})
}
