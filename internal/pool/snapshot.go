package pool

import (
	"cmp"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/order"
	"github.com/sluicehq/sluice/internal/pause"
	"github.com/sluicehq/sluice/store"
)

// Snapshot returns the state of the pool at time now. At the time of the latest step it changes no decision: it lets happen
// in meters what time has brought by then. Later it also expires tickets while no request waits, see View.
func (p *Pool) Snapshot(now store.Time) store.Snapshot {
	p.now = max(p.now, int64(now))
	if p.queue.Len() == 0 {
		p.expireTickets() // while requests wait, the steps at Wake expire tickets
	}
	if p.nextHush != 0 && p.now >= p.nextHush {
		p.hush()
	}
	s := store.Snapshot{
		Now:        store.Time(p.now),
		InFlight:   int(p.inFlight),
		Counters:   p.callers.total.counters(),
		HeaderTime: store.Time(p.header.median).Sub(0),

		Throttled7d: p.history.refusedInAWeek(p.now),
		Trouble:     p.trouble(),
		Rejections:  p.rejections(),
	}
	if until := p.lostUntil(); until > p.now {
		s.LostAt, s.LostUntil = store.Time(p.lostAt), store.Time(until)
	}
	s.Counters.Last429 = store.Time(p.last429)
	for c := range p.spec.Classes {
		s.Waiting = append(s.Waiting, p.queue.Waiting(rankOf(c)))
	}
	s.Waiting[0] += p.queue.Waiting(emergency)
	holders := holding{pool: p}
	s.Limits = p.limitStates(&holders)
	s.Light = p.poolLight()
	byName := p.callersByName()
	s.Agents = p.agentStates(byName)
	s.Members = p.memberStates()
	s.Gates = p.gateStates()
	s.Callers = p.callerStates(byName)
	s.Queue = p.waiterStates(&holders)
	return s
}

// WaitingOf returns the waiting tickets of a session.
func (p *Pool) WaitingOf(session uint64) []store.ID {
	var ids []store.ID
	if p.Waiting(session) == 0 {
		return nil
	}
	for i := int32(1); i < p.tickets.End(); i++ {
		if t := p.tickets.At(i); t.state == stateWaiting && t.id.Session == session {
			ids = append(ids, t.id)
		}
	}
	return ids
}

// Waits reports whether a ticket waits.
func (p *Pool) Waits(id store.ID) bool {
	t, tk := p.find(id)
	return t != 0 && tk.state == stateWaiting
}

// Waiting returns how many tickets of a session wait.
func (p *Pool) Waiting(session uint64) int {
	i := p.findSession(session)
	if i == 0 {
		return 0
	}
	return int(p.sessions.At(i).waiting)
}

// IsMember reports whether a session is a member.
func (p *Pool) IsMember(session uint64) bool {
	i := p.findSession(session)
	return i != 0 && p.sessions.At(i).member != 0
}

// EachWaiting calls f for every session with waiting tickets, until f returns false.
func (p *Pool) EachWaiting(f func(session uint64) bool) {
	if p.queue.Len() == 0 {
		return
	}
	for i := int32(1); i < p.sessions.End(); i++ {
		if s := p.sessions.At(i); s.high != 0 && s.waiting > 0 && !f(s.id) {
			return
		}
	}
}

// EachOpen calls f for every session with granted tickets.
func (p *Pool) EachOpen(f func(session uint64)) {
	for i := int32(1); i < p.sessions.End(); i++ {
		if s := p.sessions.At(i); s.high != 0 && s.open > s.waiting {
			f(s.id)
		}
	}
}

// HasPlaces reports whether there is a limit on requests at the same time.
func (p *Pool) HasPlaces() bool {
	for i := range p.spec.Limits {
		if p.spec.Limits[i].Kind == store.Concurrency && !p.isRetired(i) {
			return true
		}
	}
	return false
}

// Recollect gives the callers of granted requests until later to collect them. It is called before a step, when the pool's time goes
// on by much at once: they had not that time.
func (p *Pool) Recollect(now store.Time) {
	for i := int32(1); i < p.tickets.End(); i++ {
		if t := p.tickets.At(i); t.state == stateReady {
			p.schedule(i, t, int64(now)+collectWithin)
		}
	}
}

