package outage

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// limit is what this package needs of a limit of the pool.
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

// meterKey names a meter of a shared limit.
type meterKey struct {
	limit      int
	model, key string
}

// compile prepares the limits of a pool.
func compile(limits []store.Limit) (all [store.MaxLimits]limit) {
	for i := range limits[:min(len(limits), store.MaxLimits)] {
		l := &limits[i]
		d, err := meter.Compile(meter.Kind(l.Kind), meter.Guard(l.Guard), l.Window, l.Slack)
		if err != nil {
			continue // cannot happen: the pool has accepted the limit
		}
		d.Late = l.Late
		all[i] = limit{Def: d, per: l.Per, size: l.Size, burst: l.Burst, reset: int64(l.Reset), guess: l.SizeIsDefault, shared: l.Per&^store.Shared == 0}
		all[i].lingers = all[i].shared && (d.Kind == meter.Rolling || d.Kind == meter.Fixed) && d.Window <= policy.IslandWithin
	}
	return all
}

// keyOf returns the meter of limit i that a ticket is charged to.
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

// boundOf returns the latest time at which a closed request can have arrived at the provider.
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

// shares calls f for each meter of a shared limit that a ticket takes something from.
func (p *Process) shares(tk *ticket, f func(i int, k meterKey)) {
	for i := range p.spec.Limits {
		if l := &p.limits[i]; tk.amounts[i] > 0 && l.shared {
			f(i, l.keyOf(i, tk))
		}
	}
}
