package redisstore_test

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/storetest"
)

// What is alike is sent once and decided together: it comes to the same as one after the other.
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
			op.Amounts[i] = rapid.SampledFrom([]int64{0, 1, 1, 3}).Draw(t, "amount")
		}
		for range rapid.IntRange(1, 30).Draw(t, "many") {
			ops = append(ops, op)
		}
	}
	return ops
}