// Pending returns the tickets that wait, or are granted and not collected, of the sessions that of accepts.
func (p *Pool) Pending(of func(session uint64) bool) []store.ID {
	var ids []store.ID
	for i := int32(1); i < p.tickets.End(); i++ {
		if t := p.tickets.At(i); (t.state == stateWaiting || t.state == stateReady) && of(t.id.Session) {
			ids = append(ids, t.id)
		}
	}
	return ids
}

func (p *Pool) limitStates(holders *holding) []store.LimitState {
	var list []store.LimitState
	for i := int32(1); i < p.insts.End() && len(list) < store.MaxListed; i++ {
		// Skip spare meters. Whether a sweep has dropped them yet must not show.
		if in := p.insts.At(i); !in.used || p.isRetired(int(in.limit)) || p.spare(i) {
			continue
		}
		in, d, r := p.touch(i)
		l := store.LimitState{
			Limit: p.spec.Limits[in.limit].Name, Scope: p.scopeText(in.scope), Kind: store.Kind(d.Kind), Window: store.Time(d.Window).Sub(0), Used: in.Used(d, r), Outstanding: in.Held, Outside: in.Outside,
			Slack: store.Time(meter.SlackOf(d, r)).Sub(0), Light: p.light(in, d, r),
			Binds: p.shared&(1<<in.limit) != 0 && p.binds(in, d),
		}
		if !in.stated {
			l.By = p.names.Text(p.by[in.limit])
		}
		if r != nil {
			l.Widened, l.Cut = r.Slack > d.Slack, r.Cut
		}
		if p.shared&(1<<in.limit) != 0 && in.IsStock(d) && p.spec.Breaker.Samples > 0 {
			b := &(view{Pool: p, whole: true}).stockOf(in).breaker
			b.Judge(p.rule(), p.now, in.Hi, max(in.Room(d, r), 0))
			l.Breaker = store.BreakerState{Tripped: b.Tripped, Samples: b.Samples(), Gone: store.Time(b.Gone)}
		}
		if in.model != 0 && in.Used(d, r) > in.Cap/2 {
			if m := p.models.At(in.model); m.free >= freeFrom {
				l.StatedLeft, l.StatedIn = m.freeLeft, store.Time(m.freeIn).Sub(0)
			}
		}
		if in.Cap > 0 {
			l.Size = in.Capacity(r)
			l.Remaining = max(in.Room(d, r), 0)
			l.Withheld = in.Withheld(d)
			if d.Kind == meter.Bucket {
				l.Refill, l.RefillEvery = in.N, store.Time(in.W).Sub(0)
			}
		}
		if d.Kind != meter.Concurrency && in.Held > 0 {
			l.Hold = holders.hold(i)
			l.Hold.Full = depends(in, d, r, p.now, 1)
		}
		if d.Kind == meter.Fixed {
			l.Reset = store.Time(in.Hi)
			l.Doubt = store.Time((in.Hi - in.Last) / 2).Sub(0)
		}
		list = append(list, l)
	}
	slices.SortStableFunc(list, func(a, b store.LimitState) int {
		return cmp.Or(cmp.Compare(p.Index(a.Limit), p.Index(b.Limit)), cmp.Compare(a.Scope, b.Scope))
	})
	return list
}

func (p *Pool) scopeText(s names) string {
	var parts []string
	for _, f := range [...]struct {
		label string
		name  int32
	}{{"agent=", s.agent}, {"user=", s.user}, {"model=", s.model}, {"tool=", s.tool}, {"key=", s.key}} {
		if f.name != 0 {
			parts = append(parts, f.label+p.names.Text(f.name))
		}
	}
	return strings.Join(parts, ",")
}

func (p *Pool) memberStates() []store.Member {
	var list []store.Member
	for i := int32(1); i < p.members.End(); i++ {
		if m := p.members.At(i); m.session != 0 {
			list = append(list, store.Member{
				Session: p.sessions.At(m.session).id, Touched: store.Time(m.touched), Expires: store.Time(m.expires),
				Share: m.told, Silent: m.silent,
			})
		}
	}
	slices.SortFunc(list, func(a, b store.Member) int {
		return cmp.Or(cmp.Compare(a.Touched, b.Touched), cmp.Compare(a.Session, b.Session))
	})
	return list[:min(len(list), store.MaxListed)]
}

