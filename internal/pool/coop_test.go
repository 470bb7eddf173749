package pool

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Tests for past bugs in the policies that keep room for other classes, each with the sequence that showed the bug.

func classesSpec(limits ...store.Limit) store.Spec {
	s := spec(limits...)
	s.Classes = []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}}
	s.MaxWaiting = 10_000
	return s
}

func worldOf(t testing.TB, s store.Spec) *world {
	t.Helper()
	w := &world{t: t, now: 1_767_225_600_000_000}
	p, err := New(s, w.now)
	if err != nil {
		t.Fatal(err)
	}
	w.p = p
	return w
}

func hourly(size int64) store.Limit {
	return store.Limit{Name: "hour", Unit: "requests", Kind: store.Fixed, Size: size, Window: time.Hour, Guard: store.GuardOff}
}

func (w *world) ask(agent string, class uint8, wait time.Duration, amounts ...int64) store.Result {
	op := store.Op{Kind: store.OpAcquire, Agent: agent, Class: class, Wait: wait, TTL: time.Hour}
	op.Amounts = amountsFor(w.p, amounts...)
	return w.do(op)
}

func (w *world) beat(agent string, class uint8) store.Result {
	return w.do(store.Op{Kind: store.OpHeartbeat, Agent: agent, Class: class})
}

// runTo serves the pool at the times that Wake returns, and at no other, until a given time. It returns when a waiting
// ticket was decided, or 0 if it was not.
func (w *world) runTo(end store.Time, id store.ID) (at store.Time) {
	for n := 0; ; n++ {
		if n > 200_000 {
			w.t.Fatal("the pool asks to be woken again and again")
		}
		next := w.p.Wake()
		if next == 0 || next > end {
			w.now = max(w.now, end)
			return at
		}
		if next < w.now {
			w.t.Fatalf("woken for %d at %d", next, w.now)
		}
		w.now = next
		w.p.Serve(w.now)
		for _, d := range w.p.Decided() {
			if d == id && at == 0 {
				at = w.now
				ops := []store.Op{{Kind: store.OpPoll, ID: id}}
				w.p.Apply(w.now, ops)
			}
		}
	}
}

// A light on all limits combined with pacing. A bucket has no pace record.
func TestPacingLeavesBucketsAlone(t *testing.T) {
	s := classesSpec(store.Limit{Name: "b", Kind: store.Bucket, Size: 10, Burst: 10, Window: time.Second})
	s.Light = store.Light{Green: 200, Red: 50, All: true}
	s.Pace = true
	w := worldOf(t, s)
	if r := w.ask("a", 1, 0, 1); r.State != store.Granted {
		t.Fatalf("%+v", r)
	}
	w.do(store.Op{Kind: store.OpCancel, ID: store.ID{N: 1}})
}

// A class is removed while a request of it waits, and while an agent of it holds a ticket and a lease.
func TestClassIsTakenAwayFromUnderAWaiter(t *testing.T) {
	s := classesSpec(hourly(10))
	s.Shares, s.Pace, s.Light = true, true, store.Light{Green: 200, Red: 50}
	w := worldOf(t, s)
	w.beat("c", 2)
	held := w.ask("c", 2, 0, 1)
	w.ask("a", 0, 0, 6)
	waits := w.ask("c", 2, -1, 3)
	if held.State != store.Granted || waits.State != store.Waiting {
		t.Fatalf("held %v, waits %v", held, waits)
	}
	fewer := s
	fewer.Classes = s.Classes[:1]
	if err := w.p.Reform(fewer, false); err != nil {
		t.Fatal(err)
	}
	w.p.Serve(w.now)
	w.do(store.Op{Kind: store.OpPoll, ID: waits.ID})
	w.do(store.Op{Kind: store.OpRenew, ID: held.ID, Wait: -1})
	w.p.Snapshot(w.now)
	if w.runTo(w.now.Add(3*time.Hour), waits.ID) == 0 {
		t.Error("the waiter of a class that is gone waits for ever")
	}
}

