package pool

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// crowdSpec returns a spec with a limit of every kind for each of the given scopes.
func crowdSpec(meters int, scopes ...store.Scope) store.Spec {
	s := store.Spec{
		Name: "api", MaxWaiting: 1000, MaxMeters: meters, Classes: []store.Class{{Name: "p0", Weight: 1}},
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
	for _, per := range scopes {
		guard := store.GuardAuto
		if per&^store.Shared != 0 {
			guard = store.GuardOff
		}
		for _, l := range []store.Limit{
			{Name: "rolling", Kind: store.Rolling, Unit: "requests", Size: 100, Window: time.Minute},
			{Name: "learned", Kind: store.Fixed, Unit: "tokens", Window: time.Minute},
			{Name: "places", Kind: store.Concurrency, Unit: "places", Size: 100},
		} {
			l.Name, l.Per, l.Guard = fmt.Sprint(l.Name, per), per, guard
			s.Limits = append(s.Limits, l)
		}
	}
	return s
}

// size counts the records of a pool that are in use, and the bytes of its state.
func (p *Pool) size() (records, bytes int) {
	records = p.names.Len() + p.tickets.Len() + p.insts.Len() + p.rings.Len() + p.stocks.Len() + p.models.Len() + p.leases.Len() +
		p.members.Len() + p.gates.Len() + p.sessions.Len() + p.answers.Len() + p.callers.recs.Len() + p.history.periods.Len()
	return records, len(p.AppendState(nil))
}

// Clients can invent names. 60,000 names of any kind leave a bounded number of records, and most of these are dropped
// when they are idle.
func TestSixtyThousandNamesLeaveABoundedState(t *testing.T) {
	const names = 60_000
	for _, c := range []struct {
		what string
		per  store.Scope
		set  func(op *store.Op, name string)
	}{
		{"model", store.PerModel, func(op *store.Op, name string) { op.Model = name }},
		{"key", store.PerKey, func(op *store.Op, name string) { op.Key = name }},
		{"agent", store.PerAgent, func(op *store.Op, name string) { op.Agent = name }},
		{"user", store.PerUser, func(op *store.Op, name string) { op.User = name }},
		{"tool", store.PerTool, func(op *store.Op, name string) { op.Tool = name }},
		{"agent and model", store.PerAgent | store.PerModel, func(op *store.Op, name string) { op.Agent, op.Model = name, name }},
	} {
		t.Run(c.what, func(t *testing.T) {
			now := store.Time(1_767_225_600_000_000)
			p, err := New(crowdSpec(0, c.per), now)
			if err != nil {
				t.Fatal(err)
			}
			send := func(name string) {
				now += 300
				op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", TTL: time.Minute}
				c.set(&op, name)
				op.Amounts = amountsFor(p, 1, 1, 1)
				ops := []store.Op{op}
				p.Apply(now, ops)
				if ops[0].Result.State != store.Granted {
					return
				}
				id := ops[0].Result.ID
				p.Apply(now, []store.Op{
					{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictOK, Observed: []store.Observed{{Limit: p.spec.Limits[1].Name, Size: 1000, Remaining: 900, ResetIn: -1}}},
					{Kind: store.OpClose, ID: id},
				})
			}
			for i := range names {
				send(fmt.Sprintf("name-%d", i))
			}
			meters := store.DefaultMeters
			if c.per&^store.Shared == 0 {
				meters /= sharedPart
			}
			if most := 3*meters + 3; p.insts.Len() > most {
				t.Errorf("%d meters, want at most %d", p.insts.Len(), most)
			}
			if got := p.callers.recs.Len(); got > maxCallers+1 {
				t.Errorf("%d callers", got)
			}
			records, bytes := p.size()
			t.Logf("%d records, %d MB", records, bytes>>20)
			if most := 200 << 20; bytes > most {
				t.Errorf("%d names leave %d MB", names, bytes>>20)
			}
			for range 36_000 { // an hour, one request every 100 ms
				now += 100_000
				send("somebody")
			}
			if got := p.insts.Len(); got > meters/2+10 {
				t.Errorf("an hour later there are %d meters", got)
			}
			_, bytes = p.size()
			t.Logf("an hour later %d MB", bytes>>20)
			if err := p.audit(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Scopes that share the crowd's meter, or move between it and a meter of their own, never get more than the provider
// allows each of them. Every model has a rolling window, a bucket, concurrency, and a fixed window with its own reset.
func TestTheCrowdNeverGivesAScopeMoreThanItsLimit(t *testing.T) {
	const window = int64(time.Minute / time.Microsecond)
	crowds := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := store.Time(1_767_225_600_000_000)
		spec := crowdSpec(20+10*r.IntN(3), store.PerModel)
		spec.Limits[0].Size, spec.Limits[1].Size, spec.Limits[2].Size = 5, 5, 3
		p, err := New(spec, now)
		if err != nil {
			t.Fatal(err)
		}
		type request struct {
			id   store.ID
			at   int64
			open bool
		}
		models := 3 + r.IntN(6)
		sent := make([][]request, models)
		reset := func(model int) int64 { return int64(model) * 7_000_000 } // offset of its fixed window's reset
		for range 400 {
			now += store.Time(r.Int64N(1 << (10 + r.IntN(16))))
			model := r.IntN(models)
			name := fmt.Sprint("m", model)
			switch r.IntN(3) {
			case 0, 1:
				op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: "a", Model: name, TTL: time.Hour}
				op.Amounts = amountsFor(p, 1, 1, 1)
				ops := []store.Op{op}
				p.Apply(now, ops)
				if ops[0].Result.State == store.Granted {
					sent[model] = append(sent[model], request{ops[0].Result.ID, int64(now), true})
					crowds += min(int(p.crowd[0]), 1)
				}
			default:
				for i := range sent[model] {
					if q := &sent[model][i]; q.open {
						q.open = false
						left := time.Duration((reset(model)-int64(now)%window+window)%window) * time.Microsecond
						p.Apply(now, []store.Op{
							{Kind: store.OpAnswer, ID: q.id, Verdict: store.VerdictOK, Observed: []store.Observed{{Limit: p.spec.Limits[1].Name, Size: 5, Remaining: -1, ResetIn: left}}},
							{Kind: store.OpClose, ID: q.id},
						})
						break
					}
				}
			}
			open, rolling, fixed := 0, 0, 0
			opened := int64(now) - ((int64(now)-reset(model))%window+window)%window
			for _, q := range sent[model] {
				if q.open {
					open++
				}
				if q.at > int64(now)-window {
					rolling++
				}
				if q.at >= opened {
					fixed++
				}
			}
			if open > 3 || rolling > 5 || fixed > 5 {
				t.Fatalf("seed %d: model %d has %d open, %d in the last minute and %d in its window", seed, model, open, rolling, fixed)
			}
			if err := p.audit(); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
	if crowds < 1000 {
		t.Errorf("the crowd was met %d times only", crowds)
	}
}

// Responses state a size for each scope on the crowd's meter. The smallest size counts, and the smallest remaining amount
// is the room for all of them.
func TestTheCrowdHasTheSmallestSizeThatWasStated(t *testing.T) {
	now := store.Time(1_767_225_600_000_000)
	p, err := New(crowdSpec(10, store.PerModel), now) // one model has a meter of its own
	if err != nil {
		t.Fatal(err)
	}
	tell := func(model string, size, remaining int64) {
		p.Apply(now, []store.Op{{Kind: store.OpObserve, ID: store.ID{Session: 1}, Model: model, Observed: []store.Observed{{Limit: p.spec.Limits[1].Name, Size: size, Remaining: remaining, ResetIn: 30 * time.Second}}}})
	}
	tell("own", 10, 10)
	tell("large", 1000, 1000)
	tell("small", 50, 40)
	tell("middle", 500, 500)
	for _, l := range p.limitStates(&holding{pool: p}) {
		if l.Limit == p.spec.Limits[1].Name && l.Scope == "model="+otherName {
			if l.Size != 50 || l.Remaining != 40 || l.Outside != 0 || l.Reset != 0 {
				t.Errorf("the crowd has %+v", l)
			}
			return
		}
	}
	t.Errorf("no meter of the crowd: %+v", p.limitStates(&holding{pool: p}))
}

// An agent that uses many models in a minute takes a bounded number of periods of the history, and all its requests are
// counted.
func TestManyModelsInAMinuteAreCountedTogether(t *testing.T) {
	now := store.Time(1_767_225_600_000_000)
	p, err := New(crowdSpec(0, store.PerAgent), now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		ops := []store.Op{{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: fmt.Sprint("a", i%2), Model: fmt.Sprint("m", i), TTL: time.Minute, Force: true}}
		ops[0].Amounts = amountsFor(p, 1)
		p.Apply(now, ops)
		p.Apply(now, []store.Op{{Kind: store.OpAnswer, ID: ops[0].Result.ID, Verdict: store.VerdictThrottled}, {Kind: store.OpClose, ID: ops[0].Result.ID}})
	}
	if got := p.history.periods.Len(); got != 2*(maxModels+1) {
		t.Errorf("%d periods, want %d", got, 2*(maxModels+1))
	}
	var sent, refused, others int64
	for _, pd := range p.History(now, 0).Periods {
		sent, refused = sent+pd.Sent, refused+pd.Throttled
		if pd.Model == otherName {
			others += pd.Sent
		}
	}
	if sent != 1000 || refused != 1000 || others != 1000-2*maxModels {
		t.Errorf("%d sent, %d refused, %d of other models", sent, refused, others)
	}
}

// Heartbeats of agents that send no requests leave no records behind. Some of the heartbeats are refused.
func TestAgentsThatOnlyComeAndGoAreForgotten(t *testing.T) {
	now := store.Time(1_767_225_600_000_000)
	p, err := New(crowdSpec(0), now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 10_000 {
		beat := store.Op{Kind: store.OpHeartbeat, ID: store.ID{Session: 1}, Agent: fmt.Sprint("a", i), User: "u", Machine: "m", Slots: store.Slots{Max: 1, TTL: time.Minute}}
		ops := []store.Op{beat}
		p.Apply(now, ops)
		if i%2 == 1 {
			p.Apply(now, []store.Op{{Kind: store.OpLeave, ID: store.ID{Session: 1}, Agent: beat.Agent}})
		}
	}
	if got := p.callers.recs.Len(); got > 2 {
		t.Errorf("%d callers are left", got)
	}
	if err := p.audit(); err != nil {
		t.Error(err)
	}
}
