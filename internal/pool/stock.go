package pool

import (
	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/store"
)

// stock holds what a shared fixed window needs besides its charges: the use of each class since the reset, and the
// breaker.
type stock struct {
	since   int64 // beginning of the window that used counts
	used    [store.MaxClasses]int64
	breaker policy.Breaker
}

// configurePolicy derives the settings for leases and for policies that keep room for other classes.
func (p *Pool) configurePolicy() {
	s := &p.spec
	p.lease = max(s.Lease.Microseconds(), 0)
	if s.Lease == 0 {
		p.lease = store.DefaultLease.Microseconds()
	}
	p.setSafe()
	p.policed = 0
	for i := range s.Limits {
		kept := s.Light.All && s.Light.Green > 0
		switch p.defs[i].Kind {
		case meter.Fixed:
			kept = kept || s.Light.Green > 0 || s.Shares || s.Reserve > 0 || s.Breaker.Samples > 0 || s.Pace && s.Limits[i].Plan
		case meter.Rolling:
			kept = kept || s.Pace && len(s.Classes) > 1
		}
		if kept {
			p.policed |= p.shared & (1 << i)
		}
	}
}

// setSafe computes the part of a stock that each class may always take, whatever the others do.
func (p *Pool) setSafe() {
	s := &p.spec
	var all int64
	for _, c := range s.Classes {
		all += c.Weight
	}
	p.safe = [store.MaxClasses]int64{}
	for i, c := range s.Classes {
		p.safe[i] = store.Whole - max(p.threshold(uint8(i)), s.Reserve)
		if s.Shares {
			p.safe[i] = min(p.safe[i], c.Weight*store.Whole/all-1)
		}
	}
}

// safeOf returns the part of a stock that a class may always take, in thousandths.
func (p *Pool) safeOf(in *inst, class uint8) int64 {
	if p.pacesPlan(in, class) {
		return 0
	}
	return p.safe[class]
}

// rule returns the settings of the breaker.
func (p *Pool) rule() policy.Rule {
	b := &p.spec.Breaker
	return policy.Rule{Within: b.Within.Microseconds(), Samples: b.Samples, Open: b.Open}
}

// stockOf returns the stock of a fixed window, for the current window. Use from before the reset was known counts in the
// first known window.
func (p *Pool) stockOf(in *inst) *stock {
	st := p.stocks.At(in.extra)
	st.turn(in)
	return st
}

// stockOf is the same for judge. An explanation gets a copy, because what happens to a stock depends on when it is looked
// at: whether use from before the reset was known counts, and whether its breaker trips.
func (v view) stockOf(in *inst) *stock {
	if !v.whole {
		return v.Pool.stockOf(in)
	}
	st := &v.stockCopy
	*st = *v.stocks.At(in.extra)
	st.turn(in)
	return st
}

// turn begins the meter's current window.
func (st *stock) turn(in *inst) {
	if in.Hi == 0 || st.since == in.Since {
		return
	}
	var sum int64
	for _, used := range st.used {
		sum += used
	}
	if st.since != 0 || sum > in.Level { // a reset has passed since
		st.used = [store.MaxClasses]int64{}
	}
	st.since = in.Since
}

// took notes that a number of requests of a class took amount together from a shared window.
func (p *Pool) took(class uint8, requests int, amount int64, in *inst, d *meter.Def) {
	switch {
	case d.Kind == meter.Fixed:
		st := p.stockOf(in)
		st.used[class] += amount
		if class > 0 && !st.breaker.Idle() {
			for range requests {
				st.breaker.Sent(p.now)
			}
		}
	case d.Kind == meter.Rolling && class > 0 && in.Cap > 0 && p.spec.Pace:
		p.paces.At(in.extra).Take(p.now, amount, in.Cap, d.Window)
	}
}

