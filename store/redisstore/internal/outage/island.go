package outage

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// island is the share of this process in a pool that cannot be reached.
type island struct {
	*policy.Island
	meters map[meterKey]int
	blind  map[meterKey]bool // meters of unknown size: they have room for nothing
	start  store.Time        // nothing is granted before
	end    store.Time        // nothing is granted from then on
	rtt    store.Time        // how far the server's clock may be ahead of the estimate
	limits []store.Limit     // of the pool when the island was made: the keys of meters are indexes of them
}

// newIsland builds the share from what the process knows, with charges that the store may not know. It returns nil
// if the process was never told its share.
func (p *Process) newIsland(now store.Time, roundTrip time.Duration) *island {
	m, loose := &p.member, p.lost.loose
	if m.sessions == 0 || m.share == 0 || m.heard == 0 {
		return nil
	}
	rtt := store.Time(roundTrip.Microseconds())
	start := m.heard
	for _, until := range m.pending {
		start = max(start, until)
	}
	start = start.Add(silentAfter)
	is := &island{meters: map[meterKey]int{}, blind: map[meterKey]bool{}, start: start, end: m.expires - rtt, rtt: rtt, limits: p.spec.Limits}
	var limits []policy.IslandLimit
	add := func(k meterKey, c *charges) {
		l := &p.limits[k.limit]
		if _, there := is.meters[k]; there || !l.shared || len(limits) >= maxMeters {
			return
		}
		def := p.islandLimit(k, is)
		if def.Size == 0 {
			is.blind[k] = true
			return
		}
		if c != nil {
			def.Standing = c.standing(&l.Def, int64(now))
		}
		def.Standing = append(def.Standing, loose[k]...)
		is.meters[k] = len(limits)
		limits = append(limits, def)
	}
	for i := range p.spec.Limits {
		if p.limits[i].per == 0 {
			add(meterKey{limit: i}, p.granted.single[i])
		}
	}
	for k, c := range p.granted.scoped {
		add(k, c)
	}
	for k := range loose {
		add(k, nil)
	}
	open := make([]*ticket, 0, len(p.granted.open))
	for _, tk := range p.granted.open {
		if tk.number = -1; tk.due > now {
			open = append(open, tk)
		}
	}
	slices.SortFunc(open, func(a, b *ticket) int { return cmp.Compare(b.granted, a.granted) })
	open = open[:min(len(open), policy.MaxIsland/2)] // leaves room for tickets that are granted here
	list := make([]policy.IslandTicket, len(open))
	for n, tk := range open {
		p.shares(tk, func(_ int, k meterKey) { add(k, nil) })
		amounts, _ := p.amounts(is, tk, false)
		list[n] = policy.IslandTicket{Amounts: amounts, Granted: int64(tk.granted), Answered: int64(tk.answered), Due: int64(tk.due)}
		tk.number = n
	}
	is.Island = policy.NewIsland(m.share, int64(start), int64(is.end), limits, list)
	return is
}

// islandLimit returns what is known of a meter.
func (p *Process) islandLimit(k meterKey, is *island) policy.IslandLimit {
	l := &p.limits[k.limit]
	def := policy.IslandLimit{Def: l.Def, Size: l.size, Burst: l.burst}
	def.Def.Part = 0
	if stated := p.granted.stated[k]; stated > 0 && l.Kind != meter.Bucket && (l.size == 0 || l.guess || stated < l.size) {
		def.Size = stated
	}
	if l.Kind == meter.Fixed && (l.reset != 0 || l.Guard == meter.Off) {
		t := int64(is.start)
		next := l.reset + ((t-l.reset)/l.Window+1)*l.Window
		for next-l.Window > t {
			next -= l.Window
		}
		def.Lo, def.Hi = next-int64(is.rtt), next
		if l.Guard != meter.Off { // the provider's clock rounded the reset to seconds
			def.Lo, def.Hi = def.Lo-1_200_000, def.Hi+1_200_000
		}
	}
	return def
}

// amounts returns what a ticket takes from each meter. blind reports that the size of one is unknown. With add, new
// meters are added.
func (p *Process) amounts(is *island, tk *ticket, add bool) (list []int64, blind bool) {
	list = make([]int64, len(is.meters))
	p.shares(tk, func(i int, k meterKey) {
		n, there := is.meters[k]
		if !there && add && !is.blind[k] {
			if def := p.islandLimit(k, is); def.Size > 0 && len(is.meters) < maxMeters {
				n, there = is.Add(def), true
				is.meters[k] = n
			}
		}
		if !there {
			blind = true
			return
		}
		for len(list) <= n {
			list = append(list, 0)
		}
		list[n] += tk.amounts[i]
	})
	return list, blind
}

// room reports whether a ticket fits the share. If not, retry is when to ask again; 0: not before the store is back.
func (p *Process) room(tk *ticket, now store.Time) (ok bool, retry store.Time) {
	is := p.lost.island
	amounts, blind := p.amounts(is, tk, true)
	if blind {
		return false, 0
	}
	ok, at := is.Allow(int64(now), tk.ttl.Microseconds(), amounts)
	if !ok && at < meter.Never {
		retry = store.Time(at)
	}
	return ok, retry
}

// take charges the share with what a ticket needs.
func (p *Process) take(tk *ticket, now store.Time) {
	is := p.lost.island
	amounts, _ := p.amounts(is, tk, false)
	tk.number = is.Take(int64(now), tk.ttl.Microseconds(), amounts)
	tk.granted, tk.due, tk.answered = now, now.Add(tk.ttl), 0
}

// exceed charges what a request used beyond its estimate.
func (p *Process) exceed(tk *ticket, used []store.Amount, now store.Time) {
	more := *tk
	any := false
	for i := range p.spec.Limits {
		used, _ := store.AmountOf(used, &p.spec.Limits[i])
		more.amounts[i] = max(used-tk.amounts[i], 0)
		any = any || more.amounts[i] > 0
	}
	if !any {
		return
	}
	more.ttl = 1
	p.take(&more, now)
	p.lost.island.Answer(more.number, int64(now))
	p.lost.island.Close(more.number, int64(now))
}

// standing returns what closed requests that were granted here still take, by meter.
func (is *island) standing(now store.Time) map[meterKey]int64 {
	sums := is.Lingering(int64(now))
	all := map[meterKey]int64{}
	for k, n := range is.meters {
		if sums[n] > 0 {
			all[k] = sums[n]
		}
	}
	return all
}
