package sim

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// The gate's defaults, the same in every scenario.
const (
	sluiceAttempts   = 6
	sluiceTTL        = 10 * time.Minute
	sluiceMaxWaiting = 100_000
	sluiceLease      = 5 * time.Minute
	sluiceHeartbeat  = 2 * time.Minute
)

// sluice drives the real memory store on virtual time, through the same interface as all callers.
type sluice struct {
	*desk
	pool    store.Pool
	limits  []Limit
	tickets map[store.ID]*call // waiting calls by ticket
	told    []store.ID         // decided tickets that are not collected yet
	means   means
	leases  []*event // next heartbeat by agent; nil: none
	off     off
	ops     []store.Op       // of the current step
	seen    []store.Observed // limits that the current response states
}

func newSluice(d *desk) strategy { return openSluice(d, spec(d.sc)) }

func openSluice(d *desk, spec store.Spec) *sluice {
	s := &sluice{
		desk: d, limits: d.sc.Limits, tickets: map[store.ID]*call{}, leases: make([]*event, len(d.agents)),
	}
	if slices.ContainsFunc(s.limits, Limit.tokens) {
		s.means = means{}
	}
	pool, err := memstore.New(memstore.WithClock(clock{d.loop})).Pool(context.Background(), spec)
	if err != nil {
		// Parsing has checked everything that a store could reject.
		panic(fmt.Sprintf("sim: scenario %s: %v", d.sc.Name, err))
	}
	s.pool = pool
	pool.Watch(s.decided)
	s.join()
	return s
}

// spec returns the provider's published limits, with defaults for everything else.
func spec(sc *Scenario) store.Spec {
	sp := store.Spec{
		Name:       sc.Name,
		Classes:    sc.classes(),
		Order:      sc.Order,
		MaxWaiting: sluiceMaxWaiting,
		Throttle:   store.Backoff{Start: time.Minute, Factor: 2, Cap: 15 * time.Minute},
		Overload:   store.Backoff{Start: 2 * time.Second, Factor: 2, Cap: time.Minute},
		Light:      store.Light{Green: 200, Red: 50},
		Breaker:    store.Breaker{Within: 2 * time.Minute, Samples: 10},
		Shares:     true,
		Pace:       true,
		Lease:      sluiceLease,
	}
	for _, l := range sc.Limits {
		limit := store.Limit{
			Name: l.Name, Kind: l.Kind, Unit: l.Unit, Size: l.Size, Burst: l.Burst, Window: l.Window, Late: l.late() || l.Plan, Estimated: l.tokens() || l.Plan, Plan: l.Plan,
		}
		if l.PerModel {
			limit.Per = store.PerModel
		}
		if sc.Use > 0 {
			limit.Size = max(1, limit.Size*int64(sc.Use)/100)
			limit.Burst = limit.Burst * int64(sc.Use) / 100
			if l.Burst > 0 {
				limit.Burst = max(1, limit.Burst)
			}
		}
		sp.Limits = append(sp.Limits, limit)
	}
	return sp
}

// apply applies ops to the pool. The result is valid until the next call.
func (s *sluice) apply(ops ...store.Op) []store.Op {
	s.ops = append(s.ops[:0], ops...) // reuses the slice, which would otherwise be allocated each time
	return s.step()
}

// step applies s.ops to the pool.
func (s *sluice) step() []store.Op {
	if err := s.pool.Apply(context.Background(), s.ops); err != nil {
		panic(fmt.Sprintf("sim: scenario %s: %v", s.sc.Name, err))
	}
	return s.ops
}

func (s *sluice) want(c *call) {
	op := store.Op{
		Kind: store.OpAcquire, Agent: c.agent.Name, User: c.agent.User, Model: c.asks.Model,
		Class: uint8(c.agent.Class), Retry: c.sends > 0, Wait: -1, TTL: sluiceTTL,
	}
	for i := range s.limits {
		if !s.limits[i].Plan || c.agent.Class > 0 { // otherwise charged at the end, and never waits for such a window
			op.Amounts = append(op.Amounts, store.Amount{Limit: s.limits[i].Name, N: s.means.cost(&s.limits[i], c)})
		}
	}
	if c.job.deadline != Never {
		op.Wait = max(c.job.deadline.Sub(s.now), 0)
	}
	s.settle(c, s.apply(op)[0].Result)
}

