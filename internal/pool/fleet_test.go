package pool

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Tests for past bugs.

// The configured lease is 5 minutes, and an agent's heartbeats ask for an hour. A request of that agent shortened the
// life of its class to 5 minutes.
func TestAskingDoesNotShortenALongerLease(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(100)))
	w.do(store.Op{Kind: store.OpHeartbeat, Agent: "urgent", Class: 0, TTL: time.Hour})
	w.ask("urgent", 0, 0, 1)
	w.now = w.now.Add(30 * time.Minute)
	w.p.Serve(w.now)
	if !w.p.alive(0) {
		t.Error("the class is taken for dead, half an hour before its agent's lease ends")
	}
}

// A few requests used far more than estimated. The window is free again after a minute, but lower classes were held for
// as many windows as had been used.
func TestPaceEndsWithItsWindow(t *testing.T) {
	s := classesSpec(store.Limit{Name: "tokens", Unit: "output_tokens", Kind: store.Rolling, Size: 1000, Window: time.Minute, Guard: store.GuardOff})
	s.Pace = true
	w := worldOf(t, s)
	w.ask("urgent", 0, 0, 1)
	for range 5 {
		r := w.ask("batch", 2, 0, 1)
		if r.State != store.Granted {
			t.Fatalf("%+v", r)
		}
		c := store.Op{Kind: store.OpClose, ID: r.ID}
		c.Amounts = amountsFor(w.p, 150) // so far within the window
		w.do(c)
		w.now = w.now.Add(20 * time.Second)
	}
	r := w.ask("batch", 2, -1, 1)
	if r.State == store.Waiting {
		w.runTo(w.now.Add(time.Minute), r.ID)
		r = w.do(store.Op{Kind: store.OpPoll, ID: r.ID})
	}
	c := store.Op{Kind: store.OpClose, ID: r.ID}
	c.Amounts = amountsFor(w.p, 8000) // eight windows' worth
	w.do(c)
	w.ask("urgent", 0, 0, 1)
	began := w.now
	r = w.ask("batch", 2, -1, 1)
	if r.State != store.Waiting {
		t.Fatalf("%+v", r)
	}
	if at := w.runTo(began.Add(4*time.Minute), r.ID); at == 0 || at.Sub(began) > 62*time.Second {
		t.Errorf("granted after %v: the window was free after one minute", at.Sub(began))
	}
}

// The next sweep dropped an agent that had asked without a grant. When another agent left, the class was no longer live.
func TestWhoHasOnlyAskedIsRemembered(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(1)))
	w.beat("b", 1)
	w.ask("b", 1, 0, 1)
	if r := w.ask("urgent", 0, 0, 1); r.State != store.Refused {
		t.Fatalf("%+v", r)
	}
	for range 20 {
		w.now = w.now.Add(time.Second)
		w.p.Serve(w.now)
	}
	w.do(store.Op{Kind: store.OpLeave, Agent: "b"})
	if !w.p.alive(0) {
		t.Error("the class of one who asked 20 s ago is taken for dead")
	}
}

// An expired lease does not count: an agent that comes back gets a new one.
func TestLeaseThatRanOutStartsAnew(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(100)))
	for i := range 50 {
		w.beat(fmt.Sprint("other", i), 2)
	}
	w.beat("a", 1)
	w.now = w.now.Add(time.Hour)
	w.beat("a", 1)
	for _, a := range w.p.Snapshot(w.now).Agents {
		if a.Name == "a" && a.Since != w.now {
			t.Errorf("since %v, %v ago", a.Since, w.now.Sub(a.Since))
		}
		if a.Name != "a" {
			t.Errorf("%s is alive", a.Name)
		}
	}
}

