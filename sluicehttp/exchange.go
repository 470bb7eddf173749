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

// ErrUpgrade is returned for a request that asks to upgrade its connection, such as to a WebSocket. The gate could not
// count what is sent there.
var ErrUpgrade = errors.New("sluicehttp: the connection would be upgraded (WebSocket), and what passes then cannot be counted: use plain HTTP, such as server-sent events")

// ErrSwitched is returned if the provider answers 101 Switching Protocols without being asked. The body of such a
// response is the bare connection: reading it could block forever, even after the request's context has ended.
var ErrSwitched = errors.New("sluicehttp: the provider answered 101 Switching Protocols, without being asked: WebSockets do not pass the gate")

var errNoGate = errors.New("sluicehttp: the transport has no gate: set Transport.Gate and Transport.Resource")

// ErrRoute is returned if [Transport.Route] chose another model but the call could not be changed.
var ErrRoute = errors.New("sluicehttp: the model cannot be changed: the call names it in no way that is known, or its body is too large")

// ErrModel is returned if a call may name a model that cannot be read, so that it is unknown which limits apply. A long
// body that names a second model is found out while it is sent: its end does not reach the provider.
var ErrModel = errors.New("sluicehttp: the model of the call cannot be read")

// Exchange is a request and its outcome, for metrics and logs.
type Exchange struct {
	Resource, Agent, Class, User, Tool string
	// Model is the requested model, or the part of the API.
	Model string
	// RequestID is the caller's id of the request, UpstreamID the provider's from its response. Both may be empty.
	RequestID, UpstreamID string
	// Ticket is the ticket of the last send; empty if nothing was sent.
	Ticket string
	// Status is the HTTP status of the response; 0 if there was none.
	Status  int
	Verdict store.Verdict
	// Began is when the request came. Granted, Sent and Answered are about the last send, and zero if it did not get
	// that far. They are set only if [Transport.Trace] is.
	Began, Granted, Sent, Answered time.Time
	// Waited is how long the gate held the request. Took is how long the last send took, including its response.
	Waited, Took time.Duration
	// Estimated is the estimated usage. Usage is the actual usage as far as Usage.Known. For a response that was cut
	// off it covers what was seen.
	Estimated, Usage provider.Usage
	// Micros is the cost in millionths of a dollar: an estimate if the usage is not known. Priced is set if the price
	// is known.
	Micros          int64
	EstimatedMicros int64
	Priced          bool
	// Retry is set if the client had sent the request before.
	Retry bool
	// Aborted is set if the client left before the response was over.
	Aborted bool
	// Free is set if the provider does not meter the request: it took no turn.
	Free bool
	// Attempts counts the sends, including those that net/http repeats by itself.
	Attempts int
	Err      error
}

// flight is an exchange in progress.
type flight struct {
	t      *Transport
	origin *http.Request
	ctx    context.Context
	caller Caller
	start  time.Time
	line   *wire.Line // the connection that the request opens or goes over; nil: neither
	away   *wire.Away // the client that sends the request itself; nil: the transport sends it

	call    provider.Call
	asked   provider.ParsedRequest
	routed  bool        // to another model
	grown   int64       // how much longer the body is, if it was replaced
	plain   bool        // the client's body was compressed; its replacement is not
	observe bool        // mode observe: sent once, unchanged and without waiting
	hidden  bool        // Sluice asked for usage events that the client must not see
	header  http.Header // the request's header, or a copy
	copied  bool
	path    string // escaped path that replaces the request's, if not empty
	payload payload

	labels []string // of the transport's keys
	talk   uint64   // hash of the conversation; 0: none
	badKey bool     // the last response says that the key is not valid
	key    *Key     // the chosen key; nil: the request's own

	ask   sluice.Request
	cost  [12]sluice.Amount // backing array for ask.Cost
	told  Exchange
	first attempt
	last  *outcome // of the send before, while the request waits to be sent again; nil: none
	// dead is when the provider first could not be reached; zero if it has answered since.
	dead time.Time
	// patience is the context of the gate; see acquire.
	patience patient
	// answers are the outcomes of all sends, if dead letters are kept.
	answers []deadletter.Answer
	out     body // the body that the client gets
	traced  func(Exchange)
}

// fail ends an exchange without a response.
func (f *flight) fail(err error) error {
	f.told.Err = err
	f.over()
	return err
}

// over reports the end of the exchange to Done and Trace.
func (f *flight) over() {
	if f.t.Done != nil {
		f.t.Done(f.told)
	}
	if f.traced != nil {
		f.traced(f.told)
	}
}