func (p *Pool) gateStates() []store.PauseState {
	var list []store.PauseState
	for i := p.firstGate; i != 0; i = p.gates.At(i).next {
		g := p.gates.At(i)
		if v := g.Allow(p.now); v.OK && g.Settled(p.now) {
			continue
		}
		st := store.PauseState{
			Scope: p.scopeText(names{model: g.model, key: g.key}), Phase: g.Phase.String(),
			Since: store.Time(g.Since), Consecutive: int(g.Throttles), Cause: p.names.Text(g.cause), Agent: p.names.Text(g.agent),
		}
		if g.Phase == pause.Paused {
			st.Until, st.Probe = store.Time(g.Until), store.Time(g.NextProbe())
		}
		list = append(list, st)
	}
	slices.SortFunc(list, func(a, b store.PauseState) int { return cmp.Compare(a.Scope, b.Scope) })
	return list
}

// callerStates lists the callers that sent most, at most store.MaxListed.
func (p *Pool) callerStates(byName []namedCaller) []store.Caller {
	type place struct {
		sent int64
		at   int // in byName
	}
	order := make([]place, len(byName))
	for i, n := range byName {
		order[i] = place{p.callers.recs.At(n.rec).sent, i}
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Or(cmp.Compare(b.sent, a.sent), cmp.Compare(a.at, b.at)) })
	order = order[:min(len(order), store.MaxListed)]
	list := make([]store.Caller, len(order))
	for i, o := range order {
		n := byName[o.at]
		list[i] = store.Caller{Agent: n.name, Counters: p.callers.recs.At(n.rec).counters()}
	}
	return list
}

// waiterStates lists the queue in order, with the expected time of each grant.
func (p *Pool) waiterStates(holders *holding) []store.Waiter {
	var list []store.Waiter
	before := map[int32]int64{} // amount of each meter that requests ahead ask for
	var behind [4]int64         // number of requests ahead that a pause holds, by phase
	for i, l := range p.queue.List(p.strictFrom(pause.Paused), store.MaxListed, func(t int32) order.Costs { return p.costs(p.tickets.At(t)) }) {
		tk := p.tickets.At(l.Ticket)
		v, r, _ := p.why(l.Ticket)
		at, unknown := p.now, false
		var heldBy []string
		var until store.Time // of what holds it
		for k := range tk.n {
			c := &tk.charges[k]
			in, d, ring := p.touchCharge(c)
			held := depends(in, d, ring, p.now, c.Amount)
			if unknown = unknown || held; held && r.Code <= store.CodeOrder {
				hold := holders.hold(c.inst)
				heldBy, until = hold.By, max(until, hold.Until)
			} else if p.spec.Limits[c.limit].Name == r.Limit && len(heldBy) == 0 {
				heldBy = holders.of(c.inst)
			}
			at = max(at, p.forecast(in, d, ring, before[c.inst], c.Amount))
			before[c.inst] += c.Amount
		}
		if ph := &v.pause; !ph.OK {
			if behind[ph.Phase] == 0 { // it will be the probe
				at = max(at, ph.Next)
			} else {
				at = max(at, ph.At+pause.Behind(behind[ph.Phase]))
			}
			behind[ph.Phase]++
		}
		if r.Code >= store.CodeLight && r.Code <= store.CodeBreaker { // a policy holds it back
			at = max(at, int64(r.At))
		}
		if at == p.now || unknown && r.Code <= store.CodeOrder {
			at = 0 // unknown: it depends on other requests
		}
		list = append(list, store.Waiter{
			ID: tk.id, Agent: p.names.Text(tk.who.agent), Class: int(tk.class), Model: p.names.Text(tk.who.model),
			Position: i + 1, Since: store.Time(tk.since), Expected: store.Time(at), Reason: r,
			HeldBy: heldBy, HeldUntil: until,
		})
	}
	return list
}

// poolLight returns the worst color of the limits on which the light holds requests back. If there are none, it returns
// the worst color of the other shared limits.
func (p *Pool) poolLight() store.Color {
	var worst [2]store.Color
	binding := 0
	for i := int32(1); i < p.insts.End(); i++ {
		if in := p.insts.At(i); !in.used || p.shared&(1<<in.limit) == 0 || p.isRetired(int(in.limit)) {
			continue
		}
		in, d, r := p.touch(i)
		binds := 0
		switch {
		case p.spec.Light.All, in.IsStock(d) && p.lightBinds(d):
			binds, binding = 1, 1
		case d.Kind == meter.Concurrency:
			continue // concurrency is not a quota that runs out
		}
		worst[binds] = max(worst[binds], p.light(in, d, r))
	}
	return worst[binding]
}
