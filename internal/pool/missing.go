package pool

import (
	"cmp"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// Missing returns operations that tell the pool what another copy of it, which knows more, has of some sessions: a log that
// was lost has gone on without the end that more has seen. Requests that were granted are stated with force, and never
// decided again; those that wait ask again; those that are over are closed. What requests of any session have charged that
// are over is stated in one sum for each meter, in the name of the session by. Both pools must be views: they are moved to
// now.
func (p *Pool) Missing(more *Pool, now store.Time, by uint64, of func(session uint64) bool) (ops []store.Op) {
	p.Snapshot(now)
	more.Snapshot(now)
	charged := map[meterName]int64{}
	more.closedCharges(charged, 1)
	p.closedCharges(charged, -1)
	for i := int32(1); i < more.tickets.End(); i++ {
		tk := more.tickets.At(i)
		if tk.state == 0 || tk.state == stateSpent || tk.lost || !of(tk.id.Session) {
			continue
		}
		if t, mine := p.find(tk.id); t != 0 {
			if tk.answered && mine.state == stateHeld && !mine.answered {
				ops = append(ops, store.Op{Kind: store.OpAnswer, ID: tk.id})
				more.uncharge(charged, tk)
			}
			continue
		}
		if s := p.findSession(tk.id.Session); s != 0 && tk.id.N <= p.sessions.At(s).high {
			continue // it is over here
		}
		ops = append(ops, more.again(tk))
		if tk.state == stateHeld && tk.answered {
			ops = append(ops, store.Op{Kind: store.OpAnswer, ID: tk.id})
			more.uncharge(charged, tk)
		}
	}
	for i := int32(1); i < p.tickets.End(); i++ {
		tk := p.tickets.At(i)
		if tk.state == 0 || tk.state == stateSpent || !of(tk.id.Session) {
			continue
		}
		s := more.findSession(tk.id.Session)
		if t, _ := more.find(tk.id); t == 0 && s != 0 && tk.id.N <= more.sessions.At(s).high {
			ops = append(ops, store.Op{Kind: store.OpClose, ID: tk.id})
		}
	}
	slices.SortStableFunc(ops, func(a, b store.Op) int {
		return cmp.Or(cmp.Compare(a.ID.Session, b.ID.Session), cmp.Compare(a.ID.N, b.ID.N))
	})
	return append(ops, chargesOf(charged, by)...)
}

// Request returns the state of a request as the latest step left it, and when it was granted. One that was granted and not
// collected counts as waiting.
func (p *Pool) Request(id store.ID) (state store.State, granted store.Time) {
	switch t, tk := p.find(id); {
	case t == 0:
		return store.Unknown, 0
	case tk.state == stateHeld:
		return store.Granted, store.Time(tk.granted)
	case tk.state == stateSpent:
		return store.Ended, 0
	}
	return store.Waiting, 0
}

// again returns the acquire of a ticket, with the time that it has left.
func (p *Pool) again(tk *ticket) store.Op {
	op := store.Op{
		Kind: store.OpAcquire, ID: tk.id, Agent: p.names.Text(tk.who.agent), User: p.names.Text(tk.who.user), Model: p.names.Text(tk.who.model),
		Tool: p.names.Text(tk.who.tool), Key: p.names.Text(tk.who.key), Class: tk.class, Retry: tk.retry, Emergency: tk.emergent,
		Alive: micros(tk.alive), TTL: micros(tk.ttl), Tie: store.Tie(tk.tie), Spent: tk.once,
	}
	for k := range tk.n {
		c := &tk.charges[k]
		op.Amounts = append(op.Amounts, store.Amount{Limit: p.spec.Limits[c.limit].Name, N: c.Amount})
	}
	switch {
	case tk.state == stateHeld:
		op.Force, op.Spent, op.TTL = true, false, max(micros(tk.ends-p.now), time.Millisecond)
	case tk.deadline == meter.Never:
		op.Wait = -1
	default:
		op.Wait = max(micros(tk.deadline-p.now), time.Microsecond)
	}
	return op
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// meterName names a meter in all copies of a pool.
type meterName struct{ limit, agent, user, model, tool, key string }

func (p *Pool) meterName(in *inst) meterName {
	s := &in.scope
	return meterName{
		p.spec.Limits[in.limit].Name, p.names.Text(s.agent), p.names.Text(s.user), p.names.Text(s.model), p.names.Text(s.tool), p.names.Text(s.key),
	}
}

// closedCharges adds what requests that have arrived have charged, times sign.
func (p *Pool) closedCharges(sums map[meterName]int64, sign int64) {
	for i := int32(1); i < p.insts.End(); i++ {
		if in := p.insts.At(i); !in.used || p.isRetired(int(in.limit)) || p.defOf(in).Kind == meter.Concurrency {
			continue
		}
		in, d, r := p.touch(i)
		sums[p.meterName(in)] += sign * (in.Used(d, r) - in.Held)
	}
}

// uncharge takes a ticket that is stated by itself out of the sums.
func (p *Pool) uncharge(sums map[meterName]int64, tk *ticket) {
	for k := range tk.n {
		c := &tk.charges[k]
		if in, d, _ := p.touchCharge(c); d.Kind != meter.Concurrency && c.Mode != meter.Held {
			sums[p.meterName(in)] -= c.Amount
		}
	}
}

// chargesOf returns acquires by force that charge sums to meters. What has the same scope goes into one.
func chargesOf(sums map[meterName]int64, by uint64) (ops []store.Op) {
	at := map[meterName]int{}
	for _, name := range sortedNames(sums) {
		n, scope := sums[name], name
		if n <= 0 {
			continue
		}
		scope.limit = ""
		i, there := at[scope]
		if !there {
			i = len(ops)
			at[scope] = i
			op := store.Op{
				Kind: store.OpAcquire, ID: store.ID{Session: by}, Agent: cmp.Or(scope.agent, otherName), User: scope.user, Model: scope.model,
				Tool: scope.tool, Key: scope.key, Force: true, TTL: time.Second,
			}
			ops = append(ops, op)
		}
		ops[i].Amounts = append(ops[i].Amounts, store.Amount{Limit: name.limit, N: min(n, store.MaxAmount)})
	}
	for i := range ops {
		ops[i].Spent = true
	}
	return ops
}

func sortedNames(sums map[meterName]int64) []meterName {
	list := make([]meterName, 0, len(sums))
	for name := range sums {
		list = append(list, name)
	}
	slices.SortFunc(list, func(a, b meterName) int {
		return cmp.Or(cmp.Compare(a.limit, b.limit), cmp.Compare(a.agent, b.agent), cmp.Compare(a.user, b.user), cmp.Compare(a.model, b.model),
			cmp.Compare(a.tool, b.tool), cmp.Compare(a.key, b.key))
	})
	return list
}
