package replay

import (
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// event reads one line of the gate's own event log. The events of a send, its response and its usage have the same
// ticket; together they are one request.
func (r *reader) event(e *inspect.Event) {
	if e.Kind == inspect.EventSend {
		s := Send{
			Start: e.Time, Wanted: e.Time.Add(-time.Duration(e.WaitedMS) * time.Millisecond), End: e.Time,
			Resource: e.Resource, Caller: e.Agent, User: e.User, Class: e.Class, Model: e.Model, Named: e.Requested, Retry: e.Retry,
		}
		s.take(e.Units)
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
		s.First, s.End = e.Time, e.Time
		switch e.Verdict {
		case store.VerdictThrottled.String(), store.VerdictExhausted.String():
			s.Refused = true
		case store.VerdictOK.String():
		default:
			s.Failed = true
		}
		s.take(e.Units)
	case inspect.EventThrottled:
		s.Refused, s.Failed = true, false
	case inspect.EventUsage:
		if e.Time.After(s.End) {
			s.End = e.Time
		}
		if !s.Refused {
			s.take(e.Units)
		}
	case inspect.EventUpstream:
		s.First, s.End, s.Failed = e.Time, e.Time, true
	case inspect.EventCancel:
		s.Start = time.Time{} // it was never sent
		delete(r.tickets, e.Ticket)
	}
}

// take reads the units of an event.
func (s *Send) take(units map[string]int64) {
	if n, ok := units["input_tokens"]; ok {
		s.Input = n
	}
	if n, ok := units["output_tokens"]; ok {
		s.Output = n
	}
	if n, ok := units["tokens"]; ok && s.Input+s.Output == 0 {
		s.Input = n
	}
	if n, ok := units["usd"]; ok {
		s.USD, s.Priced = float64(n)/1e6, true
	}
}