// tookLess corrects took by an amount that was not used after all. It is negative if more was used.
func (p *Pool) tookLess(class uint8, granted int64, in *inst, amount int64) {
	switch d := p.defOf(in); {
	case d.Kind == meter.Fixed:
		if st := p.stockOf(in); in.Hi == 0 || granted >= in.Since {
			st.used[class] = max(st.used[class]-amount, 0)
		}
	case d.Kind == meter.Rolling && class > 0 && in.Cap > 0 && p.spec.Pace:
		p.paces.At(in.extra).Refund(p.now, amount, in.Cap, d.Window)
	}
}

// isFree reports whether no policy can keep a meter from a request, which is the usual case: its size is not known, or no
// policy applies to the flow, or the request takes only what its class may always take of a stock.
func (v view) isFree(tk *ticket, c *charge, in *inst, d *meter.Def, r *meter.Ring) bool {
	switch {
	case in.Cap == 0:
		return true
	case !in.IsStock(d):
		return !v.isPaced(tk, d) && !v.binds(in, d)
	}
	room, size := in.Room(d, r), in.Open(d, r)
	return size-(room-c.Amount) <= policy.Part(size, v.safeOf(in, tk.class)) && v.stockOf(in).breaker.Idle()
}

// isPaced reports whether a request has to leave the highest class its pace on a rolling window.
func (v view) isPaced(tk *ticket, d *meter.Def) bool {
	return d.Kind == meter.Rolling && tk.class > 0 && v.spec.Pace && v.alive(0)
}

// keptFrom returns what a policy keeps from a request on a meter that is not free to it. Its code is 0 if none does.
func (v view) keptFrom(tk *ticket, c *charge, in *inst, d *meter.Def, r *meter.Ring) kept {
	switch {
	case in.IsStock(d):
		return v.keptOfStock(tk, c, in, d, r)
	case v.isPaced(tk, d) && !v.rivalWants(c.inst):
		if at := v.paces.At(in.extra).Allow(v.now, c.Amount, in.Cap, d.Window); at > v.now {
			return kept{code: store.CodePace, until: min(at, v.deathOf(0))}
		}
	}
	if v.binds(in, d) {
		return v.keptOfFlow(tk, c, in, d, r)
	}
	return kept{}
}

// rivalWants reports whether a request of the highest class waits for the same meter, behind the current one. Then the
// highest class has had its share, and pacing the others would give it more.
func (v view) rivalWants(inst int32) bool {
	if v.rival == 0 {
		return false
	}
	tk := v.tickets.At(v.rival)
	for k := range tk.n {
		if tk.charges[k].inst == inst {
			return true
		}
	}
	return false
}

// keptOfFlow is keptFrom for a flow, on which only the light can hold requests back.
func (v view) keptOfFlow(tk *ticket, c *charge, in *inst, d *meter.Def, r *meter.Ring) kept {
	size := in.Open(d, r)
	floor := min(policy.Part(size, v.threshold(tk.class)), size-c.Amount)
	if floor <= 0 || in.Room(d, r)-c.Amount >= floor {
		return kept{}
	}
	return kept{code: store.CodeLight, until: in.ReadyAt(d, r, v.now, c.Amount+floor)}
}

// threshold returns the part of a limit that the light makes a class leave, in thousandths.
func (p *Pool) threshold(class uint8) int64 {
	if class == 0 {
		return p.spec.Light.Red
	}
	return p.spec.Light.Green
}

