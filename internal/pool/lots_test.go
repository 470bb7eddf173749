package pool

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
)

// lotsSpec returns random limits of all kinds, with and without policies.
func lotsSpec(t *rapid.T) store.Spec {
	guard := func() store.Guard {
		return rapid.SampledFrom([]store.Guard{store.GuardAuto, store.GuardAuto, store.GuardOff, store.GuardStrict}).Draw(t, "guard")
	}
	per := func(s store.Scope) store.Scope {
		if rapid.Bool().Draw(t, "scoped") {
			return s
		}
		return 0
	}
	size := rapid.SampledFrom([]int64{60, 1000, 100_000}).Draw(t, "size")
	all := []store.Limit{
		{Name: "requests", Unit: "requests", Kind: store.Rolling, Size: size, Window: time.Minute, Guard: guard(), Per: per(store.PerModel)},
		{Name: "input", Unit: "input", Kind: store.Rolling, Size: 1000 * size, Window: time.Minute, Guard: guard(), Estimated: true},
		{Name: "output", Unit: "output", Kind: store.Rolling, Size: 1000 * size, Window: time.Minute, Guard: guard(), Late: true},
		{Name: "bucket", Unit: "requests", Kind: store.Bucket, Size: size, Burst: size, Window: 10 * time.Second, Guard: guard()},
		{Name: "places", Unit: "places", Kind: store.Concurrency, Size: size / 4},
		{Name: "hour", Unit: "requests", Kind: store.Fixed, Size: 20 * size, Window: time.Hour, Guard: guard()},
		{Name: "own", Unit: "requests", Kind: store.Bucket, Size: size, Burst: size, Window: time.Minute, Guard: store.GuardOff, Per: per(store.PerAgent)},
	}
	n := rapid.IntRange(1, len(all)).Draw(t, "limits")
	return store.Spec{
		Name: "p", Limits: rapid.Permutation(all).Draw(t, "order")[:n],
		Classes: []store.Class{{Name: "a", Weight: 5}, {Name: "b", Weight: 3}, {Name: "c", Weight: 2}}, MaxWaiting: 100,
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}, Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
		Pace: rapid.Bool().Draw(t, "pace"), Shares: rapid.Bool().Draw(t, "shares"),
		Light: rapid.SampledFrom([]store.Light{{}, {Green: 200, Red: 50}, {Green: 200, Red: 50, All: true}}).Draw(t, "light"),
	}
}

// drawLots returns a step of random operations, on new and on open tickets.
func drawLots(t *rapid.T, limits []store.Limit, open []store.ID) (ops []store.Op, rest []store.ID) {
	rest = open
	alike := rapid.Bool().Draw(t, "alike")
	model, class, tie := rapid.SampledFrom([]string{"m1", "m2", ""}), rapid.Uint8Range(0, 2), rapid.SampledFrom([]store.Tie{store.TieNone, store.TieBeat, store.TieGone})
	m, c, ti := model.Draw(t, "model"), class.Draw(t, "class"), tie.Draw(t, "tie")
	for range rapid.IntRange(0, 12).Draw(t, "ends") {
		if len(rest) == 0 {
			break
		}
		i := rapid.IntRange(0, len(rest)-1).Draw(t, "which")
		id := rest[i]
		if rapid.Bool().Draw(t, "answered") {
			ops = append(ops, store.Op{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictOK})
		}
		if !rapid.Bool().Draw(t, "closed") {
			continue
		}
		op := store.Op{Kind: store.OpClose, ID: id}
		if rapid.Bool().Draw(t, "settled") {
			for l := range limits {
				if n := rapid.SampledFrom([]int64{1, 0, -1, -2, 1, 900, 1100, store.MaxAmount + 1}).Draw(t, "used"); n != -2 {
					op.Amounts = append(op.Amounts, store.Amount{Limit: limits[l].Name, N: n})
				}
			}
		}
		ops = append(ops, op)
		if !rapid.Bool().Draw(t, "again") {
			rest = append(append([]store.ID(nil), rest[:i]...), rest[i+1:]...)
		}
	}
	for range rapid.IntRange(0, 12).Draw(t, "asks") {
		if !alike {
			m, c, ti = model.Draw(t, "model"), class.Draw(t, "class"), tie.Draw(t, "tie")
		}
		op := store.Op{
			Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: fmt.Sprint("a", rapid.IntRange(0, 4).Draw(t, "agent")), Model: m, Class: c, Tie: ti,
			TTL: rapid.SampledFrom([]time.Duration{5 * time.Second, 2 * time.Minute}).Draw(t, "ttl"), Wait: rapid.SampledFrom([]time.Duration{0, 0, time.Second}).Draw(t, "wait"),
		}
		for l := range limits {
			n := rapid.SampledFrom([]int64{1, 1, 0, 1000}).Draw(t, "amount")
			if n == 1000 && l > 2 {
				n = 1
			}
			op.Amounts = append(op.Amounts, store.Amount{Unit: limits[l].Unit, Limit: limits[l].Name, N: n})
		}
		ops = append(ops, op)
	}
	if rapid.IntRange(0, 9).Draw(t, "other") == 0 {
		ops = append(ops, store.Op{Kind: store.OpPoll, ID: store.ID{Session: 1}, Alive: time.Minute})
	}
	return ops, rest
}

