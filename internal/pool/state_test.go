package pool

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/tape"
	"github.com/sluicehq/sluice/store"
)

// move is one step of a trace. It can be applied to several pools.
type move struct {
	now  store.Time
	ops  []store.Op
	spec *store.Spec // for Reform
}

// move draws the next step.
func (c *chaos) move() (m move) {
	switch c.IntN(10) {
	case 0, 1, 2:
		c.now = c.now.Add(c.pick(1000, time.Millisecond, 300*time.Millisecond, 5*time.Second, time.Minute, 20*time.Minute))
		if c.IntN(50) == 0 {
			c.now = c.now.Add(c.pick(time.Hour, 30*time.Hour, 40*24*time.Hour))
		}
	case 3:
		if w := c.p.Wake(); w != 0 && w.Sub(c.now) < 2*time.Hour {
			c.now = max(c.now, w)
		}
	case 4:
		if c.IntN(6) == 0 {
			c.policy()
			spec := c.spec
			spec.Limits, spec.Classes = slices.Clone(spec.Limits), slices.Clone(spec.Classes)
			if c.IntN(3) == 0 && len(spec.Limits) > 0 {
				k := c.IntN(len(spec.Limits))
				spec.Limits[k].Size = max(spec.Limits[k].Size/2, spec.Limits[k].Burst, 1)
			}
			m.spec = &spec
		}
	default:
		for range 1 + c.IntN(3) {
			op := c.op()
			if op.Kind == store.OpAcquire {
				op.Tie = store.Tie(c.IntN(3))
				op.Force, op.Spent = c.IntN(20) == 0, c.IntN(20) == 0
			}
			if c.IntN(60) == 0 {
				op = store.Op{Kind: store.OpGone, ID: store.ID{Session: 1 + c.Uint64N(2), N: c.Uint64N(2)}}
			}
			m.ops = append(m.ops, op)
		}
	}
	m.now = c.now
	return m
}

// drawn makes a step of a trace on c's own pool, and returns the step for other pools.
func (c *chaos) drawn() move {
	m := c.move()
	mine := m.applyTo(c.p)
	c.note(mine)
	return m
}

// applyTo applies a step to a pool, and returns the operations with their results.
func (m *move) applyTo(p *Pool) []store.Op {
	if m.spec != nil {
		spec := *m.spec
		spec.Limits, spec.Classes = slices.Clone(spec.Limits), slices.Clone(spec.Classes)
		_ = p.Reform(spec, false)
	}
	ops := slices.Clone(m.ops)
	p.Apply(m.now, ops)
	return ops
}

// seen describes what a step has decided, and when the next is due.
func seen(p *Pool, ops []store.Op) string { return fmt.Sprintln(p.Wake()) + decided(p, ops) }

func decided(p *Pool, ops []store.Op) string {
	s := fmt.Sprintln(p.Decided(), p.Hash())
	for i := range ops {
		s += fmt.Sprintf("%v %+v\n", ops[i].Kind, ops[i].Result)
	}
	return s
}

func newHashed(tb testing.TB, seed uint64) *chaos {
	tb.Helper()
	c, err := newChaos(seed)
	if err != nil {
		tb.Fatal(err)
	}
	c.p.HashDecisions()
	return c
}

// A pool that is restored, or forked, after each step decides as the original does, and has the same state to the byte.
func TestRestoredPoolsDecideAlike(t *testing.T) {
	for seed := range tape.Seeds(t, 60) {
		c := newHashed(t, seed)
		restored, forked := c.p.Fork(), c.p.Fork()
		for n := range 200 {
			at := fmt.Sprintf("seed %d, step %d", seed, n)
			state := c.p.AppendState(nil)
			var err error
			if restored, err = Restore(restored.AppendState(nil)); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			forked = forked.Fork()
			for name, p := range map[string]*Pool{"original": c.p, "restored": restored, "forked": forked} {
				if err := p.audit(); err != nil {
					t.Fatalf("%s, %s: %v", at, name, err)
				}
				if got := p.AppendState(nil); !bytes.Equal(got, state) {
					t.Fatalf("%s, %s: %d bytes, want the %d of the original; the first that differs is at %d", at, name, len(got), len(state), differs(got, state))
				}
			}
			m := c.move()
			want := ""
			for i, p := range []*Pool{c.p, restored, forked} {
				ops := m.applyTo(p)
				got := seen(p, ops)
				if i == 0 {
					want = got
					c.note(ops)
				} else if got != want {
					t.Fatalf("%s, pool %d:\n%s\nwant:\n%s", at, i, got, want)
				}
			}
		}
	}
}

// note remembers the tickets of a step.
func (c *chaos) note(ops []store.Op) {
	for i := range ops {
		if ops[i].Kind == store.OpAcquire && ops[i].Result.ID.N != 0 {
			c.ids = append(c.ids, ops[i].Result.ID)
		}
	}
	if len(c.ids) > 40 {
		c.ids = c.ids[20:]
	}
}

func differs(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// What another release wrote is told from what is damaged.
func TestStatesOfOtherReleasesAreRefused(t *testing.T) {
	c := newHashed(t, 1)
	state := c.p.AppendState(nil)
	other := slices.Clone(state)
	other[0]++
	if _, err := Restore(other); !errors.Is(err, ErrVersion) {
		t.Errorf("another version: %v", err)
	}
	other = slices.Clone(unsealed(state))
	other[0] = Rules + 1
	if _, err := Restore(sealed(other)); !errors.Is(err, ErrVersion) {
		t.Errorf("other rules: %v", err)
	}
	for n := range len(state) {
		if _, err := Restore(state[:n]); !errors.Is(err, ErrState) {
			t.Fatalf("%d of %d bytes: %v", n, len(state), err)
		}
		other = slices.Clone(state)
		other[n] ^= 4
		if _, err := Restore(other); err == nil {
			t.Fatalf("with another byte %d: no error", n)
		}
	}
}
