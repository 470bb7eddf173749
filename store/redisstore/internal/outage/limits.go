package outage

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// limit is a limit of the pool, as far as this package needs it.
type limit struct {
	meter.Def
	per     store.Scope
	size    int64
	burst   int64
	reset   int64
	guess   bool
	shared  bool
	lingers bool // charges of closed requests are worth recording
}

// meterKey names a meter of a limit that many share.
type meterKey struct {
	limit      int
	model, key string
}

// compile works out what there is to know of a pool's limits.
func compile(limits []store.Limit) (all [store.MaxLimits]limit) {
	for i := range limits[:min(len(limits), store.MaxLimits)] {
		l := &limits[i]
		d, err := meter.Compile(meter.Kind(l.Kind), meter.Guard(l.Guard), l.Window, l.Slack)
		if err != nil {
			continue // the pool has accepted it: this cannot be
		}
		d.Late = l.Late
		all[i] = limit{Def: d, per: l.Per, size: l.Size, burst: l.Burst, reset: int64(l.Reset), guess: l.SizeIsDefault, shared: l.Per&^store.Shared == 0}
		all[i].lingers = all[i].shared && (d.Kind == meter.Rolling || d.Kind == meter.Fixed) && d.Window <= policy.IslandWithin
	}
	return all
}

// keyOf names the meter of limit i that a ticket counts on.
func (l *limit) keyOf(i int, tk *ticket) meterKey {
	k := meterKey{limit: i}
	if l.per&store.PerModel != 0 {
		k.model = tk.model
	}
	if l.per&store.PerKey != 0 {
		k.key = tk.key
	}
	return k
}

// boundOf returns by when a request that is over has arrived.
func (l *limit) boundOf(tk *ticket, now store.Time, spent bool) int64 {
	heard := tk.answered != 0 || !spent
	switch {
	case l.Guard == meter.Off:
		return int64(tk.granted)
	case l.Late && heard:
		return int64(min(now, tk.due))
	case l.Late, l.Guard == meter.Strict && tk.answered == 0:
		return int64(tk.due)
	case tk.answered != 0:
		return int64(min(tk.answered, tk.due))
	case heard:
		return min(int64(now), int64(tk.granted)+l.Most)
	}
	return int64(tk.granted) + l.Most
}

// shares visits the meters of shared limits that a ticket takes something of.
func (p *Process) shares(tk *ticket, f func(i int, k meterKey)) {
	for i := range p.spec.Limits {
		if l := &p.limits[i]; tk.amounts[i] > 0 && l.shared {
			f(i, l.keyOf(i, tk))
		}
	}
}
