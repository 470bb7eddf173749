package history

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
)

// notable reports whether events of a kind are kept. Events that come with every request are only counted.
func notable(kind string) bool {
	switch kind {
	case inspect.EventSend, inspect.EventCancel, inspect.EventAnswer, inspect.EventUsage, inspect.EventWouldWait, inspect.EventAbandoned:
		return false
	}
	return true
}

// count adds an event to the figures.
func (b *Book) count(e *inspect.Event, now time.Time) {
	switch e.Kind {
	case inspect.EventSend:
		b.sent(e, now)
	case inspect.EventCancel:
		b.unsent(e, now)
	case inspect.EventAnswer:
		b.answered(e, now)
	case inspect.EventUsage:
		b.used(e, now)
	case inspect.EventThrottled:
		who := b.who(e)
		b.each(who, now, func(f *Figures) { f.Throttled++ })
		b.live.of(ofResource, who.resource, now).throttled.add(now)
	case inspect.EventUpstream:
		b.unanswered(e, now)
	case inspect.EventRefused:
		b.each(b.who(e), now, func(f *Figures) {
			f.Refused++
			f.wait(e.WaitedMS)
		})
	case inspect.EventAbandoned:
		b.each(b.who(e), now, func(f *Figures) { f.wait(e.WaitedMS) })
	}
}

// who returns whom an event is about. Later events of a ticket may state only its id.
func (b *Book) who(e *inspect.Event) who {
	w := who{resource: short(e.Resource), agent: short(e.Agent), model: short(e.Model), class: short(e.Class)}
	if e.Requested != "" {
		w.model = short(e.Requested)
	}
	if t := b.tickets.Get(e.Ticket); t != nil {
		w = t.who
	}
	return w
}

// wait counts a wait, if there was one.
func (f *Figures) wait(ms int64) {
	if ms > 0 {
		f.Waits++
		f.WaitedMS += ms
	}
}

type who struct{ resource, agent, model, class string }

// each updates the figures of all rows that a request belongs to.
func (b *Book) each(w who, now time.Time, change func(*Figures)) {
	b.turn(minuteOf(now))
	if w.resource != "" {
		change(&b.now.row(key{resource: w.resource}).Figures)
		if w.model != "" {
			change(&b.now.row(key{resource: w.resource, model: w.model}).Figures)
		}
	}
	if w.agent != "" {
		change(&b.now.row(key{agent: w.agent}).Figures)
	}
}

func (b *Book) sent(e *inspect.Event, now time.Time) {
	w := b.who(e)
	micros := max(e.Units[sluice.USD], 0)
	b.each(w, now, func(f *Figures) {
		f.Sends++
		if e.Retry {
			f.Retries++
		}
		f.wait(e.WaitedMS)
		f.Micros += micros
		f.Guessed += micros
	})
	b.now.row(key{resource: w.resource}).class(w.class, 1)
	b.other.note(key{resource: w.resource}, minuteOf(now))
	b.live.of(ofResource, w.resource, now).sends.add(now)
	if w.agent != "" {
		b.other.note(key{agent: w.agent}, minuteOf(now))
		b.live.of(ofAgent, w.agent, now).sends.add(now)
	}
	at := now
	if !e.Time.IsZero() {
		at = e.Time // events of other processes arrive a moment later
	}
	t := &ticket{who: w, retry: e.Retry, waitedMS: e.WaitedMS, sent: at, micros: micros, unpriced: e.Unpriced}
	t.shown = b.recent.begin(Request{
		Time: at.UTC(), Resource: w.resource, Agent: w.agent, Class: w.class, Model: w.model, WaitedMS: e.WaitedMS, Retry: e.Retry,
		Micros: micros, Guessed: micros > 0, State: Running,
	})
	b.remember(e.Ticket, t)
}

// unsent takes back a send that did not happen.
func (b *Book) unsent(e *inspect.Event, now time.Time) {
	t := b.tickets.Get(e.Ticket)
	if t == nil || t.answered {
		return
	}
	keys := []key{{resource: t.resource}, {agent: t.agent}}
	if t.model != "" {
		keys = append(keys, key{resource: t.resource, model: t.model})
	}
	for _, k := range keys {
		if r := b.now.rows[k.kind()][k]; r != nil && r.Sends > 0 { // it may have been in the previous minute
			r.Sends--
			if t.retry && r.Retries > 0 {
				r.Retries--
			}
			if t.waitedMS > 0 && r.Waits > 0 {
				r.Waits--
				r.WaitedMS -= t.waitedMS
			}
			r.Micros -= t.micros
			r.Guessed -= t.micros
			if r.classes[t.class] > 0 {
				r.classes[t.class]--
			}
		}
	}
	b.live.of(ofResource, t.resource, now).sends.takeBack(now)
	if t.agent != "" {
		b.live.of(ofAgent, t.agent, now).sends.takeBack(now)
	}
	b.recent.change(t.shown, func(q *Request) {
		if q.Micros, q.Guessed = 0, false; q.State == Running {
			q.State = Unsent
		}
	})
	b.tickets.Drop(e.Ticket)
}

