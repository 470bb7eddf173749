package sluice

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// Answer is what a caller learned from the provider's response.
type Answer struct {
	Verdict store.Verdict
	// RetryAfter is the provider's hint. 0 means none.
	RetryAfter time.Duration
	// Scope is what a refusal proves to be limited: PerModel, PerKey or both. 0 means the whole resource.
	Scope Scope
	// Limits is what the response states about limits, by name.
	Limits []ObservedLimit
	// Usage is the actual usage of the request, for [Gate.Do] to settle.
	Usage []Amount
	// Cause says why a pause begins, or what is wrong with a request that the provider rejects, for people to read.
	Cause string
	// Status is the HTTP status, for the record. 0 means none.
	Status int
	// Err is why there is no response. It is used with VerdictUnreachable.
	Err error
	// SentAt is when a request without a response was sent. A success since then proves that the provider can be
	// reached. Zero means now.
	SentAt time.Time
}

// ObservedLimit is what a response states about one limit.
type ObservedLimit struct {
	Limit     string
	Size      int64         // or store.NotStated
	Remaining int64         // or store.NotStated
	ResetIn   time.Duration // from the moment the response was made, or store.NotStated
	Slop      time.Duration // how far off ResetIn may be; 0: 50 ms if it states a fraction of a second, otherwise 1.2 s
}

// observed returns what a response states about limit l, reduced to the part that we may use.
func (r *resource) observed(l *store.Limit, s ObservedLimit) store.Observed {
	o := store.Observed{Limit: l.Name, Size: s.Size, Remaining: s.Remaining, ResetIn: s.ResetIn, Slop: s.Slop}
	if s.Size <= 0 || s.Size > store.MaxAmount || ours(l) {
		return o
	}
	o.Size = percentOf(s.Size, r.use)
	if o.Size != s.Size {
		o.Whole = s.Size
	}
	if l.Kind == Bucket && l.Burst != l.Size && o.Size != s.Size {
		o.Remaining = store.NotStated // the burst differs from the rate: our part of what remains is unknown
		return o
	}
	if s.Remaining >= 0 && s.Remaining <= s.Size {
		o.Remaining = max(o.Size-(s.Size-s.Remaining), 0) // the used amount stays the same
	}
	return o
}

// Verdict is what a response means for the quota. The zero value says nothing.
type Verdict = store.Verdict

// The verdicts.
const (
	VerdictOK          = store.VerdictOK          // accepted
	VerdictThrottled   = store.VerdictThrottled   // over a limit
	VerdictExhausted   = store.VerdictExhausted   // a quota is gone until RetryAfter is over
	VerdictOverloaded  = store.VerdictOverloaded  // the provider as a whole is over its capacity
	VerdictError       = store.VerdictError       // any other failure
	VerdictBilling     = store.VerdictBilling     // out of credit: a retry cannot help
	VerdictUnreachable = store.VerdictUnreachable // the request did not reach the provider, or nothing came back
)
