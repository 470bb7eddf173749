package sluicehttp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/upstream"
	"github.com/sluicehq/sluice/store"
)

// DefaultLetterBody is how much of a body a dead letter holds by default.
const DefaultLetterBody = 1 << 20

// Letters keep requests that were given up as dead letters: those that got no answer, or a refusal that trying again did not help
// against, or whose turn did not come in time. A request whose client has gone is not one, and neither is one that is ruled out for
// good, such as by a budget. Keys are never kept; see [deadletter.NewRequest].
type Letters struct {
	Keeper *deadletter.Keeper
	// MaxBody is how long a body may be to be kept. 0 means DefaultLetterBody.
	MaxBody int64
	// Base is the part of the path that is the upstream's own, and not the request's.
	Base string
	// Secrets are names of headers that hold keys, besides those whose names say so.
	Secrets []string
}

func (l *Letters) most() int64 { return min(cmp.Or(l.MaxBody, DefaultLetterBody), deadletter.MaxBody) }

// keeps reports that the request is kept if it is given up. What belongs to a connection could not be replayed without it.
func (f *flight) keeps() bool { return f.t.Letters != nil && !f.observe && f.line == nil }

// heard notes what came of a send, for a dead letter.
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

// refused keeps a request whose last answer is a refusal.
func (f *flight) refused(a *sluice.Answer) {
	switch a.Verdict {
	case store.VerdictThrottled, store.VerdictOverloaded, store.VerdictExhausted, store.VerdictBilling, store.VerdictError:
		f.bury(fmt.Sprintf("%s (status %d)", a.Verdict, a.Status))
	}
}

// lost keeps a request that has no answer.
func (f *flight) lost(err error) {
	var e *sluice.Error
	var bad *badRequest
	switch {
	case errors.Is(f.ctx.Err(), context.Canceled), errors.As(err, &bad), errors.Is(err, ErrSwitched):
	case errors.As(err, &e):
		if gaveUp(e) {
			f.bury(e.Error())
		}
	default:
		f.bury("no answer: " + upstream.Words(err))
	}
}

// gaveUp reports an error of the gate after which a request is given up. Others rule it out for good.
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
	l.Keep(f.origin, f.payload.held, f.payload.whole || f.payload.none, f.answers, deadletter.Entry{
		Resource: f.t.Resource, Agent: f.caller.Agent, Class: f.caller.Class, User: f.caller.User, Tool: f.caller.Tool, Model: f.told.Model,
		Emergency: f.caller.Emergency, Attempts: f.told.Attempts, First: f.start, Reason: why,
	})
}

// Keep completes an entry with a request and the answers to its sends, and keeps it. whole tells that body is all of the request's
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
