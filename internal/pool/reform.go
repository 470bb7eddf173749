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

// Reset is Refresh after the space was restored to an earlier state.
func (p *Pool) Reset() error {
	p.space.Reset()
	p.known, p.knownParts = 0, -1
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

// Is reports whether the pool has exactly this spec, whoever states it.
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

// A limit that no member has any more is retired: requests do not count against it, and its place
// and its charges stay. If a member comes that has it, it is as if it had never been gone. Only when there
// is no more room does another take its place.

func (p *Pool) isRetired(i int) bool { return p.retired&(1<<i) != 0 }

// inUse counts the limits that are not retired.
func (p *Pool) inUse() int { return len(p.spec.Limits) - bits.OnesCount16(p.retired) }

// ErrCrowded tells that a pool has no place for another limit: too many were changed, and
// tickets still stand on them.
var ErrCrowded = errors.New("too many limits were changed while requests that count against them are under way: try again when they are over")

// Index returns the place of a limit in the pool, -1 if there is none of that name.
func (p *Pool) Index(name string) int {
	for i := range p.spec.Limits {
		if p.spec.Limits[i].Name == name && !p.isRetired(i) {
			return i
		}
	}
	return -1
}

// Limits returns the limits by their places, and the set of those that are in force.
func (p *Pool) Limits() (all []store.Limit, inForce uint16) { return p.spec.Limits, p.inForce() }

// Reform takes on the spec of a member whose limits may come in another order. Charges
// stay. A member that is alone replaces what others have left: limits that it does not have
// are retired. Otherwise everyone has the same limits, and the smaller size holds. One that restates
// has users: what came instead of a limit takes over what is charged to it.
func (p *Pool) Reform(spec store.Spec, alone bool) error {
	if err := p.Fits(&spec, alone); err != nil {
		return err
	}
	p.SpellOut()
	p.stirred = true
	restates := spec.Restate
	spec.Restate = false // that is said once
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
	stay := before // places whose limits are the same as before
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

// Stated returns the spec with the limits that are in force.
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

// Edition changes whenever what is stated does.
func (p *Pool) Edition() int64 { return p.known }

// hasLimits reports that the limits in force are those of a spec, whatever their sizes.
func (p *Pool) hasLimits(spec *store.Spec) bool {
	for i := range spec.Limits {
		if k := p.like(&spec.Limits[i]); k < 0 || p.isRetired(k) {
			return false
		}
	}
	return len(spec.Limits) == p.inUse()
}

// like returns the place of a limit of the same name and nature, retired or not, -1 if there is
// none.
func (p *Pool) like(n *store.Limit) int {
	return slices.IndexFunc(p.spec.Limits, func(l store.Limit) bool { return l.Name == n.Name && sameNature(&l, n) })
}

// changeLimit takes on what a member states of a limit that there is.
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

// addLimit finds a place for a limit, rather not one that was in force before.
func (p *Pool) addLimit(n store.Limit, member string, before uint16) (place int, err error) {
	i := len(p.spec.Limits)
	if i < store.MaxLimits {
		p.spec.Limits = append(p.spec.Limits, n)
	} else if i = p.vacate(n.Unit, before); i < 0 {
		return i, ErrCrowded // Fits has seen to it that this is not so
	}
	p.spec.Limits[i] = n
	p.retired &^= 1 << i
	p.setBy(i, member)
	return i, p.define(i)
}

// setBy notes whose size of a limit holds.
func (p *Pool) setBy(i int, member string) {
	old := p.by[i]
	p.by[i] = p.names.Hold(member[:min(len(member), store.MaxName)])
	p.names.Drop(old)
}

// Fits reports why Reform would refuse a spec.
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

// vacant counts the places that a spec does not need and nobody stands on. Those who wait do not count if they are lifted.
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

// limitsInUse is the set of limits that tickets stand on, or with granted, those that were.
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

// vacate makes the place of a retired limit free for another: rather one of the same unit, rather one on which nothing is
// charged, and best one that was not in force just before. It returns -1 if there is none.
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

// isIdle reports that nothing is charged to a limit.
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
