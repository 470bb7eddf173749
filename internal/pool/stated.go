package pool

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// The size of a limit is the smallest that a living member states. Reform makes a limit smaller as soon as a member says so. It
// cannot tell when that member is gone or says something else, so stores keep what each living member states, and give limits
// back what Due finds.

// Said is what the open sessions of one process state, in the order in which they did. The zero value has none.
type Said struct{ list []said }

type said struct {
	session uint64
	spec    store.Spec
}

// With returns what the process states once one more session states spec.
func (s *Said) With(spec *store.Spec) []store.Spec {
	if spec.ReadOnly {
		return s.Specs()
	}
	if spec.Restate {
		return []store.Spec{sizesOf(spec)}
	}
	return append(s.Specs(), sizesOf(spec))
}

// Add notes what a session states. One that restates speaks for all sessions before it.
func (s *Said) Add(session uint64, spec *store.Spec) {
	if spec.ReadOnly {
		return
	}
	if spec.Restate {
		s.list = nil
	}
	s.list = append(s.list, said{session, sizesOf(spec)})
}

// Drop forgets what a session states, and reports whether it stated anything.
func (s *Said) Drop(session uint64) bool {
	n := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(x said) bool { return x.session == session })
	return len(s.list) < n
}

// Specs returns what the process states.
func (s *Said) Specs() []store.Spec {
	var specs []store.Spec
	for i := range s.list {
		specs = append(specs, s.list[i].spec)
	}
	return specs
}

// sizesOf leaves of a spec what it says of limits. A pool may change the spec that it was made of.
func sizesOf(s *store.Spec) store.Spec {
	return store.Spec{Name: s.Name, Member: s.Member, Limits: slices.Clone(s.Limits)}
}

// Merged is what several statements are together: of each limit the smallest size. The first names the member.
func Merged(specs []store.Spec) store.Spec {
	all := sizesOf(&specs[0])
	for i := range specs[1:] {
		for _, n := range specs[1+i].Limits {
			k := slices.IndexFunc(all.Limits, func(l store.Limit) bool { return l.Name == n.Name && sameNature(&l, &n) })
			switch {
			case k < 0 && find(all.Limits, n.Name) == nil && len(all.Limits) < store.MaxLimits:
				all.Limits = append(all.Limits, n)
			case k >= 0 && smaller(&n, &all.Limits[k]):
				all.Limits[k] = n
				all.Member = specs[1+i].Member
			}
		}
	}
	return all
}

// Due returns the spec for a Reform, as by one who is alone, that gives limits the smallest size that one of the living members
// states. It changes nothing else. Due reports false if all limits have that size. The sizes in one spec are those of one member:
// call it again after the Reform.
func (p *Pool) Due(living []store.Spec) (spec store.Spec, due bool) {
	spec = p.Stated()
	for i := range spec.Limits {
		l := &spec.Limits[i]
		least, by := leastOf(living, l)
		if least == nil || !smaller(l, least) && !smaller(least, l) || due && by != spec.Member {
			continue
		}
		l.Size, l.Burst, l.SizeIsDefault = least.Size, least.Burst, least.SizeIsDefault
		spec.Member, due = by, true
	}
	return spec, due
}

// leastOf returns the smallest size that is stated of a limit, and by whom; nil if nobody states any.
func leastOf(living []store.Spec, l *store.Limit) (least *store.Limit, by string) {
	for i := range living {
		n := find(living[i].Limits, l.Name)
		if n != nil && sameNature(n, l) && (least == nil || smaller(n, least)) {
			least, by = n, living[i].Member
		}
	}
	return least, by
}

// Settle makes all that is due.
func (p *Pool) Settle(living []store.Spec) error {
	for range store.MaxLimits {
		spec, due := p.Due(living)
		if !due {
			break
		}
		if err := p.Reform(spec, true); err != nil {
			return err
		}
	}
	return nil
}

// Awake returns since when the pool was heard of without a long silence: before that, silence proves nothing.
func (p *Pool) Awake() store.Time { return store.Time(p.awake) }

// Lives reports whether a session that of accepts is there for certain: it keeps in touch, has requests that wait, or has
// tickets that end with it.
func (p *Pool) Lives(now store.Time, of func(session uint64) bool) bool {
	for i := p.firstMember; i != 0; i = p.members.At(i).next {
		if m := p.members.At(i); m.silentFrom() > int64(now) && of(p.sessions.At(m.session).id) {
			return true
		}
	}
	for i := int32(1); i < p.tickets.End(); i++ {
		t := p.tickets.At(i)
		there := t.state == stateWaiting || t.state == stateReady || t.state == stateHeld && t.tie != uint8(store.TieNone) && !t.lost
		if there && of(t.id.Session) {
			return true
		}
	}
	return false
}