// A lower class keeps its pace while the highest class is live, and no longer.
func TestPaceEndsWhenTheHighestClassDies(t *testing.T) {
	s := classesSpec(store.Limit{Name: "day", Unit: "requests", Kind: store.Rolling, Size: 20, Window: 24 * time.Hour, Guard: store.GuardOff})
	s.Pace = true
	w := worldOf(t, s)
	w.ask("urgent", 0, 0, 1)
	dies := w.now.Add(store.DefaultLease)
	w.ask("slow", 2, 0, 1)
	waits := w.ask("slow", 2, -1, 1)
	if at := w.runTo(w.now.Add(24*time.Hour), waits.ID); at != dies {
		t.Errorf("granted %v after the highest class was dead", at.Sub(dies))
	}
}

// The share of a class is free when that class is no longer live. The stated time is not that of another class whose
// time ends earlier.
func TestStatedTimeIsTheDeathOfAnotherClass(t *testing.T) {
	s := classesSpec(hourly(1000))
	s.Shares = true
	w := worldOf(t, s)
	w.ask("b", 2, 0, 1)
	w.now = w.now.Add(time.Minute)
	w.beat("a", 0)
	dies := w.now.Add(store.DefaultLease)
	waits := w.ask("b", 2, time.Hour, 900)
	if waits.State != store.Waiting || waits.Reason.Code != store.CodeShare || waits.Reason.At != dies {
		t.Errorf("%v for %v until %v before its end, want the other class's death", waits.State, waits.Reason.Code, dies.Sub(waits.Reason.At))
	}
	if at := w.runTo(w.now.Add(time.Hour), waits.ID); at != dies {
		t.Errorf("granted %v after the other class was dead", at.Sub(dies))
	}
}

// A static light on a limit that was cut after refusals. A request that could go right after the reset without the light
// can also go with it.
func TestLightOnACutLimitDoesNotKeepTheLargeForHours(t *testing.T) {
	l := hourly(100)
	l.Guard, l.Reset = store.GuardAuto, 1_767_225_600_000_000
	for _, cost := range []int64{90, 97, 100} {
		s := classesSpec(l)
		s.Light = store.Light{Green: 200, Red: 50, Static: true}
		w := worldOf(t, s)
		for range 2 { // two unexplained refusals cut 5%
			r := w.ask("a", 0, -1, 1)
			w.do(store.Op{Kind: store.OpAnswer, ID: r.ID, Verdict: store.VerdictThrottled})
			w.do(store.Op{Kind: store.OpClose, ID: r.ID})
			w.do(store.Op{Kind: store.OpResume})
			w.now = w.now.Add(11 * time.Minute)
			w.p.Serve(w.now)
		}
		if cut := w.p.Snapshot(w.now).Limits[0].Cut; cut == 0 {
			t.Fatal("nothing was cut")
		}
		waits := w.ask("b", 2, -1, cost)
		asked := w.now
		at := w.runTo(w.now.Add(10*time.Hour), waits.ID)
		if at == 0 || at.Sub(asked) > 61*time.Minute {
			t.Errorf("%d of 100 went after %v, want after the reset", cost, at.Sub(asked))
		}
	}
}

// An agent sends again when its own period is the oldest of all. The period is reused for the same agent, so its before
// field must not lead back to itself.
func TestOldestPeriodUsedAgainByItsOwnAgent(t *testing.T) {
	w := worldOf(t, classesSpec(store.Limit{Name: "m", Unit: "requests", Kind: store.Rolling, Size: 1 << 30, Window: time.Hour, Guard: store.GuardOff}))
	for i := range maxPeriods {
		if i == maxPeriods/2 {
			w.now = w.now.Add(time.Minute) // a minute has at most mostNew periods
		}
		r := w.ask(fmt.Sprint("agent", i), 1, 0, 1)
		w.do(store.Op{Kind: store.OpClose, ID: r.ID})
	}
	w.now = w.now.Add(time.Minute)
	w.ask("agent0", 1, 0, 1)
	done := make(chan struct{})
	go func() {
		w.p.Snapshot(w.now)
		close(done)
	}()
	select {
	case <-done:
		for _, a := range w.p.Snapshot(w.now).Agents {
			if a.Used > 2 {
				t.Fatalf("%s sent twice, and is said to have used %d", a.Name, a.Used)
			}
		}
	case <-time.After(10 * time.Second):
		t.Fatal("the snapshot never ends")
	}
}