// The cost of a heartbeat does not grow with the fleet.
func BenchmarkHeartbeat(b *testing.B) {
	for _, fleet := range []int{100, 10_000} {
		b.Run(fmt.Sprint("agents=", fleet), func(b *testing.B) {
			w := worldOf(b, classesSpec(hourly(100)))
			ops := make([]store.Op, 1)
			i := 0
			for b.Loop() {
				a := i % fleet
				ops[0] = store.Op{Kind: store.OpHeartbeat, Agent: fmt.Sprint("a", a), Class: uint8(a % 3)}
				w.p.Apply(w.now, ops)
				i++
			}
		})
	}
}

// Absurd numbers in responses are ignored, and nothing overflows.
func TestAbsurdStatementsAreIgnored(t *testing.T) {
	s := classesSpec(hourly(1000))
	s.Breaker = store.Breaker{Within: 2 * time.Minute, Samples: 10}
	w := worldOf(t, s)
	for i := range 5 {
		w.do(store.Op{Kind: store.OpObserve, Observed: []store.Observed{{Limit: w.p.spec.Limits[0].Name, Size: 1<<63 - 1, Remaining: 1<<63 - 1 - int64(i), ResetIn: -1}}})
		w.now = w.now.Add(time.Second)
	}
	if l := w.p.Snapshot(w.now).Limits[0]; l.Breaker.Samples != 0 || l.Size != 1000 {
		t.Errorf("%+v", l)
	}
}

func TestHistoryOfTheFarFutureIsEmpty(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(1000)))
	w.ask("a", 0, 0, 1)
	if h := w.p.History(w.now, 1<<62); len(h.Periods) != 0 {
		t.Errorf("%+v", h.Periods)
	}
}

// An agent that used nine models in turn took a new period for each request. Within seconds it had replaced the history
// of all agents.
func TestManyModelsDoNotWipeTheRecords(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(1<<30)))
	w.ask("other", 0, 0, 1)
	const sends = 40_000
	for i := range sends {
		r := w.do(store.Op{Kind: store.OpAcquire, Agent: "a", Model: fmt.Sprint("m", i%50), TTL: time.Minute, Amounts: one})
		w.do(store.Op{Kind: store.OpClose, ID: r.ID})
	}
	var n int64
	h := w.p.History(w.now, 0)
	for _, p := range h.Periods {
		n += p.Sent
	}
	if n != sends+1 || len(h.Periods) != 51 {
		t.Errorf("%d sends in %d periods, want %d in 51", n, len(h.Periods), sends+1)
	}
}

// With more agents in one minute than there are periods, the history began in the future.
func TestRecordsDoNotBeginInTheFuture(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(1<<30)))
	for i := range maxPeriods + 10 {
		w.ask(fmt.Sprint("a", i), 0, 0, 1)
	}
	if h := w.p.History(w.now, 0); h.Since > h.Now {
		t.Errorf("from %v after now on", h.Since.Sub(h.Now))
	}
}

// A user's number of slots became smaller than the number in use. Then every agent's next heartbeat was refused, and all
// of them lost their slots.
func TestFewerSlotsLeaveThoseInUse(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(100)))
	beat := func(agent string, most int) store.State {
		return w.do(store.Op{Kind: store.OpHeartbeat, Agent: agent, User: "u", Slots: store.Slots{Max: most, TTL: time.Minute}}).State
	}
	for _, a := range []string{"a", "b", "c"} {
		beat(a, 3)
	}
	for range 5 {
		w.now = w.now.Add(30 * time.Second)
		for _, a := range []string{"a", "b", "c"} {
			if got := beat(a, 2); got != store.Granted {
				t.Fatalf("%s: %v", a, got)
			}
		}
		if got := beat("d", 2); got != store.Refused {
			t.Fatalf("d: %v", got)
		}
	}
	w.do(store.Op{Kind: store.OpLeave, Agent: "a"})
	if got := beat("d", 2); got != store.Refused {
		t.Errorf("a third one: %v", got)
	}
	w.do(store.Op{Kind: store.OpLeave, Agent: "b"})
	if got := beat("d", 2); got != store.Granted {
		t.Errorf("a second one: %v", got)
	}
}