// failed reports whether a response counts as an error.
func failed(e *inspect.Event) bool {
	switch e.Verdict {
	case store.VerdictThrottled.String(), store.VerdictExhausted.String():
		return false // counted as throttled
	case store.VerdictUnreachable.String():
		return false // has its own event
	case store.VerdictOverloaded.String(), store.VerdictError.String(), store.VerdictBilling.String():
		return true
	}
	return e.Status >= 400 && e.Status != 429
}

func (b *Book) answered(e *inspect.Event, now time.Time) {
	w, t := b.who(e), b.tickets.Get(e.Ticket)
	bad := failed(e)
	took, known := time.Duration(0), t != nil && !t.answered
	if known {
		took, t.answered = max(0, now.Sub(t.sent)), true
		if !e.Time.IsZero() {
			took = max(0, e.Time.Sub(t.sent))
		}
	}
	b.each(w, now, func(f *Figures) {
		if bad {
			f.Errors++
		}
		if known {
			f.Answers++
			f.LatencyMS += took.Milliseconds()
			f.Slow[bucketOf(took)]++
		}
	})
	if bad {
		b.live.of(ofResource, w.resource, now).errors.add(now)
	}
	if t == nil {
		b.spend(w, e, nil, now)
		return
	}
	b.recent.change(t.shown, func(q *Request) {
		q.Status, q.Verdict, q.TookMS, q.State = e.Status, e.Verdict, took.Milliseconds(), Done
		if bad {
			q.State = Failed
		} else if e.Verdict == store.VerdictThrottled.String() || e.Verdict == store.VerdictExhausted.String() {
			q.State = Throttled
		}
	})
}

// unanswered counts a request without a response. The event does not name its ticket, which may have been given
// back.
func (b *Book) unanswered(e *inspect.Event, now time.Time) {
	w := b.who(e)
	b.each(w, now, func(f *Figures) { f.Errors++ })
	b.live.of(ofResource, w.resource, now).errors.add(now)
	b.recent.lastOf(w, func(q *Request) { q.State, q.Verdict = Failed, short(e.Reason) })
}

func (b *Book) used(e *inspect.Event, now time.Time) {
	t := b.tickets.Get(e.Ticket)
	if t == nil || t.settled {
		return // the ticket is unknown, or its usage was counted before
	}
	t.settled = true
	b.spend(t.who, e, t, now)
}

// spend counts reported tokens and dollars. It takes back the estimate of the send.
func (b *Book) spend(w who, e *inspect.Event, t *ticket, now time.Time) {
	in, out, any := max(e.Units["input_tokens"], 0), max(e.Units[sluice.OutputTokens], 0), int64(0)
	if in == 0 && out == 0 {
		any = max(e.Units["tokens"], 0)
	}
	micros, told := e.Units[sluice.USD]
	guessed, before, wasGuess := int64(0), int64(0), int64(0)
	if t != nil {
		before, wasGuess = t.micros, t.micros
		if !told {
			micros = t.micros
		}
		if t.unpriced || !told {
			guessed = micros
		}
	}
	if micros = max(micros, 0); in+out+any == 0 && micros == before && guessed == wasGuess {
		return
	}
	b.each(w, now, func(f *Figures) {
		f.Input += in
		f.Output += out
		f.Tokens += any
		f.Micros += micros - before
		f.Guessed += guessed - wasGuess
	})
	if t != nil {
		b.recent.change(t.shown, func(q *Request) {
			q.Input, q.Output, q.Micros, q.Guessed = in, out+any, micros, guessed > 0
		})
	}
}

// Done adds what the proxy knows about a finished request: its total time, and whether its client left early.
func (b *Book) Done(x sluicehttp.Exchange) {
	if x.Ticket == "" {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	t := b.tickets.Get(x.Ticket)
	if t == nil {
		return
	}
	b.recent.change(t.shown, func(q *Request) {
		q.TookMS = x.Took.Milliseconds()
		switch {
		case x.Status == 0 && !x.Aborted && q.State == Running:
			q.State = Failed
		case x.Aborted:
			q.State = Left
		}
	})
}

// ticket is what is remembered about a send until it is over.
type ticket struct {
	who
	sent                        time.Time
	micros, waitedMS            int64
	retry                       bool
	shown                       uint64 // in recent
	unpriced, answered, settled bool
}

// remember keeps a send by its ticket. The oldest are forgotten first.
func (b *Book) remember(id string, t *ticket) {
	if id != "" && len(id) <= maxName {
		b.tickets.Put(id, t, maxTickets)
	}
}
