package sluicehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/upstream"
	"github.com/sluicehq/sluice/store"
)

// DefaultLetterBody is the default maximum for the body of a dead letter, in bytes.
const DefaultLetterBody = 1 << 20

// Letters keeps requests that were given up as dead letters: no response, a refusal that retries did not resolve, or a
// turn that did not come in time. It keeps no request that the client cancelled or that is ruled out for good, such as
// by a budget. It never keeps API keys; see [deadletter.NewRequest].
type Letters struct {
	Keeper *deadletter.Keeper
	// MaxBody is the longest body to keep, in bytes. 0 means DefaultLetterBody.
	MaxBody int64
	// Base is the part of the path that belongs to the upstream's address, not to the request.
	Base string
	// Secrets names further headers that hold keys, in addition to those recognised by name.
	Secrets []string
}

func (l *Letters) most() int64 { return min(cmp.Or(l.MaxBody, DefaultLetterBody), deadletter.MaxBody) }

// keeps reports whether to keep the request if it is given up. Calls over an open connection cannot be replayed without
// it, and a call that is not metered is sent once.
func (f *flight) keeps() bool {
	return f.t.Letters != nil && !f.observe && f.line == nil && !f.asked.Free && !f.away.Once()
}

// heard records the outcome of a send for a dead letter.
func (f *flight) heard(o *outcome) {
	if !f.keeps() {
		return
	}
	a := deadletter.Answer{Time: time.Now().UTC().Truncate(time.Millisecond)}
	if o.resp != nil {
		a.Status, a.Verdict = o.resp.StatusCode, o.answer.Verdict.String()
	} else if o.err != nil {
		a.Error = upstream.Words(o.err)
	}
	f.answers = append(f.answers, a)
}

// refused keeps the request if its last response is a refusal.
func (f *flight) refused(a *sluice.Answer) {
	switch a.Verdict {
	case store.VerdictThrottled, store.VerdictOverloaded, store.VerdictExhausted, store.VerdictBilling, store.VerdictError:
		f.bury(fmt.Sprintf("%s (status %d)", a.Verdict, a.Status))
	}
}

// lost keeps a request that got no response.
func (f *flight) lost(err error) {
	var e *sluice.Error
	var bad *badRequest
	switch {
	case errors.Is(f.ctx.Err(), context.Canceled), errors.As(err, &bad), errors.Is(err, ErrSwitched), errors.Is(err, ErrModel):
	case errors.As(err, &e):
		if gaveUp(e) {
			f.bury(e.Error())
		}
	default:
		f.bury("no answer: " + upstream.Words(err))
	}
}

// gaveUp reports whether the gate gave up the request for now. Other errors rule it out for good.
func gaveUp(e *sluice.Error) bool {
	return slices.ContainsFunc([]error{sluice.ErrDeadline, sluice.ErrNotNow, sluice.ErrFull, sluice.ErrAttempts, sluice.ErrBilling, sluice.ErrStore},
		func(given error) bool { return errors.Is(e, given) })
}

// bury keeps the request as a dead letter.
func (f *flight) bury(why string) {
	l := f.t.Letters
	if !f.keeps() {
		return
	}
	r := f.origin
	if f.plain { // the header must describe the body that is kept
		copied := *r
		copied.Header = maps.Clone(r.Header)
		delete(copied.Header, "Content-Encoding")
		r = &copied
	}
	l.Keep(r, f.payload.held, f.payload.whole || f.payload.none, f.answers, deadletter.Entry{
		Resource: f.t.Resource, Agent: f.caller.Agent, Class: f.caller.Class, User: f.caller.User, Tool: f.caller.Tool, Model: f.told.Model,
		Emergency: f.caller.Emergency, Attempts: f.told.Attempts, First: f.start, Reason: why,
	})
}

// Keep adds the request and the outcomes of its sends to an entry, and keeps it. whole is set if body is the complete
// body. [Transport] and [Letters.Do] call it by themselves.
func (l *Letters) Keep(r *http.Request, body []byte, whole bool, answers []deadletter.Answer, e deadletter.Entry) {
	path := r.URL.EscapedPath()
	if rest, ok := strings.CutPrefix(path, l.Base); ok && l.Base != "" && l.Base != "/" {
		path = "/" + strings.TrimPrefix(rest, "/")
	}
	if r.URL.RawQuery != "" {
		path += "?" + r.URL.RawQuery
	}
	e.Request = deadletter.NewRequest(cmp.Or(r.Method, http.MethodGet), path, r.Header, body, whole, l.most(), l.Secrets...)
	e.Request.Answers = append(e.Request.Answers, answers...)
	e.Rounds, e.First, e.Last = 1, e.First.UTC().Truncate(time.Millisecond), time.Now().UTC().Truncate(time.Millisecond)
	l.Keeper.Keep(e)
}
