package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
	"github.com/sluicehq/sluice/store/redisstore/internal/redisconn"
)

// listener is the subscription on which a process hears that other processes' calls have decided its tickets.
type listener struct {
	cancel func()        // ends the subscription; nil: there is none
	trying chan struct{} // closed when the attempt under way is over; nil: none is
	after  time.Duration // the uptime before which listen does not try again
	err    error         // why the server refuses to subscribe
}

const (
	listenWithin = 300 * time.Millisecond
	listenAgain  = time.Second
)

// listen subscribes before a request of this process may wait. If the server is out of reach, listen returns nil and the
// call that follows notices. Without a subscription, keepWaiting still polls every few seconds.
func (st *state) listen(ctx context.Context) error {
	if st.store.fixed {
		return nil
	}
	e := &st.listener
	st.mu.Lock()
	if e.cancel != nil || st.closed || e.after > uptime() {
		defer st.mu.Unlock()
		return e.err
	}
	if trying := e.trying; trying != nil {
		st.mu.Unlock()
		select {
		case <-trying:
		case <-ctx.Done():
		}
		return nil
	}
	trying := make(chan struct{})
	e.trying = trying
	st.mu.Unlock()

	within, end := context.WithTimeout(ctx, listenWithin)
	cancel, err := st.store.redis.Subscribe(within, st.channel()+strconv.FormatUint(st.store.process, 10), st.heard, st.missed)
	end()

	st.mu.Lock()
	defer st.mu.Unlock()
	e.trying, e.err = nil, nil
	close(trying)
	switch faultOf(err) {
	case redisconn.FaultNone:
		if st.closed {
			cancel()
			return store.ErrClosed
		}
		e.cancel = cancel
	case redisconn.FaultUnfit, redisconn.FaultScript:
		e.err, e.after = unavailable(err), uptime()+listenAgain
	case redisconn.FaultClosed:
		return store.ErrClosed
	default:
		if ctx.Err() == nil {
			e.after = uptime() + listenAgain
		}
	}
	return e.err
}

// users returns the pattern of the channels on which processes that stay show that they use the pool. The channels of all
// databases of a server are in one space, so they name the database.
func (st *state) users() string {
	escaped := strings.NewReplacer("\\", "\\\\", "*", "\\*", "?", "\\?", "[", "\\[", "]", "\\]").Replace(st.channel())
	return fmt.Sprintf("%suser:%d:*", escaped, st.store.database)
}

// user returns this process's channel of them.
func (st *state) user() string {
	return fmt.Sprintf("%suser:%d:%d", st.channel(), st.store.database, st.store.process)
}

// show subscribes to that channel until the pool is no longer used. A message says that another process has created the
// pool, which was lost then.
func (st *state) show() {
	for {
		ctx, end := context.WithTimeout(st.life, st.store.timeout)
		cancel, err := st.store.redis.Subscribe(ctx, st.user(), func(string) { st.check(soonTouch) }, func() { st.check(0) })
		end()
		if err == nil {
			<-st.life.Done()
			cancel()
			return
		}
		if !sleep.For(st.life, listenAgain) {
			return
		}
	}
}

// check makes a call without operations, which notices whether the pool was lost. It waits before that: the process that
// created the pool may be a one-shot command, whose request is granted at once.
func (st *state) check(wait time.Duration) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return
	}
	st.running.Go(func() {
		if sleep.For(st.life, wait) {
			_ = st.apply(st.life, nil) // an outage begins if it fails
		}
	})
}

// heard reads a message: sessions and numbers of tickets that were decided.
func (st *state) heard(message string) {
	in := reader{b: []byte(message)}
	n := in.array()
	if n > len(message) {
		return
	}
	ids := make([]store.ID, 0, n/2)
	for range n / 2 {
		ids = append(ids, store.ID{Session: uint64(in.int()), N: uint64(in.int())}) //nolint:gosec // tell ignores unknown sessions
	}
	if !in.bad {
		st.tell(ids)
	}
}

// missed makes all waiting callers poll, because messages may have been lost.
func (st *state) missed() {
	st.mu.Lock()
	ids := st.proc.Queued()
	st.mu.Unlock()
	st.tell(ids)
}

// messages returns channels and messages that tell other processes of decided tickets, in the form of the script. It
// returns the tickets of this process apart.
func (st *state) messages(decided []store.ID) (list string, mine []store.ID) {
	slices.SortStableFunc(decided, func(a, b store.ID) int { return cmp.Compare(outage.Of(a.Session), outage.Of(b.Session)) })
	var b []byte
	n := 0
	for len(decided) > 0 {
		process, k := outage.Of(decided[0].Session), 1
		for k < len(decided) && outage.Of(decided[k].Session) == process {
			k++
		}
		if process == st.store.process {
			mine = append(mine, decided[:k]...)
		} else {
			text := appendArray(nil, 2*k)
			for _, id := range decided[:k] {
				text = appendInt(appendInt(text, int64(id.Session)), int64(id.N)) //nolint:gosec // both are below 2^53
			}
			b = appendString(appendString(b, st.channel()+strconv.FormatUint(process, 10)), string(text))
			n += 2
		}
		decided = decided[k:]
	}
	return string(append(appendArray(nil, n), b...)), mine
}
