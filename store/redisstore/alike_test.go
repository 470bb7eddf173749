package redisstore_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/storetest"
)

// Similar requests are sent as one lot and decided together. The results equal those of one request after the other.
func TestManyAlikeAreAsOneAfterTheOther(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		spec := store.Spec{
			Name: "pool", Classes: []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}}, MaxWaiting: 100, Pace: rapid.Bool().Draw(rt, "pace"),
			Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}, Overload: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		}
		for i := range rapid.IntRange(1, 3).Draw(rt, "limits") {
			l := store.Limit{Name: string(rune('a' + i)), Unit: "requests", Size: rapid.SampledFrom([]int64{20, 60, 10_000}).Draw(rt, "size")}
			l.Kind, l.Guard = store.Kind(rapid.IntRange(0, 3).Draw(rt, "kind")), store.Guard(rapid.SampledFrom([]int{0, 0, 2}).Draw(rt, "guard"))
			if l.Kind != store.Concurrency {
				l.Window = rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(rt, "window")
			}
			spec.Limits = append(spec.Limits, l)
		}
		var pools [2]store.Pool
		twins := [2]storetest.Harness{openMem(t), open(t)}
		for i, h := range twins {
			defer h.Store.Close()
			p, err := h.Store.Pool(context.Background(), spec)
			if err != nil {
				rt.Fatal(err)
			}
			pools[i] = p
		}
		var open []store.ID // as the first store names them
		other := map[store.ID]store.ID{}
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			d := time.Duration(rapid.SampledFrom([]int{0, 0, 1, 100, 5000}).Draw(rt, "ms")) * time.Millisecond
			ops := drawAlike(rt, spec, &open)
			there := make([]store.Op, len(ops))
			copy(there, ops)
			for i := range there {
				there[i].ID = other[there[i].ID]
			}
			for i, batch := range [][]store.Op{ops, there} {
				twins[i].Advance(d)
				if err := pools[i].Apply(context.Background(), batch); err != nil {
					rt.Fatal(err)
				}
			}
			for i := range ops {
				a, b := ops[i].Result, there[i].Result
				other[a.ID] = b.ID
				a.ID.Session, b.ID.Session = 0, 0
				if a != b {
					rt.Fatalf("%+v\nleft:  %+v\nright: %+v", ops[i], a, b)
				}
				if ops[i].Kind == store.OpAcquire && a.State != store.Refused {
					open = append(open, ops[i].Result.ID)
				}
			}
		}
	})
}

// drawAlike draws runs of the same acquire, and closes.
func drawAlike(t *rapid.T, spec store.Spec, open *[]store.ID) (ops []store.Op) {
	for range rapid.IntRange(1, 4).Draw(t, "runs") {
		if len(*open) > 0 && rapid.Bool().Draw(t, "close") {
			n := rapid.IntRange(1, len(*open)).Draw(t, "closes")
			for _, id := range (*open)[:n] {
				ops = append(ops, store.Op{Kind: store.OpClose, ID: id})
			}
			*open = (*open)[n:]
			continue
		}
		op := store.Op{Kind: store.OpAcquire, Agent: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "agent"), TTL: time.Minute}
		op.Class = uint8(rapid.IntRange(0, 1).Draw(t, "class")) //nolint:gosec // one of two
		op.Wait = rapid.SampledFrom([]time.Duration{0, 0, -1}).Draw(t, "wait")
		for i := range spec.Limits {
			op.Amounts = append(op.Amounts, store.Amount{Limit: spec.Limits[i].Name, N: rapid.SampledFrom([]int64{0, 1, 1, 3}).Draw(t, "amount")})
		}
		for range rapid.IntRange(1, 30).Draw(t, "many") {
			ops = append(ops, op)
		}
	}
	return ops
}

// amounts are of requests and tokens.
func amounts(requests, tokens int64) []store.Amount {
	return []store.Amount{{Unit: "requests", N: requests}, {Unit: "tokens", N: tokens}}
}

// An operation that follows a close of the same ticket in a request is carried out after it.
func TestWhatFollowsACloseIsDoneAfterIt(t *testing.T) {
	t.Parallel()
	spec := store.Spec{
		Name: "pool", Classes: []store.Class{{Name: "p0", Weight: 1}}, MaxWaiting: 10,
		Limits: []store.Limit{
			{Name: "strict", Unit: "requests", Size: 100, Window: time.Minute, Kind: store.Rolling, Guard: store.GuardStrict},
			{Name: "tokens", Unit: "tokens", Size: 1000, Window: time.Minute, Kind: store.Rolling},
		},
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}, Overload: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
	}
	var said [2][]store.Result
	var used [2]int64
	for i, h := range [2]storetest.Harness{openMem(t), open(t)} {
		defer h.Store.Close()
		p, err := h.Store.Pool(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		apply := func(ops ...store.Op) []store.Op {
			t.Helper()
			if err := p.Apply(t.Context(), ops); err != nil {
				t.Fatal(err)
			}
			for _, op := range ops {
				op.Result.ID.Session = 0
				said[i] = append(said[i], op.Result)
			}
			return ops
		}
		ask := store.Op{Kind: store.OpAcquire, Agent: "a", TTL: time.Minute, Amounts: amounts(1, 10)}
		for range 2 { // agents that are not known yet go the long way
			h.Advance(time.Second)
			got := apply(ask, ask, ask)
			a, b, c := got[0].ID, got[1].ID, got[2].ID
			apply(
				store.Op{Kind: store.OpClose, ID: a, Amounts: amounts(1, 2)},
				store.Op{Kind: store.OpClose, ID: b},
				store.Op{Kind: store.OpAnswer, ID: b, Verdict: store.VerdictOK},
				store.Op{Kind: store.OpClose, ID: b, Amounts: amounts(1, 3)},
				store.Op{Kind: store.OpAnswer, ID: c, Verdict: store.VerdictOK},
				store.Op{Kind: store.OpClose, ID: c, Amounts: amounts(1, 4)},
			)
		}
		snap, err := p.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		used[i] = snap.Limits[1].Used
	}
	for i := range said[0] {
		if said[0][i] != said[1][i] {
			t.Errorf("operation %d: %+v in memory, %+v on Redis", i, said[0][i], said[1][i])
		}
	}
	if used[0] != used[1] {
		t.Errorf("%d are used in memory, %d on Redis", used[0], used[1])
	}
}
