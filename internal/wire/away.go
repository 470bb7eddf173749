package wire

import (
	"context"
	"net/http"

	"github.com/sluicehq/sluice"
)

// Away makes a transport gate a request that somebody else sends: the transport waits for the turn, calls Send in place of its base,
// judges the response and settles the usage. It does not change the request.
//
// The methods of a nil *Away are those of a request that the transport sends itself.
type Away struct {
	// Send says that it is the request's turn, and returns the response when it has begun. It tells the request's
	// [net/http/httptrace.ClientTrace] WroteHeaders when the request may have been written.
	Send func(*http.Request) (*http.Response, error)
	// Single is set if the sender has the request only once.
	Single bool
	// Key is the label of the API key that the request carries.
	Key string
	// Trust bounds the effect of what the sender says on other callers. Nil believes all of it.
	Trust Trust
}

// Trust bounds what a sender may say.
type Trust interface {
	Answer(sluice.Answer) sluice.Answer
	// Used bounds the usage of a request to a model, which reserved an amount.
	Used(model string, reserved, used []sluice.Amount) []sluice.Amount
}

// Once reports whether the request can be sent only once.
func (a *Away) Once() bool { return a != nil && a.Single }

// Believes reports whether all that is said of the response is believed.
func (a *Away) Believes() bool { return a == nil || a.Trust == nil }

// Believe returns what is believed of a response.
func (a *Away) Believe(answer sluice.Answer) sluice.Answer {
	if a.Believes() {
		return answer
	}
	return a.Trust.Answer(answer)
}

// Used returns what is believed of usage.
func (a *Away) Used(model string, reserved, used []sluice.Amount) []sluice.Amount {
	if a.Believes() || len(used) == 0 {
		return used
	}
	return a.Trust.Used(model, reserved, used)
}

type awayKey struct{}

// WithAway returns a context for a request that somebody else sends.
func WithAway(ctx context.Context, a *Away) context.Context {
	return context.WithValue(ctx, awayKey{}, a)
}

// AwayOf returns who sends a request; nil: the transport.
func AwayOf(ctx context.Context) *Away {
	a, _ := ctx.Value(awayKey{}).(*Away)
	return a
}