// An agent whose lease has expired is live while it sends requests.
func TestAgentThatAsksIsAliveThoughItsLeaseIsOver(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(1000)))
	w.beat("a", 1)
	w.now = w.now.Add(4 * time.Minute)
	w.ask("a", 1, 0, 1)
	w.now = w.now.Add(2 * time.Minute)
	if agents := w.p.Snapshot(w.now).Agents; len(agents) != 1 || agents[0].Leased {
		t.Errorf("alive are %+v, want one without a lease: it asked two minutes ago", agents)
	}
}

// A refused request keeps its agent live too.
func TestAgentThatWasRefusedIsAlive(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(1)))
	w.ask("a", 0, 0, 1)
	w.ask("b", 1, 0, 1)
	w.ask("c", 2, 0, 1)
	if agents := w.p.Snapshot(w.now).Agents; len(agents) != 3 {
		t.Errorf("alive are %+v, want three that asked", agents)
	}
	w.do(store.Op{Kind: store.OpLeave, Agent: "a"})
	if got := w.p.living(); got != 1<<1|1<<2 {
		t.Errorf("alive are classes %03b, want 110: b and c asked just now", got)
	}
}

// A class that was held for half an hour does not take all grants afterwards.
func TestHeldClassDoesNotStarveTheHighestAfterTheReset(t *testing.T) {
	l := hourly(10_000)
	s := classesSpec(l, store.Limit{Name: "bucket", Unit: "requests", Kind: store.Bucket, Size: 1, Burst: 1, Window: time.Second, Guard: store.GuardOff})
	s.Light = store.Light{Green: 900, Static: true}
	w := worldOf(t, s)
	w.now = w.now.Add(25 * time.Minute)
	w.ask("x", 0, -1, 5000, 1)
	for range 50 {
		w.ask("low", 2, -1, 1, 1)
	}
	class := map[store.ID]int{}
	next := func() { class[w.ask("top", 0, -1, 1, 1).ID] = 0 }
	for range 20 {
		next()
	}
	var longest, last store.Time
	reset := w.now
	for w.now < reset.Add(time.Hour) {
		w.now = w.p.Wake()
		w.p.Serve(w.now)
		for _, d := range append([]store.ID(nil), w.p.Decided()...) {
			w.do(store.Op{Kind: store.OpPoll, ID: d})
			w.do(store.Op{Kind: store.OpClose, ID: d})
			if _, top := class[d]; top {
				if last != 0 {
					longest = max(longest, w.now-last)
				}
				last = w.now
				next()
			} else {
				w.ask("low", 2, -1, 1, 1)
			}
		}
	}
	longest = max(longest, w.now-last)
	if longest > 10_000_000 {
		t.Errorf("the highest class had nothing for %v of one a second", longest.Sub(0))
	}
}

// A model that was paused for long does not take all of the shared limit afterwards.
func TestPausedModelDoesNotStarveTheOthersAfterwards(t *testing.T) {
	w := worldOf(t, classesSpec(
		store.Limit{Name: "bucket", Unit: "requests", Kind: store.Bucket, Size: 1, Burst: 1, Window: time.Second, Guard: store.GuardOff},
		store.Limit{Name: "models", Unit: "requests", Kind: store.Rolling, Size: 1_000_000, Window: time.Hour, Guard: store.GuardOff, Per: store.PerModel},
	))
	model := map[store.ID]string{}
	next := func(m string) {
		op := store.Op{Kind: store.OpAcquire, Agent: m, Class: 1, Model: m, Wait: -1, TTL: time.Hour}
		op.Amounts = one
		model[w.do(op).ID] = m
	}
	next("x")
	for range 5 {
		next("paused")
		next("other")
	}
	w.do(store.Op{Kind: store.OpPause, Model: "paused", Scope: store.PerModel, RetryAfter: 20 * time.Minute})
	end := w.now.Add(40 * time.Minute)
	last := w.now
	var longest store.Time
	for w.now < end {
		w.now = w.p.Wake()
		w.p.Serve(w.now)
		for _, d := range append([]store.ID(nil), w.p.Decided()...) {
			w.do(store.Op{Kind: store.OpPoll, ID: d})
			w.do(store.Op{Kind: store.OpAnswer, ID: d, Verdict: store.VerdictOK})
			w.do(store.Op{Kind: store.OpClose, ID: d})
			if model[d] == "other" {
				longest = max(longest, w.now-last)
				last = w.now
			}
			next(model[d])
		}
	}
	if longest = max(longest, w.now-last); longest > 10_000_000 {
		t.Errorf("the other model had nothing for %v of one a second", longest.Sub(0))
	}
}

