// Package intercept runs real programs that know nothing of the gate under sluice run --intercept, against local TLS servers that
// stand for the providers.
package intercept
