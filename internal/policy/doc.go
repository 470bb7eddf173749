// Package policy decides how much a request has to leave to others, and what callers
// are told about a quota: floors, pacing and shares; the breaker that foresees when a stock
// will be gone; launches that are spread; who has to hold because of whom; and what is
// worth changing.
//
// Pure decisions: time is an argument, in microseconds and positive, and records that
// are kept with a pool are flat. The same arithmetic has to come out to the last digit in other
// languages: integers below 2^53, or plain float64 operations in the order that is written
// here. Products are converted, float64(a*b), so that no compiler fuses them with a sum.
package policy
