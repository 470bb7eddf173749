package pool

import (
	"bytes"
	"errors"
	"fmt"
	"math/bits"
	"slices"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/store"
)

// written says where in the space the spec is stored, for all processes that share the pool.
type written struct {
	version  int64
	at, size int64
}

// write stores the spec in the space, if there is one.
func (p *Pool) write() {
	if p.space == nil {
		return
	}
	w := &p.written
	w.at, w.size = p.space.Keep(w.at, w.size, oplog.AppendSpec(nil, &p.spec))
	w.version++
	p.known = w.version
}

// Refresh applies what other processes have changed since: the addresses of records, the withheld parts, and the spec.
func (p *Pool) Refresh() error {
	p.space.Refresh()
	if p.knownParts != p.partsRev {
		p.takeParts()
	}
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

// Reset is Refresh for a space that was restored to an earlier state.
func (p *Pool) Reset() error {
	p.space.Reset()
	p.known, p.knownParts = 0, -1
	return p.Refresh()
}

// adopt sets the spec and derives all other settings from it alone. Another process may have written the spec, and all
// processes must derive the same, whatever limits they had before.
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

// Is reports whether the pool has exactly this spec, regardless of the member that states it.
func (p *Pool) Is(spec *store.Spec) bool {
	mine, theirs := p.spec, *spec
	mine.Member, theirs.Member, theirs.Restate = "", "", false
	mine.Limits = nil
	for i := range spec.Limits {
		k := p.Index(spec.Limits[i].Name)
		if k < 0 {
			return false
		}
		mine.Limits = append(mine.Limits, p.spec.Limits[k])
	}
	return len(mine.Limits) == p.inUse() && bytes.Equal(oplog.AppendSpec(nil, &mine), oplog.AppendSpec(nil, &theirs))
}

// isRetired reports whether no member has limit i any more. Requests do not count against a retired limit. Its index and
// charges stay, so it continues unchanged if a member adds it back. Another limit takes its index only when there is no
// other.
func (p *Pool) isRetired(i int) bool { return p.retired&(1<<i) != 0 }

// inUse counts the limits that are not retired.
func (p *Pool) inUse() int { return len(p.spec.Limits) - bits.OnesCount16(p.retired) }

// ErrCrowded is returned when a pool has no index for another limit, because tickets still use too many retired ones.
var ErrCrowded = errors.New("too many limits were changed while requests that count against them are under way: try again when they are over")

// Index returns the index of the limit with a name, or -1 if no limit in force has it.
func (p *Pool) Index(name string) int {
	for i := range p.spec.Limits {
		if p.spec.Limits[i].Name == name && !p.isRetired(i) {
			return i
		}
	}
	return -1
}

// Limits returns all limits by index, and the set of those in force.
func (p *Pool) Limits() (all []store.Limit, inForce uint16) { return p.spec.Limits, p.inForce() }

// Reform applies the spec of a member. Its limits may come in another order than the pool's. Charges stay.
//
// If the member is alone, its spec replaces the pool's: limits that it does not have are retired. Otherwise all members
// must have the same limits, and the smallest size of each counts. With spec.Restate the member changes limits that are
// in use, so a limit that replaces another takes over its charges.
func (p *Pool) Reform(spec store.Spec, alone bool) error {
	if err := p.Fits(&spec, alone); err != nil {
		return err
	}
	p.stirred = true
	restates := spec.Restate
	spec.Restate = false // applies to this call only
	before, replaces := p.inForce(), alone && !p.hasLimits(&spec)
	var line []lifted
	if replaces {
		line = p.lift()
	}
	for i := range p.spec.Limits {
		if n := find(spec.Limits, p.spec.Limits[i].Name); n == nil || !sameNature(&p.spec.Limits[i], n) {
			p.retired |= 1 << i
		}
	}
	stay := before // set of limits that stay the same
	for _, n := range spec.Limits {
		var err error
		i := p.like(&n)
		if i < 0 {
			i, err = p.addLimit(n, spec.Member, before)
			stay &^= 1 << max(i, 0)
		} else {
			p.retired &^= 1 << i
			err = p.changeLimit(i, &n, spec.Member, alone)
		}
		if err != nil {
			return fmt.Errorf("limit %q: %w", n.Name, err)
		}
	}
	spec.Limits = p.spec.Limits
	if err := p.adopt(spec); err != nil {
		return err
	}
	p.respan()
	if p.anyKnown() {
		p.endRamps()
	}
	if replaces {
		heir := p.heirs(stay)
		if restates {
			p.inherit(&heir)
		}
		p.requeue(line, stay, &heir)
	}
	p.write()
	return nil
}

// Stated returns the spec with only the limits in force.
func (p *Pool) Stated() store.Spec {
	s := p.spec
	s.Limits = nil
	for i := range p.spec.Limits {
		if !p.isRetired(i) {
			s.Limits = append(s.Limits, p.spec.Limits[i])
		}
	}
	return s
}

// Edition returns a number that changes whenever the spec does.
func (p *Pool) Edition() int64 { return p.known }

// hasLimits reports whether the limits in force are those of a spec, regardless of their sizes.
func (p *Pool) hasLimits(spec *store.Spec) bool {
	for i := range spec.Limits {
		if k := p.like(&spec.Limits[i]); k < 0 || p.isRetired(k) {
			return false
		}
	}
	return len(spec.Limits) == p.inUse()
}

// like returns the index of a limit with the same name and nature, retired or not, or -1 if there is none.
func (p *Pool) like(n *store.Limit) int {
	return slices.IndexFunc(p.spec.Limits, func(l store.Limit) bool { return l.Name == n.Name && sameNature(&l, n) })
}

// changeLimit applies what a member states about existing limit i. Unless the member is alone, only a smaller size counts.
func (p *Pool) changeLimit(i int, n *store.Limit, member string, alone bool) error {
	l := &p.spec.Limits[i]
	l.Estimated, l.SizeIsDefault, l.Plan, l.Reset = n.Estimated, n.SizeIsDefault, n.Plan, n.Reset
	if alone {
		l.Slack = n.Slack
		if err := p.derive(i); err != nil {
			return err
		}
	}
	if !alone && !smaller(n, l) {
		return nil
	}
	if n.Size == l.Size && n.Burst == l.Burst {
		return nil
	}
	p.setBy(i, member)
	l.Size, l.Burst = n.Size, n.Burst
	return p.resize(i)
}

// addLimit adds a limit and returns its index. If all indexes are used, it replaces a retired limit, preferably one that
// is not in the set before.
func (p *Pool) addLimit(n store.Limit, member string, before uint16) (place int, err error) {
	i := len(p.spec.Limits)
	if i < store.MaxLimits {
		p.spec.Limits = append(p.spec.Limits, n)
	} else if i = p.vacate(n.Unit, before); i < 0 {
		return i, ErrCrowded // cannot happen: Fits has checked
	}
	p.spec.Limits[i] = n
	p.retired &^= 1 << i
	p.setBy(i, member)
	return i, p.define(i)
}

// setBy notes the member whose size of limit i counts.
func (p *Pool) setBy(i int, member string) {
	old := p.by[i]
	p.by[i] = p.names.Hold(member[:min(len(member), store.MaxName)])
	p.names.Drop(old)
}

// Fits returns the error with which Reform would refuse a spec, or nil.
func (p *Pool) Fits(spec *store.Spec, alone bool) error {
	if err := checkSpec(spec); err != nil {
		return err
	}
	if err := checkMeters(spec); err != nil {
		return err
	}
	more := 0
	for i := range spec.Limits {
		n := &spec.Limits[i]
		if p.like(n) < 0 {
			more++
		}
		if k := p.Index(n.Name); !alone && k >= 0 && !sameNature(&p.spec.Limits[k], n) {
			l := &p.spec.Limits[k]
			return fmt.Errorf("limit %q: processes that are running use it as %v per %v, with another scope, unit or guard if these are the same; end them first, or give all the same limits",
				n.Name, l.Kind, l.Window)
		}
	}
	for i := range p.spec.Limits {
		if l := &p.spec.Limits[i]; !alone && !p.isRetired(i) && find(spec.Limits, l.Name) == nil {
			return fmt.Errorf("processes that are running use the limit %q, which is missing here; end them first, or give all the same limits", l.Name)
		}
	}
	if len(p.spec.Limits)+more-p.vacant(spec, alone) > store.MaxLimits {
		return ErrCrowded
	}
	return nil
}

// vacant counts the indexes of limits that a spec does not have and that no ticket uses. With lifts, waiting tickets do
// not count.
func (p *Pool) vacant(spec *store.Spec, lifts bool) (n int) {
	standing := p.limitsInUse(lifts)
	for i := range p.spec.Limits {
		l := &p.spec.Limits[i]
		if m := find(spec.Limits, l.Name); standing&(1<<i) == 0 && (m == nil || !sameNature(l, m)) {
			n++
		}
	}
	return n
}

// limitsInUse returns the set of limits that tickets use. With granted, waiting tickets do not count.
func (p *Pool) limitsInUse(granted bool) (set uint16) {
	for t := int32(1); t < p.tickets.End(); t++ {
		if tk := p.tickets.At(t); tk.state != 0 && (!granted || tk.state != stateWaiting) {
			for k := range tk.n {
				set |= 1 << tk.charges[k].limit
			}
		}
	}
	return set
}

// vacate frees the index of a retired limit for another, and returns it or -1 if there is none. It prefers limits that
// were not in force before, then limits without charges, then limits of the same unit.
func (p *Pool) vacate(unit string, before uint16) int {
	standing, place, best := p.limitsInUse(false), -1, -1
	for i := range p.spec.Limits {
		if !p.isRetired(i) || standing&(1<<i) != 0 {
			continue
		}
		worth := 0
		if before&(1<<i) == 0 {
			worth += 4
		}
		if p.isIdle(i) {
			worth += 2
		}
		if p.spec.Limits[i].Unit == unit {
			worth++
		}
		if worth > best {
			place, best = i, worth
		}
	}
	if place < 0 {
		return -1
	}
	if p.spec.Limits[place].Unit != unit {
		p.history.forgetUnits() // the columns are about to change
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

// isIdle reports whether a limit has no charges.
func (p *Pool) isIdle(limit int) bool {
	for i := int32(1); i < p.insts.End(); i++ {
		if in := p.insts.At(i); in.used && int(in.limit) == limit {
			if in, d, r := p.touch(i); in.Used(d, r) > 0 {
				return false
			}
		}
	}
	return true
}

func find(limits []store.Limit, name string) *store.Limit {
	for i := range limits {
		if limits[i].Name == name {
			return &limits[i]
		}
	}
	return nil
}

// sameNature reports whether two limits count alike, so that one can take over the meters of the other. Sizes may differ.
func sameNature(a, b *store.Limit) bool {
	return a.Kind == b.Kind && a.Window == b.Window && a.Per == b.Per && a.Guard == b.Guard && a.Late == b.Late && a.Unit == b.Unit &&
		(a.Slack == b.Slack || slice(a) == slice(b))
}

// slice returns the width of a meter's slices, or -1 for an invalid limit. Existing slices cannot be divided again.
func slice(l *store.Limit) int64 {
	d, err := compile(l)
	if err != nil {
		return -1
	}
	return d.Slice
}

// smaller reports whether n states a smaller size or burst than l. An unknown size is larger than any other.
func smaller(n, l *store.Limit) bool {
	return n.Size > 0 && (l.Size == 0 || n.Size < l.Size || n.Size == l.Size && n.Burst < l.Burst)
}
