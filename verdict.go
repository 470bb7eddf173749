package sluice

import "github.com/sluicehq/sluice/store"

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