// The fast path has the same outcome as the full functions. Whatever happens to the tickets of a lot, the pool decides as
// if each had a record of its own, and reports the same in the end.
func TestLotsSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := lotsSpec(t)
		now := store.Time(1_700_000_000_000_000)
		long, err := New(spec, now)
		if err != nil {
			t.Fatal(err)
		}
		fast, err := New(spec, now)
		if err != nil {
			t.Fatal(err)
		}
		var open []store.ID
		for step := range rapid.IntRange(1, 12).Draw(t, "steps") {
			now = now.Add(rapid.SampledFrom([]time.Duration{0, time.Millisecond, 300 * time.Millisecond, 4 * time.Second, 11 * time.Second, time.Minute}).Draw(t, "later"))
			ops, rest := drawLots(t, spec.Limits, open)
			same := append([]store.Op(nil), ops...)
			long.Apply(now, ops)
			fast.ApplyFast(now, same)
			open = rest
			for i := range ops {
				if ops[i].Result != same[i].Result {
					t.Fatalf("step %d: operation %d of kind %d: %+v, by the fast path %+v", step, i, ops[i].Kind, ops[i].Result, same[i].Result)
				}
				if ops[i].Kind == store.OpAcquire && ops[i].Result.State == store.Granted {
					open = append(open, ops[i].Result.ID)
				}
			}
		}
		if a, b := long.Snapshot(now), fast.Snapshot(now); !reflect.DeepEqual(a, b) {
			t.Fatalf("in the end\n%+v\nby the fast path\n%+v", a, b)
		}
		if a, b := long.History(now, 0), fast.History(now, 0); !reflect.DeepEqual(a, b) {
			t.Fatalf("the history is\n%+v\nby the fast path\n%+v", a, b)
		}
	})
}

// More agents than maxCallers take the fast path too, and their history is the same.
func TestLotsOfACrowdSayTheSame(t *testing.T) {
	spec := classesSpec(store.Limit{Name: "m", Unit: "tokens", Kind: store.Rolling, Size: 1 << 30, Window: time.Minute})
	now := store.Time(1_700_000_000_000_000)
	long, err := New(spec, now)
	if err != nil {
		t.Fatal(err)
	}
	fast, err := New(spec, now)
	if err != nil {
		t.Fatal(err)
	}
	const batch = 256
	lots := 0
	send := func(from, n int) {
		for at := from; at < from+n; at += batch {
			var ops []store.Op
			for i := range batch {
				ops = append(ops, store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: fmt.Sprint("a", at+i), TTL: time.Minute, Amounts: amountsFor(long, 10)})
			}
			for range 2 {
				same := append([]store.Op(nil), ops...)
				long.Apply(now, ops)
				fast.ApplyFast(now, same)
				lots += len(fast.lots)
				for i := range ops {
					if ops[i].Result != same[i].Result {
						t.Fatalf("agent %d: %+v, by the fast path %+v", at+i, ops[i].Result, same[i].Result)
					}
					ops[i] = store.Op{Kind: store.OpClose, ID: ops[i].Result.ID, Amounts: amountsFor(long, 3)}
				}
			}
			now = now.Add(10 * time.Millisecond)
		}
	}
	check := func(when string) {
		a, b := long.History(now, 0), fast.History(now, 0)
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("%s: the history of %d periods is another than by the fast path, of %d", when, len(a.Periods), len(b.Periods))
		}
	}
	send(0, maxCallers+batch)
	check("all have asked")
	if long.callers.recs.Len() < maxCallers || long.crowdCaller() == 0 {
		t.Fatalf("%d callers are no crowd", long.callers.recs.Len())
	}
	lots = 0
	send(maxCallers+batch, 4*batch)
	if lots != 4 {
		t.Errorf("of 4 steps %d take the fast path", lots)
	}
	check("others have come")
	now = now.Add(time.Minute)
	send(0, maxCallers+batch)
	check("in the next minute")
}

// A minute with more agents than periods does not wipe out the history. Agents beyond the bound are counted together, and
// their requests replace no period.
func TestCrowdedMinuteLeavesTheHistory(t *testing.T) {
	w := worldOf(t, classesSpec(hourly(1<<30)))
	w.ask("before", 0, 0, 1)
	w.now = w.now.Add(time.Minute)
	const agents = 2 * maxPeriods
	for i := range agents {
		r := w.ask(fmt.Sprint("a", i), 0, 0, 1)
		w.do(store.Op{Kind: store.OpClose, ID: r.ID})
	}
	h := w.p.History(w.now, 0)
	sent, others := int64(0), int64(0)
	for _, p := range h.Periods {
		sent += p.Sent
		if p.Agent == otherName {
			others += p.Sent
		}
	}
	if h.Since != 0 || sent != agents+1 || others != agents-mostNew || h.Periods[0].Agent != "before" {
		t.Errorf("since %v: %d sends, %d of them by others, from %q on; want %d and %d", h.Since, sent, others, h.Periods[0].Agent, agents+1, agents-mostNew)
	}
}