// settle acts on the result of c's ticket.
func (s *sluice) settle(c *call, result store.Result) {
	switch result.State {
	case store.Granted:
		c.ticket = result.ID
		s.send(c)
	case store.Waiting:
		c.ticket = result.ID
		s.tickets[result.ID] = c
	default:
		s.giveUp(c)
	}
}

// decided is called in the middle of a store operation, so collecting has to wait until that is over.
func (s *sluice) decided(ids []store.ID) {
	if len(s.told) == 0 {
		s.after(0, s.collect)
	}
	s.told = append(s.told, ids...)
}

func (s *sluice) collect() {
	told := s.told
	s.told = s.told[len(s.told):]
	for len(told) > 0 {
		n := min(len(told), store.MaxBatch)
		s.ops = s.ops[:0]
		for _, id := range told[:n] {
			s.ops = append(s.ops, store.Op{Kind: store.OpPoll, ID: id})
		}
		told = told[n:]
		ops := s.step()
		for i := range ops {
			op := &ops[i]
			c := s.tickets[op.ID]
			if c == nil || op.Result.State == store.Waiting {
				continue
			}
			delete(s.tickets, op.ID)
			s.settle(c, op.Result)
		}
	}
}

func (s *sluice) answered(c *call, resp Response) {
	answer := store.Op{Kind: store.OpAnswer, ID: c.ticket, Verdict: store.VerdictOK}
	if !s.off.headers {
		answer.Observed = s.observed(resp.Headers)
	}
	if resp.Accepted {
		s.apply(answer)
		return
	}
	if s.off.pause { // the gate does not learn of the refusal
		s.apply(answer, s.close(c, nil))
		if c.sends >= sluiceAttempts {
			s.giveUp(c)
			return
		}
		s.retry(c, hintOrJitter(s.desk, c, resp), s.want)
		return
	}
	answer.Verdict = store.VerdictThrottled
	answer.RetryAfter = resp.RetryAfter
	if l := resp.Limited; l >= 0 && s.limits[l].PerModel {
		answer.Scope = store.PerModel
	}
	if l := resp.Limited; l >= 0 && s.limits[l].Plan { // the window delays lower classes; the highest class gets the error
		answer.Verdict, answer.Force = store.VerdictExhausted, true
		if c.agent.Class == 0 {
			s.apply(answer, s.close(c, nil))
			s.giveUp(c)
			return
		}
	}
	// The queue replaces a backoff of the caller, because the gate has paused all callers for as long as the response
	// asks.
	s.apply(answer, s.close(c, nil))
	if c.sends >= sluiceAttempts {
		s.giveUp(c)
		return
	}
	s.retry(c, 0, s.want)
}

func (s *sluice) ended(c *call, used usage) {
	if s.off.usage {
		s.apply(store.Op{Kind: store.OpClose, ID: c.ticket})
		return
	}
	s.means.learn(c, used)
	s.apply(s.close(c, &used))
}

func (s *sluice) blind() bool { return s.off.headers }

// close returns the operation that ends c's ticket with its usage. Without usage, the estimate stands.
func (s *sluice) close(c *call, used *usage) store.Op {
	op := store.Op{Kind: store.OpClose, ID: c.ticket}
	for i := range s.limits {
		l := &s.limits[i]
		a := store.Amount{Limit: l.Name}
		switch {
		case used != nil && l.Plan && !l.tokens():
			a.N = c.asks.cost(l)
		case used != nil && l.tokens():
			a.N = used.of(l)
		case !l.late():
			continue
		}
		op.Amounts = append(op.Amounts, a)
	}
	return op
}

func (s *sluice) observed(headers []Header) []store.Observed {
	s.seen = s.seen[:0]
	for _, h := range headers {
		s.seen = append(s.seen, store.Observed{Limit: s.limits[h.Limit].Name, Size: h.Size, Remaining: h.Remaining, ResetIn: h.ResetIn})
	}
	return s.seen
}
