package sluice

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Verdict is what an answer means for the quota.
type Verdict = store.Verdict

// The verdicts.
const (
	VerdictNone       = store.VerdictNone       // nothing was learned
	VerdictOK         = store.VerdictOK         // accepted
	VerdictThrottled  = store.VerdictThrottled  // over a limit: everybody pauses
	VerdictOverloaded = store.VerdictOverloaded // the provider is over its capacity: a shorter pause
	VerdictExhausted  = store.VerdictExhausted  // a quota is gone until RetryAfter is over
	VerdictBilling    = store.VerdictBilling    // money has run out: trying again is useless
	VerdictError      = store.VerdictError      // failed for another reason, worth trying again
	// VerdictUnreachable tells that no answer came: the request did not reach the provider, or the connection broke. Answer.Err
	// says why.
	VerdictUnreachable = store.VerdictUnreachable
)

// NotStated marks what an answer does not say of a limit.
const NotStated = -1

// Answer is what a caller learned from the provider.
type Answer struct {
	Verdict Verdict
	// RetryAfter is the provider's own hint. 0 means none.
	RetryAfter time.Duration
	// Scope is what a refusal proves to be limited: PerModel, PerKey or both. 0 means
	// nothing narrower than the whole resource.
	Scope Scope
	// Limits are what the answer states of limits, by name.
	Limits []Stated
	// Usage is what the request really used, for Do to settle.
	Usage []Amount
	// Cause is why a pause begins, for people to read.
	Cause string
	// Status is the answer's status code, for the record. 0 means none.
	Status int
	// Err is why there is no answer, with VerdictUnreachable.
	Err error
	// SentAt is when a request was sent that has no answer. A success since then proves that the provider can be reached.
	// Zero means now.
	SentAt time.Time
}

// Stated is what an answer says of one limit.
type Stated struct {
	Limit     string
	Size      int64         // or NotStated
	Remaining int64         // or NotStated
	ResetIn   time.Duration // from the moment the answer was made, or NotStated
}

// observed is what an answer states of limit i, less what is not ours to use.
func (r *resource) observed(i int, s Stated) store.Observed {
	o := store.Observed{Limit: i, Size: s.Size, Remaining: s.Remaining, ResetIn: s.ResetIn}
	if s.Size <= 0 || s.Size > store.MaxAmount || ours(&r.limits[i]) {
		return o
	}
	o.Size = part(s.Size, r.use)
	if o.Size != s.Size {
		o.Whole = s.Size
	}
	if l := &r.limits[i]; l.Kind == Bucket && l.Burst != l.Size && o.Size != s.Size {
		o.Remaining = NotStated // of a burst that is not all of it: what part of that is ours is not known
		return o
	}
	if s.Remaining >= 0 && s.Remaining <= s.Size {
		o.Remaining = max(o.Size-(s.Size-s.Remaining), 0) // what was used stays what it is
	}
	return o
}
