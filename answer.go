package sluice

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Answer is what a caller learned from the provider.
type Answer struct {
	Verdict store.Verdict
	// RetryAfter is the provider's own hint. 0 means none.
	RetryAfter time.Duration
	// Scope is what a refusal proves to be limited: PerModel, PerKey or both. 0 means
	// nothing narrower than the whole resource.
	Scope Scope
	// Limits are what the answer states of limits, by name.
	Limits []ObservedLimit
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
type ObservedLimit struct {
	Limit     string
	Size      int64         // or store.NotStated
	Remaining int64         // or store.NotStated
	ResetIn   time.Duration // from the moment the answer was made, or store.NotStated
}

// observed is what an answer states of limit i, less what is not ours to use.
func (r *resource) observed(i int, s ObservedLimit) store.Observed {
	o := store.Observed{Limit: i, Size: s.Size, Remaining: s.Remaining, ResetIn: s.ResetIn}
	if s.Size <= 0 || s.Size > store.MaxAmount || ours(&r.limits[i]) {
		return o
	}
	o.Size = part(s.Size, r.use)
	if o.Size != s.Size {
		o.Whole = s.Size
	}
	if l := &r.limits[i]; l.Kind == Bucket && l.Burst != l.Size && o.Size != s.Size {
		o.Remaining = store.NotStated // of a burst that is not all of it: what part of that is ours is not known
		return o
	}
	if s.Remaining >= 0 && s.Remaining <= s.Size {
		o.Remaining = max(o.Size-(s.Size-s.Remaining), 0) // what was used stays what it is
	}
	return o
}
