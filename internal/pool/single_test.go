package pool

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/store"
)

// usual returns an operation that most steps have.
func (c *chaos) usual() store.Op {
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: uint64(1 + c.IntN(3))}, Agent: c.name("a", 3), Class: uint8(c.IntN(len(c.spec.Classes)))}
	if c.IntN(3) > 0 && len(c.ids) > 0 {
		op = store.Op{Kind: store.OpClose, ID: c.ids[c.IntN(len(c.ids))]}
		if c.IntN(2) == 0 {
			op.Kind, op.Verdict = store.OpAnswer, store.VerdictOK
			if c.IntN(8) == 0 {
				op.Rejected = 404
			}
		} else if c.IntN(3) == 0 {
			for i := range c.spec.Limits {
				op.Amounts = append(op.Amounts, store.Amount{Limit: c.spec.Limits[i].Name, N: int64(c.pick(-1, 0, 1, 5, 50))})
			}
		}
		return op
	}
	if c.IntN(2) == 0 {
		op.User, op.Model, op.Tool, op.Key = c.name("u", 2), c.name("m", 2), c.name("t", 2), c.name("k", 2)
	}
	op.Wait, op.TTL, op.Tie = c.pick(-1, 0, 0, time.Second), c.pick(time.Second, time.Minute, time.Hour), store.Tie(c.IntN(3))
	op.Alive, op.Retry = c.pick(0, time.Second), c.IntN(4) == 0
	for i := range c.spec.Limits {
		op.Amounts = append(op.Amounts, store.Amount{Limit: c.spec.Limits[i].Name, N: int64(c.pick(0, 1, 1, 1, 3))})
	}
	return op
}

// Steps decide and count the same by the short way, and leave the same records.
func TestTheShortWayDecidesTheSame(t *testing.T) {
	short := 0
	for seed := range tape.Seeds(t, 120) {
		c, err := newChaos(seed)
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.spec.Limits { // with room, so that requests do not only wait
			if c.IntN(4) > 0 {
				l := &c.spec.Limits[i]
				l.Size, l.Burst = 1000*l.Size, 1000*l.Burst
			}
		}
		full, err := New(c.spec, c.now)
		if err != nil {
			t.Fatal(err)
		}
		c.p, err = New(c.spec, c.now)
		if err != nil {
			t.Fatal(err)
		}
		for n := range 150 {
			c.now = c.now.Add(c.pick(0, 0, 1000, time.Millisecond, 50*time.Millisecond, 2*time.Second, time.Minute))
			ops := make([]store.Op, c.pick(1, 1, 2, 3, 5))
			for i := range ops {
				ops[i] = c.usual()
				if c.IntN(40) == 0 {
					ops[i] = c.op()
				}
			}
			same := slices.Clone(ops)
			at := fmt.Sprintf("seed %d, step %d, %+v", seed, n, ops)
			calm := c.p.isCalm()
			full.Apply(c.now, ops)
			c.p.Step(c.now, same)
			if !reflect.DeepEqual(ops, same) || full.Wake() != c.p.Wake() || !slices.Equal(full.Decided(), c.p.Decided()) {
				t.Fatalf("%s:\n%+v\nby the short way\n%+v", at, ops, same)
			}
			for i := range ops {
				if ops[i].Kind != store.OpAcquire || ops[i].Result.State != store.Granted {
					continue
				}
				if calm {
					short++
				}
				if c.ids = append(c.ids, ops[i].Result.ID); len(c.ids) > 12 {
					c.ids = c.ids[6:]
				}
			}
			if n%10 < 9 { // what differs stays different
				continue
			}
			wantSameRecords(t, at, full, c.p)
		}
	}
	if short < 1000 {
		t.Errorf("only %d requests went the short way", short)
	}
}

// wantSameRecords fails unless two pools have the same state.
func wantSameRecords(t *testing.T, at string, full, short *Pool) {
	t.Helper()
	if !bytes.Equal(full.AppendState(nil), short.AppendState(nil)) {
		t.Fatalf("%s: the states differ", at)
	}
}

// More agents than maxCallers go the short way too, and are counted the same.
func TestStepsOfACrowdSayTheSame(t *testing.T) {
	spec := classesSpec(store.Limit{Name: "own", Unit: "requests", Kind: store.Bucket, Size: 1000, Burst: 1000, Window: time.Second, Per: store.PerAgent})
	spec.MaxMeters = 2 * maxCallers
	now := store.Time(1_700_000_000_000_000)
	full, err := New(spec, now)
	if err != nil {
		t.Fatal(err)
	}
	short, err := New(spec, now)
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		for i := range maxCallers + 500 {
			if round > 0 && i < maxCallers-500 { // only agents near the bound ask again
				continue
			}
			now = now.Add(100 * time.Microsecond)
			op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: fmt.Sprint("agent", i), TTL: time.Minute}
			op.Amounts = amountsFor(full, 1)
			ops, same := []store.Op{op}, []store.Op{op}
			full.Apply(now, ops)
			short.Step(now, same)
			if ops[0].Result != same[0].Result || ops[0].Result.State != store.Granted {
				t.Fatalf("agent %d: %+v, by the short way %+v", i, ops[0].Result, same[0].Result)
			}
			end := store.Op{Kind: store.OpClose, ID: ops[0].Result.ID}
			full.Apply(now, []store.Op{end})
			short.Step(now, []store.Op{end})
		}
	}
	wantSameRecords(t, "in the end", full, short)
}
