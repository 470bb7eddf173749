// Package policy decides how much of a quota a request has to leave to others, and what callers are told about it.
// It has floors, pacing and shares; the breaker that predicts when a stock will be gone; the spreading of launches;
// holds along chains of waiting agents; and advice on settings.
//
// All decisions are pure: time is an argument, positive and in microseconds. Records that are kept with a pool are
// flat. Implementations in other languages must agree to the last digit. So the arithmetic uses integers below 2^53,
// or plain float64 operations in the order written here. Products are converted, float64(a*b), so that no compiler
// fuses them with a sum.
package policy
