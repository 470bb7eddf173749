package sluice

import (
	"context"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// openOthers opens the pools of the store that the configuration does not name, for reading. A pool that cannot be
// opened is recorded in skipped and is not an error: it belongs to another configuration.
func (g *Gate) openOthers(ctx context.Context, others func(pool string) string) error {
	if others == nil {
		return nil
	}
	if !g.settings.readOnly {
		return invalid("others: only a read-only gate has them")
	}
	lister, ok := store.As[store.Lister](g.store)
	if !ok {
		return nil
	}
	list, err := lister.Pools(ctx)
	if err != nil {
		list.Skip("the pools of the store cannot be listed: " + err.Error())
	}
	g.skipped, g.others = list.Skipped, others
	type other struct {
		name string
		spec store.Spec
		r    *resource
		err  error
	}
	var more []other
	for _, spec := range list.Pools {
		name := others(spec.Name)
		if name == "" || (inside{g}).Uses(spec.Name) {
			continue
		}
		if g.resources[name] != nil {
			name += inspect.GatePool
		}
		more = append(more, other{name: name, spec: spec})
	}
	each(len(more), func(i int) { more[i].r, more[i].err = g.newOther(ctx, more[i].name, more[i].spec) })
	for _, o := range more {
		if of, observed := strings.CutSuffix(o.spec.Name, observedPool); observed && o.err == nil {
			o.r.past = slices.ContainsFunc(list.Pools, func(s store.Spec) bool { return s.Name == of })
		}
		if o.err != nil {
			g.unread = append(g.unread, o.spec.Name)
			g.skipped = append(g.skipped, "pool "+o.name+": "+o.err.Error())
			continue
		}
		g.resources[o.name] = o.r
	}
	return nil
}

// newOther is newResource for an existing pool, with its own limits and classes.
func (g *Gate) newOther(ctx context.Context, name string, spec store.Spec) (*resource, error) {
	p := *g.settings
	p.classes = spec.Classes
	spec.Member, spec.OnFailure, spec.ReadOnly, spec.OneShot, spec.Restate = p.member, p.onFailure, true, true, false
	r := &resource{name: name, settings: &p, limits: spec.Limits, ttl: defaultTTL, slack: leastSlack(spec.Limits), other: true}
	r.keyed = tellsKeys(spec.Limits)
	r.breakerOpens, r.observe = spec.Breaker.Open, strings.HasSuffix(spec.Name, observedPool)
	if err := g.connect(ctx, r, spec); err != nil {
		return nil, err
	}
	return r, nil
}

// Uses reports whether a pool of the store belongs to one of the gate's resources.
func (g inside) Uses(pool string) bool {
	for _, r := range g.resources {
		if r.in == pool {
			return true
		}
	}
	return false
}

// NewOthers reports whether the store has new pools since the gate was opened that [Config.Others] would add.
func (g inside) NewOthers(ctx context.Context) bool {
	lister, ok := store.As[store.Lister](g.store)
	if !ok || g.others == nil {
		return false
	}
	list, err := lister.Pools(ctx)
	return err == nil && slices.ContainsFunc(list.Pools, func(s store.Spec) bool {
		return !g.Uses(s.Name) && !slices.Contains(g.unread, s.Name) && g.others(s.Name) != ""
	})
}

// Others returns the resources that [Config.Others] has added, with their limits.
func (g inside) Others() map[string][]Limit {
	all := map[string][]Limit{}
	for name, r := range g.resources {
		if !r.other {
			continue
		}
		list := make([]Limit, len(r.limits))
		for i := range r.limits {
			list[i] = limitOf(&r.limits[i])
		}
		all[name] = list
	}
	return all
}

// Skipped says which pools of the store could not be read, and why, for people.
func (g inside) Skipped() []string { return slices.Clone(g.skipped) }

// limitOf is the inverse of limitSpec.
func limitOf(l *store.Limit) Limit {
	n := Limit{Name: l.Name, Kind: l.Kind, Size: l.Size, Window: l.Window, Unit: l.Unit, SizeIsDefault: l.SizeIsDefault, Estimated: l.Estimated, Plan: l.Plan}
	if l.Kind == Bucket {
		n.Burst = l.Burst
	}
	for scope := PerAgent; scope <= PerKey; scope <<= 1 {
		if l.Per&scope != 0 {
			n.Per = append(n.Per, scope)
		}
	}
	return n
}
