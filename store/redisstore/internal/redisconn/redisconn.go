// Package redisconn connects to Redis: it parses addresses, runs scripts, subscribes to messages and classifies errors.
// It knows nothing of pools.
//
// It uses rueidis, and adds three guarantees. No call outlives its context, whatever the server does. A call with an
// unknown outcome is not repeated. Every error says what it means for the caller (see [Classify]).
package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisfault"
)

// Link is a connection to Redis: a single server, a cluster, or a master watched by sentinels. It reconnects
// automatically. All methods are safe for concurrent use.
type Link struct {
	address  Address
	name     string // the address, for error texts
	server   server
	client   rueidis.Client
	wires    *wires
	end      context.CancelFunc // of wires.life
	inFlight chan struct{}      // holds an element for each call under way
	hub      *hub
	close    sync.Once
	plain    atomic.Bool // the server does not let us use functions
}

// Dial connects to the Redis at a and checks that it can be used. The error matches [ErrUnreachable] or [ErrUnfit].
func Dial(ctx context.Context, a Address) (*Link, error) {
	life, end := context.WithCancel(context.Background())
	l := &Link{
		address:  a,
		name:     a.String(),
		wires:    &wires{life: life, unix: a.Unix(), timeout: a.Timeout, open: map[*wire]struct{}{}},
		end:      end,
		inFlight: make(chan struct{}, maxCalls),
	}
	l.hub = newHub(l)
	if err := l.open(ctx); err != nil {
		err = l.unusable(err)
		l.Close()
		return nil, err
	}
	return l, nil
}

// open creates the client. rueidis takes no context for that: when ctx ends, open cuts the connections, and rueidis
// returns at once.
func (l *Link) open(ctx context.Context) error {
	o, err := l.options()
	if err != nil {
		return &Error{Fault: FaultUnfit, at: l.name, what: err.Error(), hint: "correct the file, or the parameter that names it", cause: err}
	}
	made := make(chan error, 1)
	go func() {
		client, err := rueidis.NewClient(o)
		l.client = client // may be set even with an error, and then has to be closed
		made <- err
	}()
	select {
	case err = <-made:
	case <-ctx.Done():
		l.end()
		l.wires.cut()
		<-made
		return ctx.Err()
	}
	if err != nil {
		return err
	}
	return l.probe(ctx)
}

// unusable returns the error of Dial. No script of ours has run yet, so FaultScript becomes FaultUnfit.
func (l *Link) unusable(err error) error {
	e := l.fail(err)
	if e.Fault == FaultScript {
		e.Fault = FaultUnfit
		e.what = strings.Replace(e.what, "the script failed", "Redis refuses the connection", 1)
	}
	return e
}

// fail wraps an error of rueidis. Old servers quote the arguments of unknown commands, which may include a password: fail
// removes it, and drops the original error.
func (l *Link) fail(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if l.wires.life.Err() != nil && !errors.Is(err, ErrClosed) && Classify(err) == FaultUnreachable && !isContext(err) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	v := redisfault.Judge(err)
	if l.address.TLS {
		v = v.OverTLS()
	}
	e := &Error{Fault: v.Fault, at: l.name, cause: err}
	if _, found := l.address.Redact(err.Error()); found {
		e.cause = nil
		v.Detail, _ = l.address.Redact(v.Detail)
	}
	e.what = v.Text()
	e.hint = strings.ReplaceAll(v.Hint, "PREFIX", l.address.Prefix)
	return e
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Address returns the address that the link was dialled with.
func (l *Link) Address() Address { return l.address }

// Server returns the name and version of the server, such as "Redis 7.0.15".
func (l *Link) Server() string { return l.server.String() }

// Close ends the link. Calls that wait for a reply get [ErrClosed]. When Close returns, all goroutines of the link have
// ended, except those of rueidis that had just begun to refresh the nodes of a cluster. They end within seconds.
func (l *Link) Close() {
	l.close.Do(func() {
		l.end()
		l.wires.cut()
		l.hub.close()
		if l.client != nil {
			l.client.Close()
		}
		for range cap(l.inFlight) { // all calls have ended when inFlight is full
			l.inFlight <- struct{}{}
		}
	})
}
