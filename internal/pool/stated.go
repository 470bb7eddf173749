package pool

import (
	"slices"

	"github.com/sluicehq/sluice/store"
)

// The size of a limit is the smallest that a living member states. Reform makes a limit smaller as soon as a member
// states a smaller size. It cannot tell when that member is gone or states another size. So stores keep what each living
// member states, and Due finds the limits that can grow again.

// Said holds what the open sessions of one process state, in order. The zero value is empty.
type Said struct{ list []said }

type said struct {
	session uint64
	spec    store.Spec
}

// With returns what Specs would return after another session has stated spec.
func (s *Said) With(spec *store.Spec) []store.Spec {
	if spec.ReadOnly {
		return s.Specs()
	}
	if spec.Restate {
		return []store.Spec{sizesOf(spec)}
	}
	return append(s.Specs(), sizesOf(spec))
}

// Add notes what a session states. With spec.Restate it replaces what all earlier sessions stated.
func (s *Said) Add(session uint64, spec *store.Spec) {
	if spec.ReadOnly {
		return
	}
	if spec.Restate {
		s.list = nil
	}
	s.list = append(s.list, said{session, sizesOf(spec)})
}

// Drop removes what a session states, and reports whether it had stated anything.
func (s *Said) Drop(session uint64) bool {
	n := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(x said) bool { return x.session == session })
	return len(s.list) < n
}

// Specs returns what the sessions of the process state.
func (s *Said) Specs() []store.Spec {
	var specs []store.Spec
	for i := range s.list {
		specs = append(specs, s.list[i].spec)
	}
	return specs
}

// sizesOf returns a copy of the name, member and limits of a spec. It is a copy because a pool may change the spec that
// it was created with.
func sizesOf(s *store.Spec) store.Spec {
	return store.Spec{Name: s.Name, Member: s.Member, Limits: slices.Clone(s.Limits)}
}

// Merged combines several specs into one that has the smallest size of each limit. Its member is the one that stated the
// last smaller size, or else the first.
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

// Due returns a spec that sets limits to the smallest size that a living member states. Pass it to Reform with alone. It
// changes nothing else. due is false if all limits have that size. One spec has only sizes of one member, so call Due
// again after the Reform. Most callers want Settle, which does that.
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

// leastOf returns the smallest statement of a limit and the member that makes it, or nil if there is none.
func leastOf(living []store.Spec, l *store.Limit) (least *store.Limit, by string) {
	for i := range living {
		n := find(living[i].Limits, l.Name)
		if n != nil && sameNature(n, l) && (least == nil || smaller(n, least)) {
			least, by = n, living[i].Member
		}
	}
	return least, by
}

// Settle sets all limits to the smallest size that a living member states.
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

// Awake returns the end of the latest long silence of all sessions. Silence of a session before that proves nothing.
func (p *Pool) Awake() store.Time { return store.Time(p.awake) }

// Lives reports whether a session that of accepts is certainly alive. That is a member that reports, or a session with
// waiting requests or with granted tickets that end with it.
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