// A request that needs most of two stocks is granted although small requests of its class keep using each of them.
func TestLargeRequestOnTwoStocksDoesNotStarve(t *testing.T) {
	quarter := hourly(100)
	quarter.Name, quarter.Window = "quarter", 15*time.Minute
	s := classesSpec(hourly(100), quarter)
	s.Light = store.Light{Green: 200, Static: true}
	w := worldOf(t, s)
	w.ask("x", 2, 0, 5, 5)
	large := w.ask("large", 2, -1, 78, 78)
	if large.State != store.Waiting {
		t.Fatal(large)
	}
	asked := w.now
	left, right := w.ask("left", 2, -1, 1, 0).ID, w.ask("right", 2, -1, 0, 1).ID
	w.p.Serve(w.now)
	for w.now < asked.Add(12*time.Hour) {
		next := w.now.Add(20 * time.Second)
		if wake := w.p.Wake(); wake != 0 && wake < next {
			next = wake
		}
		w.now = next
		w.p.Serve(w.now)
		for _, id := range []*store.ID{&left, &right} {
			r := w.do(store.Op{Kind: store.OpPoll, ID: *id})
			if r.State == store.Waiting {
				continue
			}
			w.do(store.Op{Kind: store.OpClose, ID: *id})
			if id == &left {
				*id = w.ask("left", 2, -1, 1, 0).ID
			} else {
				*id = w.ask("right", 2, -1, 0, 1).ID
			}
		}
		if r := w.do(store.Op{Kind: store.OpPoll, ID: large.ID}); r.State == store.Granted {
			if waited := w.now.Sub(asked); waited > 130*time.Minute {
				t.Errorf("it waited %v", waited)
			}
			return
		}
	}
	t.Errorf("it still waits after 12 hours: %+v", w.do(store.Op{Kind: store.OpPoll, ID: large.ID}).Reason)
}

// Expired leases are dropped, also when no heartbeats come any more.
func TestManyLeasesAreBuried(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(1000)))
	const agents = 4000
	for range 2 {
		for i := range agents {
			w.do(store.Op{
				Kind: store.OpHeartbeat, Agent: fmt.Sprint("agent", i), User: fmt.Sprint("user", i/5), Class: 2,
				Slots: store.Slots{Max: 5, TTL: time.Minute},
			})
		}
	}
	w.now = w.now.Add(time.Hour)
	for range 3 * agents / 64 { // without any heartbeat
		w.now = w.now.Add(100 * time.Millisecond)
		w.p.Serve(w.now)
	}
	if n := w.p.leases.Len(); n != 0 {
		t.Errorf("%d leases are left", n)
	}
}

// saturated counts what each class gets from a rolling window in an hour if all classes ask for more than there is. Each
// class keeps a number of requests running or waiting. A request takes three seconds.
func saturated(t *testing.T, s store.Spec, workers int) (got [3]int) {
	w := worldOf(t, s)
	type done struct {
		at store.Time
		id store.ID
	}
	var busy []done
	class := map[store.ID]uint8{}
	granted := func(id store.ID) {
		got[class[id]]++
		busy = append(busy, done{w.now.Add(3 * time.Second), id})
	}
	ask := func(c uint8) {
		r := w.ask(fmt.Sprint("agent", c), c, -1, 1)
		if class[r.ID] = c; r.State == store.Granted {
			granted(r.ID)
		}
	}
	look := func() {
		for _, id := range append([]store.ID(nil), w.p.Decided()...) {
			w.p.Apply(w.now, []store.Op{{Kind: store.OpPoll, ID: id}})
			granted(id)
		}
	}
	for c := range uint8(3) {
		for range workers {
			ask(c)
		}
	}
	for end := w.now.Add(time.Hour); w.now < end; {
		next := w.p.Wake()
		if len(busy) > 0 && (next == 0 || busy[0].at <= next) {
			d := busy[0]
			busy = busy[1:]
			w.now = max(w.now, d.at)
			w.p.Apply(w.now, []store.Op{{Kind: store.OpClose, ID: d.id}})
			look()
			ask(class[d.id])
			look()
			continue
		}
		w.now = max(w.now, next)
		w.p.Serve(w.now)
		look()
	}
	return got
}

