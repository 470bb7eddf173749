package pool

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/store"
)

// history counts every granted request by agent, model and minute. The number of periods is bounded: a new period
// replaces the oldest. Refusals by the hour are kept for a week.
type history struct {
	periods flat.Slab[period]
	*past
	units  []string
	unitOf [store.MaxLimits]int8 // index into units by limit; -1: none, or an earlier limit counts the unit
}

type past struct {
	hand   int32  // the period that was replaced last
	minute uint32 // number of the current minute
	second int64  // when the current second began
	week   [weekHours]hourCount
}

func (h *history) open(space *flat.Space) {
	h.periods.Open(space)
	h.past = flat.Single[past](space)
}

// period counts the requests of one agent for one model in one minute.
type period struct {
	name, model     int32
	minute          uint32
	before          int32 // the agent's period before this one
	sent, retried   uint32
	refused, failed uint32
	peak            uint32 // most requests in one second
	peakAll         uint32 // most requests of all agents in a second in which this agent sent one
	waited          int64
	units           [maxUnits]int64
}

// hourCount counts the refusals of the whole pool in one hour.
type hourCount struct {
	hour    uint32
	refused uint32
}

const (
	maxPeriods = 1 << 15        // must fit caller.note, which has 16 bits
	mostNew    = maxPeriods / 2 // periods of one minute; further agents are counted together
	maxUnits   = 6
	maxModels  = 64   // models of one agent in one minute; further models are counted together
	mostLooks  = 4096 // most periods of an agent that recent adds up: more than the minutes of two days
	weekHours  = 7 * 24
	second     = 1_000_000
	minute     = 60 * second
	hour       = 60 * minute
)

// define chooses the units that the history counts. Each has one column, even if several limits count it. Retired limits
// keep the column of their unit, because periods have counts in it. Windows of subscriptions get none: their use follows
// from tokens, and there are more limits than columns.
func (h *history) define(limits []store.Limit, retired uint16) {
	h.units = nil
	for i := range limits {
		h.unitOf[i] = -1
		if limits[i].Plan {
			continue
		}
		if !slices.Contains(h.units, limits[i].Unit) && len(h.units) < maxUnits {
			h.units = append(h.units, limits[i].Unit)
		}
		if retired&(1<<i) != 0 {
			continue
		}
		if k := slices.Index(h.units, limits[i].Unit); k >= 0 && !slices.Contains(h.unitOf[:i], int8(k)) {
			h.unitOf[i] = int8(k)
		}
	}
}

// forgetUnits clears the amounts of all periods. The counts of requests stay.
func (h *history) forgetUnits() {
	for i := int32(1); i < h.periods.End(); i++ {
		h.periods.At(i).units = [maxUnits]int64{}
	}
}

// turn begins the second of now, and reports whether another minute begins too.
func (h *history) turn(now int64) bool {
	before := h.minute
	if now >= h.second+second {
		h.second = now - now%second
		h.minute = uint32(now / minute)
	}
	return h.minute != before
}

// sent counts a grant for its agent, its period and the pool.
func (p *Pool) sent(tk *ticket) {
	h := &p.history
	waited := p.now - tk.since
	retried := uint32(0)
	if tk.retry {
		retried = 1
	}
	rec := p.callerFor(tk)
	rec.count(p.now, h.second, 1, retried)
	rec.waited += waited
	p.callers.total.count(p.now, h.second, 1, retried)
	p.callers.total.waited += waited
	tk.note = p.periodOf(rec, tk.who.model, h.minute)
	pd := h.periods.At(tk.note)
	pd.sent++
	pd.waited += waited
	pd.peak = max(pd.peak, rec.inSecond)
	pd.peakAll = max(pd.peakAll, p.callers.total.inSecond)
	pd.retried += retried
	for k := range tk.n {
		c := &tk.charges[k]
		if u := h.unitOf[c.limit]; u >= 0 {
			pd.units[u] += c.Amount
		}
	}
}

