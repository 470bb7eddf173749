package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// The stores of a chaos run.
const (
	onFile   = "file"
	onRedis  = "redis"
	onDaemon = "daemon"
	onMemory = "memory"
)

var chaosStores = []string{onFile, onRedis, onDaemon, onMemory}

const (
	chaosGates  = 3               // gate processes; only 1 on the memory store, which processes cannot share
	chaosSpan   = 4 * time.Second // all faults begin within this time
	chaosMost   = 8               // most faults in a plan, besides upgrades and the clock
	chaosClocks = 4               // most changes of the clock
)

// chaosKind is a kind of fault.
type chaosKind struct {
	name    string
	what    string   // short description
	stores  []string // stores on which it can happen; nil: all
	longest time.Duration
	loses   bool // the store may lose its state
	kills   bool // a process may crash
	// do starts the fault, waits for its duration and ends it.
	do func(w *world, s chaosStep) error
}

// chaosStep is one fault of a plan.
type chaosStep struct {
	kind  *chaosKind
	at    time.Duration // since the start of the plan
	lasts time.Duration
	gate  int
	part  float64 // part of the requests or replies that are affected
	pick  int     // selects a variant
}

func (s chaosStep) String() string {
	return fmt.Sprintf("+%.2fs for %.2fs  %-16s gate %d, part %.2f, variant %d: %s", s.at.Seconds(), s.lasts.Seconds(), s.kind.name, s.gate, s.part, s.pick, s.kind.what)
}

// chaosPlan is the set-up and the faults that a seed determines.
type chaosPlan struct {
	seed  uint64
	store string
	old   int  // number of gates that start with the previous release
	keeps bool // Redis writes every change to disk before it answers
	steps []chaosStep
}

// newChaosPlan derives a plan from a seed.
func newChaosPlan(seed uint64, on string) chaosPlan {
	r := rand.New(rand.NewPCG(seed, uint64(slices.Index(chaosStores, on))))
	p := chaosPlan{seed: seed, store: on, keeps: r.IntN(2) == 0}
	if (on == onFile || on == onRedis) && r.IntN(3) == 0 {
		p.old = 1 + r.IntN(chaosGates)
	}
	var kinds []*chaosKind
	for _, k := range chaosKinds() {
		if k.stores == nil || slices.Contains(k.stores, on) {
			kinds = append(kinds, k)
		}
	}
	for range 2 + r.IntN(chaosMost-1) {
		k := kinds[r.IntN(len(kinds))]
		s := chaosStep{kind: k, at: time.Duration(r.Int64N(int64(chaosSpan))), gate: r.IntN(p.gates()), part: 0.1 + 0.9*r.Float64(), pick: r.IntN(1 << 16)}
		s.lasts = 50*time.Millisecond + time.Duration(r.Int64N(int64(k.longest)))
		p.steps = append(p.steps, s)
	}
	if on == onRedis && p.loses() {
		p.old = 0 // a gate of the previous release that starts after a FLUSHALL grants what others have used
	}
	for i := range p.old { // at random times among the faults
		p.steps = append(p.steps, chaosStep{kind: upgradeKind, at: time.Duration(r.Int64N(int64(chaosSpan))), gate: i, lasts: 50 * time.Millisecond})
	}
	if slices.Contains(clockKind.stores, on) {
		r := rand.New(rand.NewPCG(seed, 100+uint64(slices.Index(chaosStores, on)))) // the rest of the plan stays what it was
		if r.IntN(2) == 0 {
			for range 1 + r.IntN(chaosClocks) {
				p.steps = append(p.steps, chaosStep{kind: clockKind, at: time.Duration(r.Int64N(int64(chaosSpan))), pick: r.IntN(1 << 16)})
			}
		}
	}
	slices.SortStableFunc(p.steps, func(a, b chaosStep) int { return int(a.at - b.at) })
	return p
}

func (p chaosPlan) gates() int {
	if p.store == onMemory {
		return 1
	}
	return chaosGates
}

// any reports whether the plan has a step whose kind satisfies is.
func (p chaosPlan) any(is func(*chaosKind) bool) bool {
	return slices.ContainsFunc(p.steps, func(s chaosStep) bool { return is(s.kind) })
}

// setsClock reports whether the plan sets the wall clock of its processes.
func (p chaosPlan) setsClock() bool { return p.any(func(k *chaosKind) bool { return k == clockKind }) }

// loses reports whether the store may lose its state. A killed Redis does not lose it if it writes every change to
// disk.
func (p chaosPlan) loses() bool {
	return p.any(func(k *chaosKind) bool { return k.loses && (k.name != killRedis || !p.keeps) })
}

// replay returns the command that plays the same plan again.
func (p chaosPlan) replay() string {
	return fmt.Sprintf("make chaos SEED=%d SEEDS=1 STORE=%s", p.seed, p.store)
}

func (p chaosPlan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d on %s: %d gates, %d of the previous release", p.seed, p.store, p.gates(), p.old)
	if p.store == onRedis {
		fmt.Fprintf(&b, ", Redis keeps everything on disk: %v", p.keeps)
	}
	for _, s := range p.steps {
		fmt.Fprintf(&b, "\n  %v", s)
	}
	return b.String()
}
