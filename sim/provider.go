package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Epoch is when virtual time begins. It is late enough that no time is the zero Time.
const Epoch = store.Time(1_767_225_600_000_000) // 2026-01-01T00:00:00Z

// Policy is how a provider treats requests, besides its limits.
type Policy struct {
	// RetryAfter is set if refusals state when to retry, in whole seconds.
	RetryAfter bool
	// RejectedCount is set if refused requests use quota too.
	RejectedCount bool
	// Headers is set if responses state size, remaining quota and reset of the limits that are not hidden.
	Headers bool
}

// Provider enforces several limits at once. All limits that apply to a request count it. If one of them refuses it,
// usually none does.
type Provider struct {
	policy Policy
	limits []Limit
	rules  []Rule            // by limit; nil: not used yet, or counted per model
	models []map[string]Rule // by limit, then by model
}

// NewProvider returns a provider with unused limits.
func NewProvider(limits []Limit, policy Policy) *Provider {
	return &Provider{policy: policy, limits: limits, rules: make([]Rule, len(limits))}
}

// Response is a provider's response to a request.
type Response struct {
	Accepted   bool
	Limited    int           // index of the limit that refused it; -1: none
	RetryAfter time.Duration // 0: not stated
	Headers    []Header
}

// Header is what a response states about one limit.
type Header struct {
	Limit     int // index
	Size      int64
	Remaining int64
	// ResetIn is the stated reset minus the response's date. Headers state both in whole seconds, so it is off by up to
	// a second either way. Negative: not stated.
	ResetIn time.Duration
}

func (p *Provider) rule(i int, r *Request) Rule {
	if p.limits[i].PerModel {
		return p.ruleOf(i, r.Model)
	}
	rule := p.rules[i]
	if rule == nil {
		rule = p.limits[i].Rule()
		p.rules[i] = rule
	}
	return rule
}

// ruleOf returns the rule of a limit that counts each model separately.
func (p *Provider) ruleOf(i int, model string) Rule {
	if p.models == nil {
		p.models = make([]map[string]Rule, len(p.limits))
	}
	if p.models[i] == nil {
		p.models[i] = map[string]Rule{}
	}
	rule := p.models[i][model]
	if rule == nil {
		rule = p.limits[i].Rule()
		p.models[i][model] = rule
	}
	return rule
}

// needs returns how much limit i must have free to accept r. touched is false if the limit does not apply to r. Output
// is unknown on arrival, so r needs room for at least one token.
func (p *Provider) needs(i int, r *Request) (cost int64, touched bool) {
	l := &p.limits[i]
	if l.late() {
		return 1, r.Output > 0
	}
	cost = r.cost(l)
	return cost, cost > 0
}

// EarliestAccept returns the first time at or after t at which r would be accepted if nothing else arrived before. It
// also returns the limit that has room last, or -1 if r would be accepted at t.
func (p *Provider) EarliestAccept(t store.Time, r *Request) (at store.Time, limit int) {
	at, limit = t, -1
	for i := range p.limits {
		cost, touched := p.needs(i, r)
		if !touched {
			continue
		}
		if e := p.rule(i, r).Earliest(t, cost); e > at {
			at, limit = e, i
		}
	}
	return at, limit
}

// Arrive decides whether to accept a request that arrives at t. Calls must be in the order of time.
func (p *Provider) Arrive(t store.Time, r *Request) Response {
	resp := p.decide(t, r)
	if p.policy.Headers {
		resp.Headers = p.headers(t, r)
	}
	return resp
}

// decide is Arrive without the headers.
func (p *Provider) decide(t store.Time, r *Request) Response {
	at, limit := p.EarliestAccept(t, r)
	resp := Response{Accepted: limit < 0, Limited: limit}
	if resp.Accepted || p.policy.RejectedCount {
		p.take(t, r, resp.Accepted)
	}
	if !resp.Accepted && p.policy.RetryAfter && at != Never {
		resp.RetryAfter = time.Duration(seconds(at-t+999_999)) * time.Second
	}
	return resp
}

func (p *Provider) take(t store.Time, r *Request, accepted bool) {
	for i := range p.limits {
		l := &p.limits[i]
		cost := r.cost(l)
		if cost > 0 && (accepted || l.Kind != store.Concurrency) {
			p.rule(i, r).Take(t, cost)
		}
	}
}

// Produce counts output tokens when they are produced.
func (p *Provider) Produce(t store.Time, r *Request, tokens int64) {
	for i := range p.limits {
		if p.limits[i].late() {
			p.rule(i, r).Take(t, tokens)
		}
	}
}

// Done ends an accepted request. It frees its place, and replaces the estimate of its input with the real input.
func (p *Provider) Done(t store.Time, r *Request) {
	for i := range p.limits {
		l := &p.limits[i]
		cost := r.cost(l)
		if cost == 0 {
			continue
		}
		rule := p.rule(i, r)
		rule.Done(t, cost)
		if l.Unit == InputTokens && r.Input != cost {
			rule.Take(t, r.Input-cost)
		}
	}
}

func (p *Provider) headers(t store.Time, r *Request) []Header {
	var hs []Header
	for i := range p.limits {
		l := &p.limits[i]
		if _, touched := p.needs(i, r); !touched || l.Hidden || l.Kind == store.Concurrency {
			continue
		}
		s := p.rule(i, r).State(t)
		h := Header{Limit: i, Size: s.Size, Remaining: s.Remaining, ResetIn: -1}
		if l.Plan {
			percent := (s.Size - s.Remaining) * 100 / s.Size
			h.Remaining = s.Size - percent*s.Size/100
		}
		if s.Reset != 0 {
			h.ResetIn = time.Duration(seconds(s.Reset)-seconds(t)) * time.Second
		}
		hs = append(hs, h)
	}
	return hs
}

func seconds(t store.Time) int64 { return int64(t) / 1_000_000 }