// unsent subtracts a grant that was not used. The peaks stay, because the grant was allowed.
func (p *Pool) unsent(tk *ticket) {
	waited := tk.granted - tk.since
	p.callerFor(tk).uncount(waited, tk.retry)
	p.callers.total.uncount(waited, tk.retry)
	if pd := p.noted(tk); pd != nil {
		pd.sent--
		pd.waited -= waited
		if tk.retry {
			pd.retried--
		}
		for k := range tk.n {
			p.settled(tk, &tk.charges[k], -tk.charges[k].Amount)
		}
	}
}

// countOutcome counts the outcome of a request.
func (p *Pool) countOutcome(tk *ticket, v store.Verdict) {
	switch v {
	case store.VerdictThrottled, store.VerdictExhausted:
		p.callerFor(tk).throttled++
		p.callers.total.throttled++
		p.last429 = p.now
		p.history.refused(p.now)
		if pd := p.noted(tk); pd != nil {
			pd.refused++
		}
	case store.VerdictOverloaded, store.VerdictBilling, store.VerdictError, store.VerdictUnreachable:
		if pd := p.noted(tk); pd != nil {
			pd.failed++
		}
	}
}

// settled corrects the amount that a request is counted with. more is negative if it used less than its charge.
func (p *Pool) settled(tk *ticket, c *charge, more int64) {
	if u := p.history.unitOf[c.limit]; u >= 0 {
		if pd := p.noted(tk); pd != nil {
			pd.units[u] = max(pd.units[u]+more, 0) // the columns may have changed with the limits since
		}
	}
}

// noted returns the period that counted a ticket, or nil if the period has been replaced since.
func (p *Pool) noted(tk *ticket) *period {
	pd := p.history.periods.At(tk.note)
	if pd.name != tk.who.agent && pd.name != p.other || pd.model != tk.who.model && pd.model != p.other || pd.minute != uint32(tk.granted/minute) {
		return nil
	}
	return pd
}

// periodOf returns an agent's period for a model, and creates it if needed. Once a minute has mostNew periods, further
// agents share one period per model. Otherwise the history would hold only that minute, and every request would replace
// a period.
func (p *Pool) periodOf(rec *caller, model int32, at uint32) int32 {
	if i := int32(rec.note); i != 0 {
		if pd := p.history.periods.At(i); pd.name == rec.name && pd.minute == at && pd.model == model {
			return i
		}
	}
	i, crowded := p.findPeriod(rec, int32(rec.note), model, at)
	if i == 0 && p.history.full(at) {
		rec = &p.callers.total
		rec.name = p.other
		i, crowded = p.findPeriod(rec, int32(rec.note), model, at)
	}
	if i != 0 {
		return i
	}
	if crowded {
		model = p.other
	}
	i = p.newPeriod()
	*p.history.periods.At(i) = period{name: p.names.Keep(rec.name), model: p.names.Keep(model), minute: at, before: int32(rec.note)}
	rec.note = uint16(i)
	return i
}

// full reports whether minute at has mostNew periods.
func (h *history) full(at uint32) bool {
	n, i := h.periods.Len(), h.hand // the latest
	if i == 0 {
		i = int32(n)
	}
	if i -= mostNew - 1; i < 1 {
		if n < maxPeriods {
			return false
		}
		i += maxPeriods
	}
	return h.periods.At(i).minute == at
}

// findPeriod returns an agent's period for a model in minute at, or 0 if there is none. from is the latest period of that
// minute. crowded says that the agent has
// used too many models in that minute: then found is the period of all further models.
func (p *Pool) findPeriod(rec *caller, from, model int32, at uint32) (found int32, crowded bool) {
	h := &p.history
	looks, others := 0, int32(0)
	for i := from; i != 0 && looks <= maxModels; looks++ {
		pd := h.periods.At(i)
		if pd.name != rec.name || pd.minute != at {
			break
		}
		if pd.model == model {
			return i, false
		}
		if pd.model == p.other {
			others = i
		}
		i = pd.before
	}
	if looks >= maxModels {
		return others, true
	}
	return 0, false
}

