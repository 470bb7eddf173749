package sluicehttp

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// ErrUpgrade is the error of a request that wants to turn its connection into something else, such as a
// WebSocket: what passes there cannot be counted.
var ErrUpgrade = errors.New("sluicehttp: the connection would be upgraded (WebSocket), and what passes then cannot be counted: use plain HTTP, such as server-sent events")

// ErrSwitched is the error of a request that the provider answered with 101 Switching Protocols. No request
// asks for that, and the body of such an answer is the bare connection: reading it can go on forever, even
// after the request's context has ended.
var ErrSwitched = errors.New("sluicehttp: the provider answered 101 Switching Protocols, without being asked: WebSockets do not pass the gate")

var errNoGate = errors.New("sluicehttp: the transport has no gate: set Transport.Gate and Transport.Resource")

// ErrRoute is the error of a call whose model was to be another and could not be changed.
var ErrRoute = errors.New("sluicehttp: the model cannot be changed: the call names it in no way that is known, or its body is too large")

// Exchange is a request and what became of it, for metrics and logs.
type Exchange struct {
	Resource, Agent, Class, User, Tool string
	// Model is the model that was asked for, or the part of the API.
	Model string
	// RequestID is the caller's name for the request, UpstreamID the provider's, as its answer states it; empty: none.
	RequestID, UpstreamID string
	// Ticket is that of the last send, empty if nothing was sent.
	Ticket string
	// Status is that of the answer, 0 if there was none.
	Status  int
	Verdict store.Verdict
	// Began is when the request came; Granted, Sent and Answered are of the last send, zero if it did not come to that. They are
	// there where [Transport.Trace] is set.
	Began, Granted, Sent, Answered time.Time
	// Waited is how long the gate held it, Took how long the last send and its answer took.
	Waited, Took time.Duration
	// Estimated is what was reckoned with and Usage what was really used, as far as Usage.Known; of an
	// answer that was broken off, what was seen of it.
	Estimated, Usage provider.Usage
	// Micros is what it cost, in millionths of a dollar: the estimate if the usage is not known. Priced tells
	// that the price is known.
	Micros          int64
	EstimatedMicros int64
	Priced          bool
	// Retry tells that the client had sent it before.
	Retry bool
	// Aborted tells that the client left before the answer was over.
	Aborted bool
	// Attempts is how often it was sent, those that net/http repeats by itself included.
	Attempts int
	Err      error
}

// flight is an exchange under way.
type flight struct {
	t      *Transport
	origin *http.Request
	ctx    context.Context
	caller Caller
	start  time.Time
	line   *wire.Line // that the request opens, or goes over; nil: neither

	call    provider.Call
	asked   provider.ParsedRequest
	routed  bool        // to another model
	grown   int64       // by how much the body is longer, if it is another one
	observe bool        // it goes once, as it came, and nobody holds it
	hidden  bool        // usage was asked for that the client must not see
	header  http.Header // of the request, or a copy
	copied  bool
	path    string // another one than the request's, if not empty; escaped
	payload payload

	labels []string // of the transport's keys
	talk   uint64   // hash of the conversation that the request belongs to; 0: none
	badKey bool     // the last answer says that the key is not good
	key    *Key     // that the request goes with, of several; nil: with its own

	ask   sluice.Request
	cost  [12]sluice.Amount // of ask, where that is enough
	told  Exchange
	first attempt
	last  outcome
	// dead is when the provider could not be reached for the first time, zero if it has answered since.
	dead time.Time
	seen provider.Response // what the dialect is shown of an answer
	// answers are what came of each send, where requests that are given up are kept.
	answers []deadletter.Answer
	out     body // the answer that the client gets
	traced  func(Exchange)
}

// fail ends an exchange that has no answer.
func (f *flight) fail(err error) error {
	f.told.Err = err
	f.over()
	return err
}

// over tells whoever wants to know that the exchange is over.
func (f *flight) over() {
	if f.t.Done != nil {
		f.t.Done(f.told)
	}
	if f.traced != nil {
		f.traced(f.told)
	}
}
