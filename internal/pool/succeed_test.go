package pool

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/store"
)

// restate states other limits: some are removed, some new, some changed, and the order differs.
func (c *chaos) restate(t *testing.T) {
	limits := slices.Clone(c.spec.Limits)
	for range 1 + c.IntN(3) {
		i := c.IntN(len(limits))
		switch l := &limits[i]; c.IntN(5) {
		case 0:
			if len(limits) > 1 {
				limits = slices.Delete(limits, i, i+1)
			}
		case 1:
			n := *l
			if n.Name = fmt.Sprint("new", c.IntN(8)); len(limits) < 5 && !slices.ContainsFunc(limits, func(l store.Limit) bool { return l.Name == n.Name }) {
				limits = append(limits, n)
			}
		case 2:
			if l.Kind != store.Concurrency {
				l.Window = c.pick(time.Second, time.Minute, 15*time.Minute)
			}
		case 3:
			l.Size = int64(c.pick(1, 5, 20, 1000))
			l.Burst = min(l.Burst, l.Size)
		default:
			l.Guard = store.Guard(c.IntN(3))
		}
	}
	c.Shuffle(len(limits), func(i, j int) { limits[i], limits[j] = limits[j], limits[i] })
	c.spec.Limits = limits
	waiting := c.p.queue.Len()
	again := c.spec
	again.Restate = c.IntN(4) > 0
	err := c.p.Reform(again, true)
	if errors.Is(err, ErrCrowded) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if c.p.queue.Len() != waiting {
		t.Fatalf("%d of %d still wait", c.p.queue.Len(), waiting)
	}
	c.p.Serve(c.now)
}

// even makes an operation ask as a sluice.Gate does: for an amount of each unit.
func (c *chaos) even(op *store.Op) {
	var list []store.Amount
	for i := range op.Amounts {
		unit := c.p.spec.Limits[i].Unit
		if !slices.ContainsFunc(list, func(a store.Amount) bool { return a.Unit == unit }) {
			list = append(list, store.Amount{Unit: unit, N: op.Amounts[i].N})
		}
	}
	op.Amounts = list
}

// Limits change often while they are used. Every reference is counted, and no records are left over in the end.
func TestNothingIsLeftWhenLimitsAreRestated(t *testing.T) {
	for seed := range tape.Seeds(t, 100) {
		c, err := newChaos(1000 + seed)
		if err != nil {
			t.Fatal(err)
		}
		c.alike = true
		for n := range 250 {
			if n%12 == 11 {
				c.restate(t)
			} else {
				c.step()
			}
			if n%5 == 0 {
				if err := c.p.audit(); err != nil {
					t.Fatalf("seed %d, step %d: %v", seed, n, err)
				}
			}
		}
		c.end(t, seed)
		if t.Failed() {
			return
		}
	}
}