// newPeriod returns a new period, or the oldest one if there are maxPeriods.
func (p *Pool) newPeriod() int32 {
	h := &p.history
	if h.periods.Len() < maxPeriods {
		return h.periods.New()
	}
	h.hand = h.hand%maxPeriods + 1
	pd := h.periods.At(h.hand)
	p.names.Drop(pd.name)
	p.names.Drop(pd.model)
	return h.hand
}

// age returns how many periods were created after period i. They are used in turn.
func (h *history) age(i int32) int32 { return (h.hand - i + maxPeriods) % maxPeriods }

// refused counts a refusal in its hour.
func (h *history) refused(t int64) {
	c := &h.week[t/hour%weekHours]
	if c.hour != uint32(t/hour) {
		*c = hourCount{hour: uint32(t / hour)}
	}
	c.refused++
}

// refusedInAWeek returns the number of refusals in the last seven days.
func (h *history) refusedInAWeek(t int64) (n int64) {
	for _, c := range h.week {
		if int64(c.hour) > t/hour-weekHours {
			n += int64(c.refused)
		}
	}
	return n
}

// History returns the granted requests since a time, by agent, model and minute. If the history does not reach back that
// far, the result's Since is later.
func (p *Pool) History(now, since store.Time) store.History {
	at := max(p.now, int64(now))
	h := &p.history
	out := store.History{Now: store.Time(at), Since: since, Units: slices.Clone(h.units)}
	oldest := uint32(0)
	if h.periods.Len() == maxPeriods {
		oldest = h.periods.At(h.hand%maxPeriods+1).minute + 1 // parts of that minute are gone
	}
	from := max(int64(since)/minute, int64(oldest))
	if oldest > 0 {
		out.Since = max(since, min(store.Time(oldest)*minute, out.Now)) // parts of this very minute may be gone
	}
	for i := int32(1); i < h.periods.End(); i++ {
		pd := h.periods.At(i)
		if int64(pd.minute) < from || pd.sent == 0 {
			continue
		}
		out.Periods = append(out.Periods, store.Period{
			Agent: p.names.Text(pd.name), Model: p.names.Text(pd.model), Start: store.Time(pd.minute) * minute,
			Sent: int64(pd.sent), Retried: int64(pd.retried), Throttled: int64(pd.refused), Failed: int64(pd.failed),
			Peak: int64(pd.peak), PeakAll: int64(pd.peakAll), Waited: store.Time(pd.waited).Sub(0), Amounts: slices.Clone(pd.units[:len(h.units)]),
		})
	}
	slices.SortFunc(out.Periods, func(a, b store.Period) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Model, b.Model))
	})
	return out
}

// recent estimates what an agent has used of a unit within span, or its number of requests if unit is -1. It adds up
// whole minutes, and the oldest in proportion.
func (p *Pool) recent(rec *caller, span int64, unit int) int64 { return p.recentOf(rec, span, unit, 0) }

// recentOf is recent for one model; 0 means all models.
func (p *Pool) recentOf(rec *caller, span int64, unit int, model int32) (n int64) {
	from := p.now - span
	for i, looks := int32(rec.note), 0; i != 0 && looks < mostLooks; looks++ {
		pd := p.history.periods.At(i)
		start := int64(pd.minute) * minute
		if pd.name != rec.name || start+minute <= from {
			break
		}
		used := int64(pd.sent)
		if unit >= 0 {
			used = pd.units[unit]
		}
		if part := start + minute - from; part < minute {
			used = (used*part + minute - 1) / minute // rounded up: a request counts fully until it is out of the span
		}
		if model == 0 || pd.model == model {
			n += used
		}
		next := pd.before
		if p.history.age(next) <= p.history.age(i) {
			break // the record has been reused for a newer period
		}
		i = next
	}
	return n
}
