package redisconn

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisfault"
)

// Script is a Lua script that returns one string.
type Script struct {
	source, sha       string
	function, library string // its name and source as a function; "": it is none
}

// NewScript returns the script with that source.
func NewScript(source string) *Script {
	sum := sha1.Sum([]byte(source)) // how Redis names scripts, not for security
	return &Script{source: source, sha: hex.EncodeToString(sum[:])}
}

// Run runs s with one key and returns the string that the script returns.
//
// Run names the script by its hash. If the server does not know the script, it has run nothing, and Run sends the source.
// It repeats nothing else. If ctx ends or the connection breaks before the reply, the script may have run: the fault is
// FaultUnreachable. Run returns by the deadline of ctx. It may notice an earlier cancellation only after
// [Address.Timeout].
//
// The memory of key and args must not be reused, even after Run returned an error: they are kept until the server is done
// with the call.
func (l *Link) Run(ctx context.Context, s *Script, key string, args ...string) (string, error) {
	return l.RunKeys(ctx, s, []string{key}, args...)
}

// RunKeys is Run with several keys. In a cluster they must share a hash tag.
func (l *Link) RunKeys(ctx context.Context, s *Script, keys []string, args ...string) (string, error) {
	if s.function != "" && l.server.hasFunctions() && !l.plain.Load() {
		if reply, err, usable := l.callFunction(ctx, s, keys, args); usable {
			if err != nil {
				return "", l.failed(ctx, err)
			}
			return reply, nil
		}
	}
	n := int64(len(keys))
	reply, err := l.call(ctx, l.client.B().Evalsha().Sha1(s.sha).Numkeys(n).Key(keys...).Arg(args...).Build())
	if replied(err, "noscript") {
		reply, err = l.call(ctx, l.client.B().Eval().Script(s.source).Numkeys(n).Key(keys...).Arg(args...).Build())
	}
	if err != nil {
		return "", l.failed(ctx, err)
	}
	return reply, nil
}

// RunWithin is RunKeys with a deadline instead of a context.
func (l *Link) RunWithin(within time.Duration, s *Script, keys []string, args ...string) (string, error) {
	return l.RunKeys(untilTime{context.Background(), time.Now().Add(within)}, s, keys, args...)
}

// untilTime is a context that has a deadline but no timer, which would cost a call as much as half of the encoding. A
// connection has its own. Code that waits for Done needs [withTimer].
type untilTime struct {
	context.Context
	at time.Time
}

func (u untilTime) Deadline() (time.Time, bool) { return u.at, true }

func (u untilTime) Err() error {
	if time.Now().After(u.at) {
		return context.DeadlineExceeded
	}
	return nil
}

// withTimer returns a context with the deadline of ctx whose Done works.
func withTimer(ctx context.Context) (context.Context, context.CancelFunc) {
	if u, ok := ctx.(untilTime); ok {
		return context.WithDeadline(u.Context, u.at)
	}
	return ctx, func() {}
}

// failed returns the error of a script. If a single server takes no writes, failed renews the connections: the host name or
// address may stand for the current master and have moved to another server, which only new connections reach. Sentinels
// and clusters announce a new master themselves.
func (l *Link) failed(ctx context.Context, err error) error {
	if l.address.Mode == Single && redisfault.IsReplica(err) && l.wires.renew() {
		_, _ = l.call(ctx, l.client.B().Ping().Build()) // takes the error of the closed connection, so that the next call does not
	}
	return l.fail(err)
}

// call sends a command whose reply is a string.
//
// rueidis does not always notice the end of a context: not while another caller dials, and not when the queue of a
// connection is full of calls whose callers have left. So a command gets a goroutine of its own and no context, and the
// timeout of the connection ends it if it is stuck. While calls are answered (wires.calm), call sends the command itself:
// on two cores a goroutine makes a call to a nearby Redis take 85 us instead of 50. It never does so in a cluster, where
// one flag cannot tell for many connections.
func (l *Link) call(ctx context.Context, command rueidis.Completed) (string, error) {
	if l.address.Mode != Cluster {
		return l.callOnce(ctx, command)
	}
	ctx, cancel := withTimer(ctx)
	defer cancel()
	command = command.Pin() // may be sent again
	for patience := unsettled; ; patience -= settling {
		reply, err := l.callOnce(ctx, command)
		if patience <= 0 || !isMoved(err) {
			return reply, err
		}
		select {
		case <-time.After(settling):
		case <-ctx.Done():
			return reply, err
		}
	}
}

// While a slot moves, two nodes of a cluster may redirect callers to each other, until both know its new place. Nothing was
// run then, so call repeats the command every settling, for up to unsettled.
const (
	unsettled = 3 * time.Second
	settling  = 100 * time.Millisecond
)

// isMoved reports whether the last reply was still a redirection, after maxMoves of them.
func isMoved(err error) bool {
	answer, ok := errors.AsType[*rueidis.RedisError](err)
	if !ok {
		return false
	}
	_, moved := answer.IsMoved()
	_, ask := answer.IsAsk()
	return moved || ask
}

// callOnce sends a command once, following redirections.
func (l *Link) callOnce(ctx context.Context, command rueidis.Completed) (string, error) {
	if err := l.enter(ctx); err != nil {
		return "", err
	}
	if l.wires.calm.Load() && l.address.Mode != Cluster {
		if len(l.inFlight) > maxWires/2 { // it may have to wait for a connection
			var cancel context.CancelFunc
			ctx, cancel = withTimer(ctx)
			defer cancel()
		}
		result := l.client.Do(ctx, command)
		l.leave(result.NonRedisError())
		return result.ToString()
	}
	ctx, cancel := withTimer(ctx)
	defer cancel()
	c := calls.Get().(*call)
	c.link, c.command = l, command
	go c.do()
	select {
	case <-c.done:
	case <-ctx.Done():
		return "", ctx.Err() // the goroutine keeps c
	}
	result := c.result
	*c = call{done: c.done}
	calls.Put(c)
	return result.ToString()
}

// call is a command that may outlive its caller.
type call struct {
	link    *Link
	command rueidis.Completed
	result  rueidis.RedisResult
	done    chan struct{}
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

func (c *call) do() {
	c.result = c.link.client.Do(context.Background(), c.command)
	c.link.leave(c.result.NonRedisError())
	c.done <- struct{}{}
}

// enter waits while maxCalls are under way.
func (l *Link) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.inFlight <- struct{}{}:
		return nil
	default:
	}
	ctx, cancel := withTimer(ctx)
	defer cancel()
	select {
	case l.inFlight <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.wires.life.Done():
		return ErrClosed
	}
}

// leave ends what enter began, and records in wires.calm whether the call was answered.
func (l *Link) leave(err error) {
	if l.wires.calm.Load() != (err == nil) {
		l.wires.calm.Store(err == nil)
	}
	<-l.inFlight
}
