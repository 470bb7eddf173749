package pool

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/store"
)

// written is where the spec is kept for the other processes that share a pool.
type written struct {
	version  int64
	at, size int64
}

// write stores the spec.
func (p *Pool) write() {
	if p.space == nil {
		return
	}
	w := &p.written
	w.at, w.size = p.space.Keep(w.at, w.size, oplog.AppendSpec(nil, &p.spec))
	w.version++
	p.known = w.version
}

// Refresh takes in what other processes have changed since: where records are, and the spec.
func (p *Pool) Refresh() error {
	p.space.Refresh()
	if p.known == p.written.version {
		return nil
	}
	spec, err := oplog.DecodeSpec(p.space.Kept(p.written.at, p.written.size))
	if err == nil {
		err = p.adopt(spec)
	}
	if err != nil {
		return fmt.Errorf("the pool's limits cannot be read: %w", err)
	}
	p.known = p.written.version
	return nil
}

// Reset is Refresh after the space was restored to an earlier state.
func (p *Pool) Reset() error {
	p.space.Reset()
	p.known = 0
	return p.Refresh()
}

// adopt derives everything from the limits of a spec that another process may have written: all
// processes have to derive the same, whatever limits they have seen before.
func (p *Pool) adopt(spec store.Spec) error {
	p.spec = spec
	p.shared, p.ownScopes, p.anyStrict = 0, 0, false
	p.unscoped = [store.MaxLimits]unscoped{}
	for i := range spec.Limits {
		if err := p.derive(i); err != nil {
			return err
		}
		p.findSingle(i)
	}
	p.configure()
	return nil
}

// Is reports whether the pool has exactly this spec.
func (p *Pool) Is(spec *store.Spec) bool {
	w := &p.written
	return bytes.Equal(p.space.Kept(w.at, w.size), oplog.AppendSpec(nil, spec))
}

// retired is the name of a limit that is no longer in use. Its place stays: tickets may stand
// on it.
const retired = ""

// ErrCrowded tells that a pool has no place for another limit: too many were changed, and
// tickets still stand on them.
var ErrCrowded = errors.New("too many limits were changed while requests that count against them are under way: try again when they are over")

// Index returns the place of a limit in the pool, -1 if there is none of that name.
func (p *Pool) Index(name string) int {
	return slices.IndexFunc(p.spec.Limits, func(l store.Limit) bool { return l.Name == name && name != retired })
}

// Limits returns how many places for limits are taken.
func (p *Pool) Limits() int { return len(p.spec.Limits) }

// Reform takes on the spec of a member whose limits may come in another order. Charges
// stay. A member that is alone replaces what others have left: limits that it does not have
// are retired. Otherwise everyone has the same limits, and the smaller size holds.
func (p *Pool) Reform(spec store.Spec, alone bool) error {
	if err := p.Fits(&spec, alone); err != nil {
		return err
	}
	p.stirred = true
	for i := range p.spec.Limits {
		l := &p.spec.Limits[i]
		if l.Name == retired {
			continue
		}
		n := find(spec.Limits, l.Name)
		if n == nil || !sameNature(l, n) {
			l.Name, l.Size, l.Burst, l.Guess = retired, 0, 0, true
			if err := p.resize(i); err != nil {
				return err
			}
			continue
		}
		l.Rough, l.Guess = n.Rough, n.Guess
		if (alone || smaller(n, l)) && (n.Size != l.Size || n.Burst != l.Burst) {
			l.Size, l.Burst = n.Size, n.Burst
			if err := p.resize(i); err != nil {
				return fmt.Errorf("limit %q: %w", l.Name, err)
			}
		}
		if alone {
			l.Slack = n.Slack
			if err := p.derive(i); err != nil {
				return fmt.Errorf("limit %q: %w", l.Name, err)
			}
		}
	}
	for _, n := range spec.Limits {
		if p.Index(n.Name) >= 0 {
			continue
		}
		i := len(p.spec.Limits)
		if i < store.MaxLimits {
			p.spec.Limits = append(p.spec.Limits, n)
		} else if i = p.vacate(n.Unit); i < 0 {
			return ErrCrowded // Fits has seen to it that this is not so
		}
		p.spec.Limits[i] = n
		if err := p.define(i); err != nil {
			return fmt.Errorf("limit %q: %w", n.Name, err)
		}
	}
	spec.Limits = p.spec.Limits
	if err := p.adopt(spec); err != nil {
		return err
	}
	p.write()
	return nil
}

