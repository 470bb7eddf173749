//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
	"github.com/sluicehq/sluice/store/storetest"
)

// Whatever is done to a pool, the journal makes the same of it: all that decides what happens
// next is in the records, and nothing else has a part in it.

// traits are drawn from few values, so that they meet.
type traits struct{ *rapid.T }

func (t traits) number(what string, least, most int) int {
	return rapid.IntRange(least, most).Draw(t.T, what)
}

func (t traits) name(what string, n int) string {
	return []string{"", "a", "b", "c", strings.Repeat("long", 30)}[t.number(what, 0, n)]
}

// amounts states amounts of single limits, and sometimes of all.
func (t traits) amounts(limits int) (list []store.Amount) {
	if t.number("all", 0, 3) == 0 {
		list = append(list, store.Amount{Unit: "requests", N: int64(t.number("amount", 0, 4))})
	}
	for i := range t.number("stated", 0, limits) {
		list = append(list, store.Amount{Limit: fmt.Sprint("limit ", i), N: int64(t.number("amount", 0, 4))})
	}
	return list
}

func (t traits) limit(i int) store.Limit {
	l := store.Limit{
		Name: fmt.Sprint("limit ", i), Unit: "requests", Kind: store.Kind(i % 4), Guard: store.Guard(t.number("guard", 0, 2)),
		Size: int64(t.number("size", 0, 2)) * 7, Window: time.Duration(1+i) * 700 * time.Millisecond, Late: i == 5,
	}
	switch l.Kind {
	case store.Bucket:
		l.Burst = l.Size
	case store.Fixed:
		l.Window *= 1000
	case store.Concurrency:
		l.Window = 0
	}
	if i > 3 {
		l.Per = store.Scope(t.number("per", 0, 31))
	}
	return l
}

func (t traits) spec() store.Spec {
	var limits []store.Limit
	for i := range t.number("limits", 1, 7) {
		limits = append(limits, t.limit(i))
	}
	s := specOf(limits...)
	s.Throttle.Start = time.Second
	s.Order = store.Order(t.number("order", 0, 2))
	s.Light = store.Light{Green: 200, Red: 50, All: t.number("all", 0, 1) == 1}
	s.Breaker = store.Breaker{Within: time.Minute, Samples: 3}
	s.Shares, s.Pace = t.number("shares", 0, 1) == 1, t.number("pace", 0, 1) == 1
	s.Reserve = int64(100 * t.number("reserve", 0, 1))
	s.MaxWaiting = 20
	return s
}

func (t traits) op(limits int, last uint64, session uint64) store.Op {
	op := store.Op{Kind: store.OpKind(t.number("kind", 0, int(store.OpForget))), ID: store.ID{Session: session}}
	if t.number("acquires", 0, 1) == 1 {
		op.Kind = store.OpAcquire
	}
	op.Agent, op.User, op.Model = t.name("agent", 4), t.name("user", 3), t.name("model", 2)
	switch op.Kind {
	case store.OpAcquire:
		op.Key, op.Tool, op.Class = t.name("key", 2), t.name("tool", 2), uint8(t.number("class", 0, 2))
		op.Wait = time.Duration(t.number("wait", -1, 3)) * time.Second
		op.Alive = time.Duration(t.number("alive", 0, 2)) * time.Second
		op.TTL = time.Duration(t.number("ttl", 1, 3)) * time.Second
		op.Retry, op.Emergency = t.number("retry", 0, 1) == 1, op.Class == 0 && t.number("emergency", 0, 1) == 1
		op.Amounts = t.amounts(limits)
		return op
	case store.OpHeartbeat, store.OpLeave:
		op.Machine, op.TTL = t.name("machine", 2), time.Duration(t.number("ttl", 0, 3))*time.Second
		op.Slots = store.Slots{Max: t.number("slots", 0, 2), TTL: 2 * time.Second}
		if waits := t.name("waits for", 3); waits != "" {
			op.WaitsFor = []string{waits}
		}
		return op
	case store.OpLaunch:
		op.Wait = time.Second
		return op
	case store.OpTouch:
		op.TTL, op.Spent = time.Duration(t.number("ttl", 0, 3))*time.Second, t.number("leaves", 0, 5) == 5
		op.Share = int64(t.number("share", 0, 4))
		return op
	case store.OpClose:
		op.Spent = t.number("spent", 0, 1) == 1
		if t.number("settles", 0, 1) == 1 {
			op.Amounts = t.amounts(limits)
		}
	case store.OpRenew:
		op.Wait, op.TTL = time.Second, time.Second
	}
	op.ID.N = uint64(t.number("ticket", 1, int(last)+1))
	op.Verdict = store.Verdict(t.number("verdict", 0, int(store.VerdictUnreachable)))
	op.Scope = store.Scope(t.number("scope", 0, 31)) & store.Shared
	op.RetryAfter = time.Duration(t.number("retry after", 0, 3)) * time.Second
	op.Cause = t.name("cause", 4)
	if t.number("observes", 0, 1) == 1 {
		op.Observed = []store.Observed{{
			Limit: fmt.Sprint("limit ", t.number("observed", 0, limits)), Size: int64(t.number("stated", -1, 20)),
			Remaining: int64(t.number("remaining", -1, 20)), ResetIn: time.Duration(t.number("reset in", -1, 90)) * time.Second,
		}}
	}
	return op
}

func TestTheJournalMakesTheSameStateAgain(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		dir, err := os.MkdirTemp(t.TempDir(), "")
		if err != nil {
			rt.Fatal(err)
		}
		defer os.RemoveAll(dir)
		draw := traits{rt}
		c := clock{storetest.NewClock(storetest.Start)}
		f, err := filestore.Open(dir, filestore.WithClock(c))
		if err != nil {
			rt.Fatal(err)
		}
		defer f.Close()
		spec := draw.spec()
		var members []store.Pool
		join := func(spec store.Spec) {
			p, err := f.Pool(context.Background(), spec)
			if err == nil {
				p.Watch(func([]store.ID) {})
				members = append(members, p)
			}
		}
		if join(spec); len(members) == 0 {
			return // limits that make no sense
		}
		var last [3]uint64
		for range draw.number("steps", 1, 60) {
			switch draw.number("step", 0, 9) {
			case 0:
				if len(members) < 4 { // with other sizes: the smaller hold
					other := spec
					other.Limits = append([]store.Limit(nil), spec.Limits...)
					for i := range other.Limits {
						if l := &other.Limits[i]; l.Size > 0 {
							l.Size = int64(draw.number("other size", 1, 12))
							l.Burst = min(l.Burst, l.Size)
						}
					}
					join(other)
				}
			case 1, 2, 3:
				c.Advance(time.Duration(draw.number("time", 0, 1_500_000)) * time.Microsecond)
			default:
				k := draw.number("member", 0, min(len(members), len(last))-1)
				ops := make([]store.Op, draw.number("ops", 0, 4))
				for i := range ops {
					ops[i] = draw.op(len(spec.Limits), last[k], 0)
				}
				if err := members[k].Apply(context.Background(), ops); err != nil {
					rt.Fatal(err)
				}
				for i := range ops {
					last[k] = max(last[k], ops[i].Result.ID.N)
				}
			}
			if draw.number("look", 0, 29) == 0 {
				same(rt, f)
			}
		}
		same(rt, f)
	})
}
