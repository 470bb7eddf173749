package replay

import (
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// maxWait is the longest wait that the gate's event log can state: until a monthly budget resets.
const maxWait = 31 * 24 * time.Hour

// event reads one line of the gate's own event log. The events of a send, its response and its usage have the same
// ticket; together they are one request.
func (r *reader) event(e *inspect.Event) {
	if !plausible(e.Time) {
		r.log.Skipped++
		return
	}
	if e.Kind == inspect.EventSend {
		waited := e.WaitedMS
		if waited < 0 || waited > maxWait.Milliseconds() {
			r.ignore("waited_ms")
			waited = 0
		}
		s := Send{
			Start: e.Time, Wanted: e.Time.Add(-time.Duration(waited) * time.Millisecond), End: e.Time,
			Resource: e.Resource, Caller: e.Agent, User: e.User, Class: e.Class, Model: e.Model, Named: e.Requested, Retry: e.Retry,
		}
		r.take(&s, e.Units)
		r.add(s)
		if e.Ticket != "" {
			r.tickets[e.Ticket] = len(r.log.Sends) - 1
		}
		return
	}
	at, known := r.tickets[e.Ticket]
	if !known || e.Ticket == "" {
		if e.Kind == inspect.EventThrottled || e.Kind == inspect.EventAnswer || e.Kind == inspect.EventUsage {
			r.log.Skipped++ // log rotation has removed its send
		}
		return
	}
	s := &r.log.Sends[at]
	switch e.Kind {
	case inspect.EventAnswer:
		s.First, s.End, s.answered = e.Time, e.Time, true
		switch e.Verdict {
		case store.VerdictThrottled.String(), store.VerdictExhausted.String():
			s.Refused = true
		case store.VerdictOK.String():
		default:
			s.Failed = true
		}
		r.take(s, e.Units)
	case inspect.EventThrottled:
		s.Refused, s.Failed = true, false
	case inspect.EventUsage:
		if e.Time.After(s.End) {
			s.End = e.Time
		}
		if !s.Refused {
			r.take(s, e.Units)
		}
	case inspect.EventUpstream:
		s.First, s.End, s.Failed = e.Time, e.Time, true
	case inspect.EventCancel:
		if s.answered { // it was sent, although its ticket was given back
			return
		}
		s.Start = time.Time{} // it was never sent
		delete(r.tickets, e.Ticket)
	}
}

// take reads the units of an event.
func (r *reader) take(s *Send, units map[string]int64) {
	unit := func(name string, most int64) (int64, bool) {
		n, ok := units[name]
		if ok && (n < 0 || n > most) {
			r.ignore(name)
			return 0, false
		}
		return n, ok
	}
	if n, ok := unit("input_tokens", maxTokens); ok {
		s.Input = n
	}
	if n, ok := unit("output_tokens", maxTokens); ok {
		s.Output = n
	}
	if n, ok := unit("tokens", maxTokens); ok && s.Input+s.Output == 0 {
		s.Input = n
	}
	if n, ok := unit("usd", maxUSD*1e6); ok {
		s.USD, s.Priced = float64(n)/1e6, true
	}
}
