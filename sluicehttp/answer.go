package sluicehttp

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// judge sends the request and reports the outcome to the gate. If there is no response, it also ends the ticket.
func (f *flight) judge(a *attempt) (o outcome) {
	if o.resp, o.err = a.send(); o.err != nil {
		f.failed(a, &o)
		return o
	}
	now := time.Now()
	if f.asked.Tokens && o.resp.StatusCode == http.StatusOK && !f.t.looks.due(f.asked.Part+f.ask.Key, now) {
		f.served()
		o.answer = sluice.Answer{Verdict: store.VerdictOK, Status: http.StatusOK}
		o.held, _ = a.current().Answer(o.answer)
		return o
	}
	if f.isAside() {
		f.judgeKey(&o)
		return o
	}
	seen := &provider.Response{Status: o.resp.StatusCode, Header: o.resp.Header, Model: f.asked.Model, Received: now}
	if f.looksInside(o.resp) {
		seen.Body = f.peek(o.resp)
	}
	observed := f.t.dialect.Observe(seen, now)
	f.badKey = f.key != nil && isBadKey(seen.Status, seen.Body)
	seen.Body = nil // no longer needed
	o.answer = observed.Answer(f.t.Limits)
	o.answer.Status = o.resp.StatusCode
	f.explain(&o)
	o.answer = f.away.Believe(o.answer)
	if f.away.Believes() {
		f.learnPlan(&observed, &o.answer)
	}
	if why := f.refusesKey(&o); why != "" {
		o.other = f.setAside(why)
		o.answer.Verdict, o.answer.Cause = store.VerdictNone, "" // only this key is concerned: the resource continues
	} else if o.answer.Verdict == store.VerdictOK {
		f.served()
	}
	switch {
	case !f.asked.Free:
		o.held, _ = a.current().Answer(o.answer) // a store that cannot be reached does not fail the request
	case o.answer.Verdict != store.VerdictOK && o.answer.Verdict != store.VerdictNone || len(o.answer.Limits) > 0 || inside.Of(f.t.Gate).FailingFor(f.t.Resource) > 0:
		_ = f.t.Gate.Observe(context.WithoutCancel(f.ctx), f.ask, o.answer)
	}
	return o
}

// judgeKey judges only the key of a call that is not metered: another key of the transport may be valid.
func (f *flight) judgeKey(o *outcome) {
	if f.key == nil || !f.asked.Keyed {
		return
	}
	status := o.resp.StatusCode
	f.badKey = status >= 400 && isBadKey(status, f.peek(o.resp))
	if why := f.refusesKey(o); why != "" {
		o.other = f.setAside(why)
	} else if status < 400 {
		f.served()
	}
}

// Under load, Sluice reads the rate-limit headers of only one successful response every lookEvery. Between two
// responses they change only by what the gate counts itself. It reads all of the first lookBurst responses of a burst:
// together they show how the provider counts.
const (
	lookEvery = 20 * time.Millisecond
	lookBurst = 64
)

// maxLooks bounds the parts of an API in looks: their names come from requests.
const maxLooks = 256

// looks says when to read the headers of successful responses, by part of the API.
type looks struct {
	mu sync.Mutex
	at map[string]time.Time // when all reads so far would have been made, lookEvery apart
}

// due reports whether to read a response's headers now, and records the read.
func (l *looks) due(part string, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, known := l.at[part]
	if ahead := next.Sub(now); known && ahead > (lookBurst-1)*lookEvery && ahead <= lookBurst*lookEvery {
		return false
	}
	if l.at == nil || len(l.at) >= maxLooks {
		l.at = map[string]time.Time{}
	}
	if next.Before(now) || next.Sub(now) > lookBurst*lookEvery { // the clock was set back
		next = now
	}
	l.at[part] = next.Add(lookEvery)
	return true
}

// failed ends the ticket of a send without a response.
func (f *flight) failed(a *attempt, o *outcome) {
	var bad *badRequest
	o.unsent = a.unsent() || errors.As(o.err, &bad)
	f.told.Micros = f.told.EstimatedMicros // the estimate stays charged, unless nothing was sent
	ticket := a.end()
	a.cancel(nil)
	switch {
	case o.unsent:
		f.told.Micros = 0
		_ = ticket.Cancel()
	case f.line.Sends(): // it holds no concurrency
		f.told.Aborted = f.ctx.Err() != nil
		f.t.end(ticket, nil)
	case f.ctx.Err() != nil || timeout(o.err): // the provider may still be working on it
		f.told.Aborted = f.ctx.Err() != nil
		f.t.leave(ticket, nil, f.t.remaining(f.told.Model, time.Since(a.began)))
	case a.begun.Load(): // the response makes no sense, but it shows that the request has arrived
		_, _ = ticket.Answer(sluice.Answer{Verdict: store.VerdictNone})
		_ = ticket.Close()
	default:
		_ = ticket.CloseUnanswered()
	}
	f.told.Took = time.Since(a.began)
	f.unreachable(a, o.err)
}

// looksInside reports whether the meaning of a response depends on its body.
func (f *flight) looksInside(resp *http.Response) bool {
	if resp.Body == nil || resp.Body == http.NoBody || resp.ContentLength == 0 {
		return false
	}
	return resp.StatusCode >= 400 || resp.StatusCode == http.StatusOK && f.hides() && isJSON(resp.Header)
}

// hides reports whether a refusal of the call may have status 200. GraphQL has no other status.
func (f *flight) hides() bool {
	return f.t.github && (f.asked.Part == "graphql" || strings.HasSuffix(f.origin.URL.Path, "/graphql"))
}

func isJSON(h http.Header) bool {
	kind := contentType(h)
	return kind == "application/json" || strings.HasSuffix(kind, "+json")
}

// contentType returns the media type of a response, without parameters.
func contentType(h http.Header) string {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

// streams reports whether a response is produced while it is sent.
func streams(h http.Header) bool {
	switch contentType(h) {
	case "text/event-stream", "application/x-ndjson", "application/vnd.amazon.eventstream":
		return true
	}
	return false
}

// current returns the current ticket.
func (a *attempt) current() sluice.Ticket {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.ticket
}