// keptOfStock is keptFrom for a stock, on which every policy applies. The largest floor counts. A floor is never larger
// than what a request leaves right after the reset, so every request can go then.
func (v view) keptOfStock(tk *ticket, c *charge, in *inst, d *meter.Def, r *meter.Ring) (found kept) {
	room, size := in.Room(d, r), in.Open(d, r)
	left := room - c.Amount
	st := v.stockOf(in)
	highest := int64(0)
	keep := func(why store.Code, line policy.Floor, over int64) {
		floor := min(line.At(v.now), size-c.Amount)
		if floor <= 0 || left >= floor {
			return
		}
		found.until = max(found.until, min(line.When(v.now, max(left, 0)), over)) // below 0 it is the limit that lacks room
		if floor > highest {
			found.code, highest = why, floor
		}
	}
	sinking := policy.Floor{Over: d.Window, Until: in.Hi}
	light := sinking
	if v.lightBinds(d) {
		light.Amount = policy.Part(size, v.threshold(tk.class))
		if v.spec.Light.Static {
			light.Over = 0
		}
		keep(store.CodeLight, light, in.Hi)
	}
	if v.spec.Reserve > 0 {
		sinking.Amount = policy.Part(size, v.spec.Reserve)
		keep(store.CodeReserve, sinking, in.Hi)
	}
	if v.spec.Shares && (tk.class > 0 || !v.amber(in, d, room, size)) {
		s := policy.Shares{Size: max(size-in.Outside, 0), Weights: v.weights, Used: st.used, Alive: v.living() | 1<<tk.class}
		sinking.Amount = s.Floor(int(tk.class), light.Amount)
		keep(store.CodeShare, sinking, min(in.Hi, v.nextDeath(tk.class)))
	}
	if v.pacesPlan(in, tk.class) {
		if v.hasPerson(tk, in) {
			sinking.Amount = policy.Part(size, policy.PlanPace)
			keep(store.CodePace, sinking, in.Hi)
		}
		opened, eased := in.Hi-d.Window, policy.Ease(d.Window)
		if v.now < opened+eased {
			keep(store.CodePace, policy.EaseFloor(size, opened, eased), opened+eased)
		}
	}
	if tk.class > 0 && v.spec.Breaker.Samples > 0 {
		b := &st.breaker
		b.Judge(v.rule(), v.now, in.Hi, max(room, 0))
		if b.Tripped && !v.spec.Breaker.Open {
			keep(store.CodeBreaker, policy.Floor{Amount: b.Room, Over: max(b.Until-b.From, 1), Until: b.Until}, in.Hi)
			found.presses = found.code == store.CodeBreaker
		}
		if ok, until := b.Allow(v.now); !ok {
			found.code, found.soon = store.CodeBreaker, until
			found.until = max(found.until, min(until, in.Hi))
		}
	}
	return found
}

// amber reports whether the light stops all classes but the highest. Then shares do not hold the highest class back,
// because the other classes could not use the rest.
func (v view) amber(in *inst, d *meter.Def, room, size int64) bool {
	if !v.lightBinds(d) {
		return false
	}
	green := policy.Floor{Amount: policy.Part(size, v.spec.Light.Green), Over: d.Window, Until: in.Hi}
	if v.spec.Light.Static {
		green.Over = 0
	}
	return room < green.At(v.now)
}

// lightBinds reports whether the light holds requests back on a stock, instead of only showing a color.
func (p *Pool) lightBinds(d *meter.Def) bool {
	return p.spec.Light.Green > 0 && (p.spec.Light.All || d.Window >= store.LightFrom.Microseconds())
}

// binds reports whether the light holds requests back on a meter. A static light does not need a known reset.
func (p *Pool) binds(in *inst, d *meter.Def) bool {
	switch {
	case p.spec.Light.Green == 0:
		return false
	case p.spec.Light.All:
		return true
	}
	return d.Kind == meter.Fixed && p.lightBinds(d) && (in.IsStock(d) || p.spec.Light.Static)
}

// light returns the color of a meter.
func (p *Pool) light(in *inst, d *meter.Def, r *meter.Ring) store.Color {
	if in.Cap == 0 || p.spec.Light.Green == 0 {
		return store.Green
	}
	room := in.Room(d, r)
	below := func(thousandths int64) bool {
		line := policy.Floor{Amount: policy.Part(in.Open(d, r), thousandths)}
		if in.IsStock(d) && !p.spec.Light.Static {
			line.Over, line.Until = d.Window, in.Hi
		}
		return room < line.At(p.now)
	}
	switch {
	case below(p.spec.Light.Red):
		return store.Red
	case below(p.spec.Light.Green):
		return store.Amber
	default:
		return store.Green
	}
}