// Fits reports why Reform would refuse a spec.
func (p *Pool) Fits(spec *store.Spec, alone bool) error {
	if err := checkSpec(spec); err != nil {
		return err
	}
	if err := checkMeters(spec); err != nil {
		return err
	}
	places := len(p.spec.Limits)
	if alone {
		places -= p.vacant()
	}
	for i := range spec.Limits {
		n := &spec.Limits[i]
		l := find(p.spec.Limits, n.Name)
		switch {
		case l == nil || alone && !sameNature(l, n):
			places++
		case !sameNature(l, n):
			return fmt.Errorf("limit %q: its name, kind, window, scope and guard are already in use by others as %q (%v per %v)",
				n.Name, l.Name, l.Kind, l.Window)
		}
	}
	for i := range p.spec.Limits {
		if l := &p.spec.Limits[i]; !alone && l.Name != retired && find(spec.Limits, l.Name) == nil {
			return fmt.Errorf("pool %q: others use it with the limit %q, which is missing here", spec.Name, l.Name)
		}
	}
	if places > store.MaxLimits {
		return ErrCrowded
	}
	return nil
}

// vacant counts the places that retired limits have left, or are about to leave, and nobody
// stands on.
func (p *Pool) vacant() (n int) {
	standing := p.standing()
	for i := range p.spec.Limits {
		if p.spec.Limits[i].Name == retired && standing&(1<<i) == 0 {
			n++
		}
	}
	return n
}

// standing is the set of limits that tickets stand on.
func (p *Pool) standing() (set uint16) {
	for t := int32(1); t < p.tickets.End(); t++ {
		if tk := p.tickets.At(t); tk.state != 0 {
			for k := range tk.n {
				set |= 1 << tk.charges[k].limit
			}
		}
	}
	return set
}

// vacate makes the place of a retired limit free for another, rather one of the same unit. It
// returns -1 if there is none.
func (p *Pool) vacate(unit string) int {
	standing, place := p.standing(), -1
	for i := range p.spec.Limits {
		if l := &p.spec.Limits[i]; l.Name == retired && standing&(1<<i) == 0 && (place < 0 || l.Unit == unit) {
			place = i
		}
	}
	if place < 0 {
		return -1
	}
	if p.spec.Limits[place].Unit != unit {
		p.history.forgetUnits() // their columns are about to change
	}
	for i := int32(1); i < p.insts.End(); i++ {
		if in := p.insts.At(i); in.used && int(in.limit) == place {
			p.dropInst(i)
		}
	}
	p.single[place], p.unscoped[place] = 0, unscoped{}
	p.shared &^= 1 << place
	return place
}

func find(limits []store.Limit, name string) *store.Limit {
	for i := range limits {
		if limits[i].Name == name && name != retired {
			return &limits[i]
		}
	}
	return nil
}

func sameNature(a, b *store.Limit) bool {
	return a.Kind == b.Kind && a.Window == b.Window && a.Per == b.Per && a.Guard == b.Guard && a.Late == b.Late && a.Unit == b.Unit &&
		(a.Slack == b.Slack || slice(a) == slice(b))
}

// slice is the width of a meter's slices: what is in them cannot be told apart anew.
func slice(l *store.Limit) int64 {
	d, err := compile(l)
	if err != nil {
		return -1
	}
	return d.Slice
}

// smaller reports whether the size that n states holds although l was stated before.
func smaller(n, l *store.Limit) bool {
	return n.Size > 0 && (l.Size == 0 || n.Size < l.Size || n.Size == l.Size && n.Burst < l.Burst)
}

// take takes on all of a spec but its limits.
func (p *Pool) take(spec *store.Spec) {
	limits := p.spec.Limits
	p.spec = *spec
	p.spec.Limits = limits
	p.configure()
}