// Pacing serves a highest class that sends requests now and then. If it asks for all it can get, the other classes still
// have their shares.
func TestPaceLeavesSharesToLowerClasses(t *testing.T) {
	for _, workers := range []int{4, 20} {
		for _, pace := range []bool{false, true} {
			s := classesSpec(store.Limit{Name: "minute", Unit: "requests", Kind: store.Rolling, Size: 80, Window: time.Minute, Guard: store.GuardOff})
			s.Pace = pace
			got := saturated(t, s, workers)
			t.Logf("%d workers, pacing %t: %d of 4800", workers, pace, got)
			if got[0] > 4800*55/100 {
				t.Errorf("%d workers, pacing %t: the highest class has %d of 4800, and its share is 1920", workers, pace, got[0])
			}
		}
	}
}

// Of a window shorter than a minute, an agent was shown the mean part of what it sent in the last minute: 2 of 10.
func TestUseOfAShortWindowIsThatOfTheLimit(t *testing.T) {
	w := worldOf(t, classesSpec(store.Limit{Name: "m", Unit: "requests", Kind: store.Rolling, Size: 20, Window: 10 * time.Second, Guard: store.GuardOff}))
	use := func() map[string]int64 {
		m := map[string]int64{}
		for _, a := range w.p.Snapshot(w.now).Agents {
			m[a.Name] = a.Used
		}
		return m
	}
	send := func(agent string, n int) {
		for range n {
			w.do(store.Op{Kind: store.OpClose, ID: w.ask(agent, 1, 0, 1).ID, Spent: true})
		}
	}
	send("a", 10)
	if got := use(); got["a"] != 10 {
		t.Errorf("one agent sent 10: %v", got)
	}
	send("b", 5)
	if got := use(); got["a"] != 10 || got["b"] != 5 {
		t.Errorf("two agents sent 10 and 5: %v", got)
	}
	w.now = w.now.Add(11 * time.Second)
	send("b", 4)
	if got := use(); got["a"] != 0 || got["b"] != 4 {
		t.Errorf("the window holds 4 requests of one agent: %v", got)
	}
}

// A request that is settled in the minute after its grant, and after newer requests of its agent, counts with its actual use.
func TestALateSettleIsCounted(t *testing.T) {
	now := store.Time(1_700_000_035_000_000) // 5 s before a minute ends
	p, err := New(classesSpec(store.Limit{Name: "m", Unit: "tokens", Kind: store.Rolling, Size: 1 << 30, Window: time.Minute}), now)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() store.Op {
		return store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: 10 * time.Minute, Amounts: amountsFor(p, 10)}
	}
	first := []store.Op{ask(), ask(), ask(), ask()}
	newer := slices.Clone(first)
	first[0].Amounts = nil // states its use only at the end
	p.Apply(now, first)
	now = now.Add(6 * time.Second)
	p.Apply(now, newer)
	p.Apply(now, []store.Op{
		{Kind: store.OpClose, ID: first[0].Result.ID, Amounts: amountsFor(p, 25)},
		{Kind: store.OpClose, ID: first[1].Result.ID, Amounts: amountsFor(p, 3)},
	})
	var got []int64
	for _, period := range p.History(now, 0).Periods {
		got = append(got, period.Amounts[0])
	}
	if want := []int64{48, 40}; !slices.Equal(got, want) { // 25, 3, and twice 10
		t.Errorf("the minutes have %v tokens, want %v", got, want)
	}
}
