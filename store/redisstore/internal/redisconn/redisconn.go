// Package redisconn reaches a Redis: the address, the connections, one way to run a script, one
// to be told of messages, and what errors mean. It knows nothing of pools.
//
// It stands on rueidis, and adds what a gate needs of a connection: no call outlives its
// context, whatever the server does; nothing is repeated whose outcome is not known; and every
// error says what it means for the caller (see [Classify]).
package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/rueidis"
)

// Link is a connection to a Redis, single, cluster or watched by sentinels. It connects again by
// itself. All methods are safe for concurrent use.
type Link struct {
	address Address
	name    string // the address, for people
	server  server
	client  rueidis.Client
	wires   *wires
	end     context.CancelFunc // of the wires' life
	slots   chan struct{}      // one for each call that is under way
	hub     *hub
	close   sync.Once
	plain   atomic.Bool // functions cannot be used here
}

// Dial connects to the Redis at a, and looks whether it can be used. The error matches
// [ErrUnreachable] or [ErrUnfit].
func Dial(ctx context.Context, a Address) (*Link, error) {
	life, end := context.WithCancel(context.Background())
	l := &Link{
		address: a,
		name:    a.String(),
		wires:   &wires{life: life, unix: a.unix, timeout: a.Timeout, open: map[*wire]struct{}{}},
		end:     end,
		slots:   make(chan struct{}, maxCalls),
	}
	l.hub = newHub(l)
	if err := l.open(ctx); err != nil {
		err = l.unusable(err)
		l.Close()
		return nil, err
	}
	return l, nil
}

// open makes the client. rueidis takes no context for that: should it end, the connections are
// cut, and the client is there at once.
func (l *Link) open(ctx context.Context) error {
	o, err := l.options()
	if err != nil {
		return &Error{Fault: FaultUnfit, at: l.name, what: err.Error(), hint: "correct the file, or the parameter that names it", cause: err}
	}
	made := make(chan error, 1)
	go func() {
		client, err := rueidis.NewClient(o)
		l.client = client // there may be one, of no use, beside an error
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

// unusable is the error of Dial: with no script in play, what is not understood is unfit.
func (l *Link) unusable(err error) error {
	e := l.fail(err)
	if e.Fault == FaultScript {
		e.Fault = FaultUnfit
		e.what = strings.Replace(e.what, "the script failed", "Redis refuses the connection", 1)
	}
	return e
}

// fail wraps what rueidis says. Old servers quote the arguments of commands they do not
// know, and these can be a password: then its words go no further.
func (l *Link) fail(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if l.wires.life.Err() != nil && !errors.Is(err, ErrClosed) && Classify(err) == FaultUnreachable && !isContext(err) {
		err = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	v := judge(err)
	if l.address.TLS {
		switch v.hint {
		case slowHint:
			v.hint = slowHintTLS
		case goneHint:
			v.hint = goneHintTLS
		}
	}
	e := &Error{Fault: v.fault, at: l.name, cause: err}
	text := err.Error()
	for _, s := range []secret{l.address.password, l.address.sentinelPassword} {
		if s.text != nil && strings.Contains(text, *s.text) {
			e.cause = nil
			v.detail = strings.ReplaceAll(v.detail, *s.text, stars)
		}
	}
	e.what = v.text()
	e.hint = strings.ReplaceAll(v.hint, "PREFIX", l.address.Prefix)
	return e
}

func isContext(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// Address returns what the link was dialled with.
func (l *Link) Address() Address { return l.address }

// Server returns the name and version of the server, such as "Redis 7.0.15".
func (l *Link) Server() string { return l.server.String() }

// Close ends the link. Calls that wait for an answer get [ErrClosed]; nothing of the link runs any
// more when it returns, but for goroutines of rueidis that end by themselves: those that had just begun to look
// at a cluster's nodes anew, within seconds.
func (l *Link) Close() {
	l.close.Do(func() {
		l.end()
		l.wires.cut()
		l.hub.close()
		if l.client != nil {
			l.client.Close()
		}
		for range cap(l.slots) { // every call has ended when all places are ours
			l.slots <- struct{}{}
		}
	})
}
