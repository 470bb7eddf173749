package redisstore

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// isle is the member's part of a pool that cannot be reached.
type isle struct {
	*policy.Island
	meters map[meterKey]int
	blind  map[meterKey]bool // meters whose size nobody knows: they have room for nothing
	start  store.Time        // before which nothing is let go
	rtt    store.Time        // how much later than thought it may be
}

// newIsle makes the island of a member that was cut off, from what it knew. loose are charges that the
// store may not know of. It is nil if the member was never told its share. The state is locked.
func (st *state) newIsle(now store.Time, loose map[meterKey][]policy.Lingering) *isle {
	m := &st.member
	if m.users == 0 || m.share == 0 || m.heard == 0 {
		return nil
	}
	rtt := store.Time(st.clock.rtt.Microseconds())
	start := max(m.heard, m.pending).Add(silentAfter)
	is := &isle{meters: map[meterKey]int{}, blind: map[meterKey]bool{}, start: start, rtt: rtt}
	var limits []policy.IslandLimit
	add := func(k meterKey, c *charges) {
		l := &st.limits[k.limit]
		if _, there := is.meters[k]; there || !l.shared || len(limits) >= maxMeters {
			return
		}
		def := st.islandLimit(k, start, rtt)
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
	for i := range st.spec.Limits {
		if st.limits[i].shared && st.limits[i].per == 0 {
			add(meterKey{limit: i}, st.ledger.single[i])
		}
	}
	for k, c := range st.ledger.scoped {
		add(k, c)
	}
	for k := range loose {
		add(k, nil)
	}
	open := make([]*ticket, 0, len(st.ledger.open))
	for _, tk := range st.ledger.open {
		if tk.due > now {
			open = append(open, tk)
		}
	}
	slices.SortFunc(open, func(a, b *ticket) int { return cmp.Compare(b.granted, a.granted) })
	open = open[:min(len(open), policy.MaxIsland/2)] // with room for those that are let go here
	list := make([]policy.IslandTicket, len(open))
	for n, tk := range open {
		for i := range st.spec.Limits {
			if tk.amounts[i] > 0 && st.limits[i].per != 0 {
				add(st.limits[i].keyOf(i, tk), nil)
			}
		}
		amounts, _ := is.amounts(st, tk, nil)
		list[n] = policy.IslandTicket{Amounts: amounts, Granted: int64(tk.granted), Answered: int64(tk.answered), Due: int64(tk.due)}
		tk.number = n
	}
	is.Island = policy.NewIsland(m.share, int64(start), int64(m.expires-rtt), limits, list)
	return is
}

// islandLimit is what is known of a meter.
func (st *state) islandLimit(k meterKey, start, rtt store.Time) policy.IslandLimit {
	l := &st.limits[k.limit]
	def := policy.IslandLimit{Def: l.Def, Size: l.size, Burst: l.burst}
	def.Def.Part = 0
	if stated := st.ledger.stated[k]; stated > 0 && l.Kind != meter.Bucket && (l.size == 0 || l.guess || stated < l.size) {
		def.Size = stated
	}
	if l.Kind == meter.Fixed && (l.reset != 0 || l.Guard == meter.Off) {
		t := int64(start)
		next := l.reset + ((t-l.reset)/l.Window+1)*l.Window
		for next-l.Window > t {
			next -= l.Window
		}
		def.Lo, def.Hi = next-int64(rtt), next
		if l.Guard != meter.Off { // it was rounded to seconds, by a clock that is not ours
			def.Lo, def.Hi = def.Lo-1_200_000, def.Hi+1_200_000
		}
	}
	return def
}

// amounts returns what a ticket takes by meter, and whether the size of one is not known. With add,
// meters that are new are added.
func (is *isle) amounts(st *state, tk *ticket, add func(meterKey) policy.IslandLimit) (list []int64, blind bool) {
	list = make([]int64, len(is.meters))
	for i := range st.spec.Limits {
		l := &st.limits[i]
		if tk.amounts[i] <= 0 || !l.shared {
			continue
		}
		k := l.keyOf(i, tk)
		n, there := is.meters[k]
		if !there && add != nil && !is.blind[k] {
			def := add(k)
			if def.Size == 0 || len(is.meters) >= maxMeters {
				blind = true
				continue
			}
			n, there = is.Add(def), true
			is.meters[k] = n
		}
		if !there {
			blind = true
			continue
		}
		for len(list) <= n {
			list = append(list, 0)
		}
		list[n] += tk.amounts[i]
	}
	return list, blind
}

// allow reports whether a ticket may go, and else when to ask again, 0 if not before the store is
// back. The state is locked.
func (is *isle) allow(st *state, tk *ticket, now store.Time) (ok bool, retry store.Time) {
	amounts, blind := is.amounts(st, tk, func(k meterKey) policy.IslandLimit { return st.islandLimit(k, is.start, is.rtt) })
	if blind {
		return false, 0
	}
	ok, at := is.Allow(int64(now), tk.ttl.Microseconds(), amounts)
	if !ok && at < meter.Never {
		retry = store.Time(at)
	}
	return ok, retry
}

// take lets a ticket go.
func (is *isle) take(st *state, tk *ticket, now store.Time) {
	amounts, _ := is.amounts(st, tk, nil)
	tk.number = is.Take(int64(now), tk.ttl.Microseconds(), amounts)
	tk.granted, tk.due, tk.answered = now, now.Add(tk.ttl), 0
}

// exceed charges what a request has used beyond what was reckoned.
func (is *isle) exceed(st *state, tk *ticket, used *[store.MaxLimits]int64, now store.Time) {
	more := *tk
	any := false
	for i := range more.amounts {
		more.amounts[i] = max(used[i]-tk.amounts[i], 0)
		any = any || more.amounts[i] > 0
	}
	if !any {
		return
	}
	more.ttl = 1
	is.take(st, &more, now)
	is.Answer(more.number, int64(now))
	is.Close(more.number, int64(now))
}

// standing returns what requests that were let go and are over still take, by meter.
func (is *isle) standing(now store.Time) map[meterKey]int64 {
	sums := is.Lingering(int64(now))
	all := map[meterKey]int64{}
	for k, n := range is.meters {
		if sums[n] > 0 {
			all[k] = sums[n]
		}
	}
	return all
}
