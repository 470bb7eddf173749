package eventlog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// What mode observe sent, and its refusals and response times, was counted for mode gate after a switch.
func TestModesAreReportedApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		defer st.Close()
		began := time.Now()
		var events []inspect.Event
		config := func(observe bool) sluice.Config {
			return sluice.Config{Events: func(e inspect.Event) { events = append(events, e) }, Resources: map[string]sluice.Resource{
				"api": {Observe: observe, Limits: []sluice.Limit{{Name: "w", Size: 2, Window: 10 * time.Second, Kind: store.Rolling}}},
			}}
		}
		for _, mode := range []struct {
			observe bool
			sends   int
			verdict store.Verdict
		}{{true, 5, store.VerdictThrottled}, {true, 1, store.VerdictOK}, {false, 3, store.VerdictOK}} {
			g, err := sluice.OpenWithStore(t.Context(), st, config(mode.observe))
			if err != nil {
				t.Fatal(err)
			}
			for range mode.sends {
				ticket, err := g.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a"})
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if _, err := ticket.Answer(sluice.Answer{Verdict: mode.verdict}); err != nil {
					t.Fatal(err)
				}
				if err := ticket.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if mode.observe { // without a ticket
				if err := g.Observe(t.Context(), sluice.Request{Resource: "api", Agent: "a"}, sluice.Answer{Verdict: store.VerdictThrottled}); err != nil {
					t.Fatal(err)
				}
			}
			if err := g.Close(); err != nil {
				t.Fatal(err)
			}
		}
		c := config(false)
		c.ReadOnly, c.Others = true, func(pool string) string { return pool }
		g, err := sluice.OpenWithStore(t.Context(), st, c)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		rep, err := g.Report(t.Context(), began)
		if err != nil {
			t.Fatal(err)
		}
		dir := keep(t, events...)
		if err := Complete(&rep, dir, began); err != nil {
			t.Fatal(err)
		}
		alone, err := Report(dir, began)
		if err != nil {
			t.Fatal(err)
		}
		for name, rep := range map[string]inspect.Report{"with the store": rep, "alone": alone} {
			if len(rep.Resources) != 2 {
				t.Fatalf("%s: %+v", name, rep)
			}
			gate, seen := rep.Resources[0], rep.Resources[1]
			if all := gate.Total; gate.Name != "api" || all.FirstSends != 3 || all.Throttled != 0 || all.Answers != 3 || all.WouldWait != 0 || all.Logged != 3 || len(gate.ThrottledMinutes) != 0 {
				t.Errorf("%s, gate: %+v", name, gate)
			}
			if all := seen.Total; seen.Name != "api (observed)" || all.FirstSends != 6 || all.Throttled < 5 || all.Answers != 1 || all.WouldWait != 4 || all.Logged != 6 || len(seen.ThrottledMinutes) == 0 {
				t.Errorf("%s, observed: %+v", name, seen)
			}
		}
		if took := rep.Resources[1].Total; took.Last.Sub(took.First) != 5*time.Second {
			t.Errorf("from %v to %v", took.First, took.Last)
		}
	})
}

// A cancelled ticket that was answered counts as sent. Earlier versions wrote such events.
func TestAnsweredSendsAreNotTakenBack(t *testing.T) {
	dir := keep(t,
		sendAt(0, "api.1-1", "a"),
		inspect.Event{Time: at(1), Kind: inspect.EventAnswer, Resource: "api", Ticket: "api.1-1", Verdict: "ok"},
		inspect.Event{Time: at(2), Kind: inspect.EventCancel, Resource: "api", Ticket: "api.1-1"},
	)
	rep, err := Report(dir, time.Time{})
	if err != nil || rep.Resources[0].Total.FirstSends != 1 {
		t.Errorf("%+v, %v", rep, err)
	}
}
