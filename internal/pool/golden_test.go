package pool

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"testing"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// golden is the hash of the decisions of fixed traces, by the number of the rules. A number's hash never changes once a
// release has it.
var golden = map[int]uint64{
	1: 0x2a899afb2c99cfa9,
}

// goldenStates is the hash of the states after the same traces. It is the same on every machine.
const goldenStates uint64 = 0xa3bc6663805320f1

// goldenTraces is how many traces golden covers, and goldenSteps how long each is.
const goldenTraces, goldenSteps = 60, 200

func TestGoldenDecisions(t *testing.T) {
	for rules := LeastRules; rules <= Rules; rules++ {
		got, states := uint64(0), uint64(0)
		for seed := range uint64(goldenTraces) {
			c := newHashed(t, seed)
			if err := c.p.SetRules(rules); err != nil {
				t.Fatal(err)
			}
			for range goldenSteps {
				c.drawn()
			}
			got = flat.Chain(got, c.p.Hash())
			states = flat.Chain(states, flat.Hash(string(c.p.AppendState(nil))))
		}
		if rules == Rules && got == golden[rules] && states != goldenStates {
			t.Errorf("states have the hash %#x, want %#x. If it is so on all machines, records hold other numbers than before, or states are written in another way: see TestStateLayout", states, goldenStates)
		}
		switch want, known := golden[rules]; {
		case !known:
			t.Errorf("rules %d have no hash: add %d: %#x to golden", rules, rules, got)
		case got != want:
			t.Errorf(`decisions changed: fixed traces have the hash %#x by rules %d, want %#x.
Processes of this release and of the last one share pools, and must decide alike. If the change is meant, raise pool.Rules
to %d, let the changed code ask p.rules >= %d, and add the new hash to golden. The hash of rules %d must stay: old code
stays as long as pool.LeastRules is below %d. If only the traces changed, because the generator in these tests did, write
down the new hash, after the old test has passed with the new code.`, got, rules, want, Rules+1, Rules+1, rules, Rules+1)
		}
	}
	if err := new(Pool).SetRules(Rules + 1); err == nil {
		t.Error("a pool takes rules that this release does not have")
	}
}

// layouts are the fields of all records in a state, as a hash, by the version of states.
var layouts = map[int]uint64{
	1: 0x4d5ab8f5fe46e576,
}

// A state has the fields of records in order, so a changed record changes the bytes.
func TestStateLayout(t *testing.T) {
	h := fnv.New64a()
	for _, p := range statePlans() {
		fmt.Fprintln(h, p.Describe())
	}
	if got := h.Sum64(); got != layouts[stateVersion] {
		t.Errorf(`the records of a state changed: their fields have the hash %#x, want %#x.
An older release would misread a state of this one, and this one those of older releases. Raise stateVersion and add the
hash to layouts; then states of the version before are refused. Without that only fields at the end of a record can be
added, if they are zero by the rules of the release before.`, got, layouts[stateVersion])
	}
}

// A step at the time of an earlier one, without operations, decides nothing and changes no later decision.
func TestEmptyStepsInThePastChangeNothing(t *testing.T) {
	for seed := range uint64(100) {
		c := newHashed(t, seed)
		plain := c.p.Fork()
		for n := range 200 {
			at := fmt.Sprintf("seed %d, step %d", seed, n)
			m := c.move()
			ops, same := m.applyTo(c.p), m.applyTo(plain)
			c.note(ops)
			if got, want := decided(c.p, ops), decided(plain, same); got != want {
				t.Fatalf("%s: with empty steps before\n%s\nand without\n%s", at, got, want)
			}
			now, hash := c.p.Now(), c.p.Hash()
			for _, past := range []store.Time{now, now - 1, now - store.Time(c.Int64N(int64(hour))), 0} {
				if c.IntN(2) == 0 {
					continue
				}
				if c.p.Apply(past, nil); c.p.Now() != now || len(c.p.Decided()) > 0 || c.p.Hash() != hash {
					t.Fatalf("%s: a step %v before the latest changed the pool, now at %v, decided %v", at, now.Sub(past), c.p.Now(), c.p.Decided())
				}
			}
		}
	}
}

// A pool and its fork go their own ways.
func TestForksAreIndependent(t *testing.T) {
	for seed := range uint64(40) {
		c := newHashed(t, seed)
		for range 100 {
			c.drawn()
		}
		fork, same := c.p.Fork(), c.p.Fork()
		other := *c // draws other steps
		other.p, other.ids = fork, append([]store.ID(nil), c.ids...)
		other.Rand = newHashed(t, seed+1000).Rand
		for n := range 60 {
			at := fmt.Sprintf("seed %d, step %d", seed, n)
			m := c.move()
			ops, twin := m.applyTo(c.p), m.applyTo(same)
			c.note(ops)
			if got, want := seen(same, twin), seen(c.p, ops); got != want {
				t.Fatalf("%s: the fork decided\n%s\nand the original\n%s", at, got, want)
			}
			other.drawn()
			if err := fork.audit(); err != nil {
				t.Fatalf("%s: %v", at, err)
			}
			if got, want := same.AppendState(nil), c.p.AppendState(nil); !bytes.Equal(got, want) {
				t.Fatalf("%s: the states differ at byte %d", at, differs(got, want))
			}
		}
	}
}
