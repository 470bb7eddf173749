package pool

import (
	"fmt"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// Rules is the number of the rules by which this release decides. Processes of different releases share a pool only while
// they decide alike, so each change of a decision needs a new number: raise Rules, and let the changed code ask
// p.rules >= N as long as LeastRules is below N. TestGoldenDecisions fails when decisions change without it.
const Rules = 1

// LeastRules is the lowest number of rules that this release still has.
const LeastRules = 1

// replica is what a pool has as one of several copies that apply the same operations.
type replica struct {
	rules   int
	hashing hashing
	hash    uint64
}

// hashing says whether steps update the hash.
type hashing bool

func (h hashing) flag() uint8 {
	if h {
		return 1
	}
	return 0
}

// Rules returns the number of the rules by which the pool decides.
func (p *Pool) Rules() int { return p.rules }

// SetRules changes the rules by which the pool decides from now on. It returns an error for rules that this release does
// not have.
func (p *Pool) SetRules(n int) error {
	if n < LeastRules || n > Rules {
		return fmt.Errorf("rules %d: this release has %d to %d", n, LeastRules, Rules)
	}
	p.rules = n
	return nil
}

// HashDecisions makes every Apply and Serve update the hash from now on. It costs some nanoseconds for each operation.
func (p *Pool) HashDecisions() { p.hashing = true }

// Hash returns a hash of all decisions so far: the result of each operation, and of each waiting request that was decided
// without one, in order. It does not depend on how records are stored, nor on steps that decide nothing. Two pools that
// applied the same operations have the same hash, or have decided differently. See HashDecisions.
func (p *Pool) Hash() uint64 { return p.hash }

// hashStep adds the decisions of a step to the hash.
func (p *Pool) hashStep(ops []store.Op) {
	h := p.hash
	for i := range ops {
		op := &ops[i]
		r := &op.Result
		flags := uint64(op.Kind)<<8 | uint64(r.State)
		if r.Held {
			flags |= 1 << 16
		}
		h = flat.Chain(h, flags<<16|uint64(r.Reason.Code)<<8|uint64(r.Reason.Behind))
		h = flat.Chain(h, flat.Hash(r.Reason.Limit))
		h = flat.Chain(h, r.ID.Session)
		h = flat.Chain(h, r.ID.N)
		h = flat.Chain(h, uint64(r.Now))
		h = flat.Chain(h, uint64(r.GrantedAt))
		h = flat.Chain(h, uint64(r.Reason.At)^uint64(r.Share)<<53)
	}
	for _, id := range p.decided {
		h = flat.Chain(h, id.Session)
		h = flat.Chain(h, id.N)
		granted := int64(0) // it has ended
		if t, tk := p.find(id); t != 0 {
			granted = tk.granted
		}
		h = flat.Chain(h, uint64(granted))
	}
	p.hash = h
}
