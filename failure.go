package sluice

import (
	"cmp"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/keylabel"
	"github.com/sluicehq/sluice/internal/upstream"
	"github.com/sluicehq/sluice/store"
)

const (
	// failingFrom is how many failures of the provider in a row make a resource failing.
	failingFrom = 5
	// failingFor is how long after the last send a resource counts as failing, or as stopped for billing.
	failingFor = 15 * time.Minute
)

// failures is the current streak of sends by this process that the provider did not serve. The pool counts those of all
// processes; this one serves for immediate decisions, and while the store cannot be reached.
type failures struct {
	served atomic.Int64 // the [uptime] when the provider last served a request; 0: never
	any    atomic.Bool  // there is a streak

	mu     sync.Mutex
	streak store.Trouble // its times are those of ownTime
	key    string        // label of the key of the last billing stop
}

// isOld reports whether the provider has served a later request, so that the failure says nothing about the provider.
func (f *failures) isOld(a *Answer) bool {
	served := f.served.Load()
	return served != 0 && !a.SentAt.IsZero() && served > int64(a.SentAt.Sub(loaded))
}

// ownTime returns this process's own time, for streaks.
func ownTime() store.Time { return store.Time(uptime().Microseconds()) }

// fail adds a failure and returns the streak.
func (f *failures) fail(verdict store.Verdict, cause, key string) store.Trouble {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, s := ownTime(), &f.streak
	if unpaid := verdict == store.VerdictBilling; s.Unpaid != unpaid { // billing stops are a separate streak, as in the pool
		*s = store.Trouble{Unpaid: unpaid}
	}
	if s.Count++; s.Count == 1 {
		s.Since = now
	}
	f.key = key
	s.Last, s.Cause, s.Unreached = now, cause, s.Unreached || verdict == store.VerdictUnreachable
	f.any.Store(true)
	return *s
}

// serve ends the streak and returns it. A key that is paid for does not end the billing stops of another.
func (f *failures) serve(key string) store.Trouble {
	f.served.Store(int64(uptime()))
	if !f.any.Load() {
		return store.Trouble{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := f.streak
	if s.Unpaid && f.key != "" && f.key != key && ownTime().Sub(s.Last) < failingFor {
		return store.Trouble{}
	}
	f.streak = store.Trouble{}
	f.any.Store(false)
	return s
}

func (f *failures) now() store.Trouble {
	if !f.any.Load() {
		return store.Trouble{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.streak
}

// FailingFor returns for how long the sends of this process to a resource have failed: the provider could not be
// reached, or answered with failures of its own. It is 0 if the last send was served.
func (g inside) FailingFor(resource string) time.Duration {
	r, err := g.resource(resource)
	if err != nil {
		return 0
	}
	t := r.failures.now()
	if !isFailing(t) {
		return 0
	}
	return max(ownTime().Sub(t.Since), 1)
}

func isFailing(t store.Trouble) bool { return !t.Unpaid && (t.Unreached || t.Count >= failingFrom) }

// noteAnswer records whether the provider served a request, and reports a change of state. ticket is the ticket of a
// request without a response, unless the store does not know it.
func (r *resource) noteAnswer(req *Request, ticket string, a *Answer) {
	var streak store.Trouble
	switch {
	case a.Verdict == store.VerdictUnreachable:
		if r.events != nil {
			e := r.about(inspect.EventUpstream, req)
			e.Ticket, e.Reason, e.Error = ticket, upstream.Kind(a.Err), a.failure()
			if e.Reason == "" {
				e.Reason = upstream.Other
			}
			r.emit(e)
		}
		if r.failures.isOld(a) {
			return
		}
		streak = r.failures.fail(a.Verdict, a.failure(), "")
	case a.Verdict == store.VerdictOverloaded, a.Verdict == store.VerdictError && a.Status >= 500:
		streak = r.failures.fail(a.Verdict, statusWords(a.Status), "")
	case a.Verdict == store.VerdictBilling:
		streak = r.failures.fail(a.Verdict, r.unpaidCause(req, a), r.keyOf(req))
	case a.Verdict == store.VerdictNone, a.Verdict == store.VerdictError:
		return
	default:
		switch was := r.failures.serve(r.keyOf(req)); {
		case isFailing(was):
			r.tellState(inspect.StateFlowing, "the provider answers again", nil)
		case was.Unpaid:
			r.tellState(inspect.StateFlowing, "the provider serves the account again", nil)
		}
		return
	}
	switch {
	case isFailing(streak):
		r.tellState(inspect.StateFailing, failingReason(&streak), nil)
	case streak.Unpaid:
		r.tellState(inspect.StatePaused, unpaidReason(&streak), nil)
	}
}

// failure says why there is no response.
func (a *Answer) failure() string {
	if a.Err == nil {
		return a.Cause
	}
	return upstream.Words(a.Err)
}

func statusWords(status int) string {
	if status == 0 {
		return "the provider is overloaded"
	}
	return "status " + strconv.Itoa(status)
}

// failingReason says what fails and what happens next.
func failingReason(t *store.Trouble) string {
	sends := "the last send failed"
	if t.Count > 1 {
		sends = fmt.Sprintf("the last %d sends failed", t.Count)
	}
	if t.Cause != "" {
		sends += ": " + t.Cause
	}
	return sends + "; new requests are tried, and the first that succeeds ends this"
}

// unpaidCause says why the provider wants payment. It names the model if only that model is affected, and the key where
// keys are told apart.
func (r *resource) unpaidCause(req *Request, a *Answer) string {
	cause := a.Cause
	if cause == "" && a.Status != 0 {
		cause = statusWords(a.Status)
	}
	cause = cmp.Or(cause, "the account is not paid for")
	if a.Scope&PerModel != 0 && req.Model != "" {
		cause = "model " + req.Model + ": " + cause
	}
	if label := r.keyOf(req); label != "" && label != keylabel.None {
		cause = "key " + label + ": " + cause
	}
	return cause
}

// unpaidReason explains a billing stop and what a person can do.
func unpaidReason(t *store.Trouble) string {
	return "billing stop: " + t.Cause + "; the provider refuses requests until you add credit or raise the limit there"
}
