package redisconn

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// Script is a Lua script that returns one string. It may begin with a line such as #!lua, which
// servers before Redis 7 do not get to see.
type Script struct {
	text, old         form
	function, library string // as which it is called where that is possible
}

// form is a script as a server is sent it.
type form struct{ source, sha string }

// NewScript returns the script with that source.
func NewScript(source string) *Script {
	s := &Script{text: newForm(source)}
	s.old = s.text
	if strings.HasPrefix(source, "#!") {
		s.old = newForm("--" + source) // a comment, so that line numbers stay
	}
	return s
}

func newForm(source string) form {
	sum := sha1.Sum([]byte(source)) // which is how Redis names scripts; it guards nothing
	return form{source, hex.EncodeToString(sum[:])}
}

// Run runs s with one key, and returns the string that it returns.
//
// The script is named by its hash; a server that does not know it is sent the source, and
// has run nothing until then. Nothing else is repeated. An answer that is not there when ctx ends
// leaves open whether the script ran, as does a connection that breaks: FaultUnreachable. Run
// returns by the deadline of ctx; that ctx was cancelled before, it may see only when
// [Address.Timeout] is over.
//
// Key and args are kept until the call is over for the server, also when Run has returned an
// error: they must not lie in memory that is used again.
func (l *Link) Run(ctx context.Context, s *Script, key string, args ...string) (string, error) {
	return l.RunKeys(ctx, s, []string{key}, args...)
}

// RunKeys is Run with several keys. In a cluster they must share a hash tag.
func (l *Link) RunKeys(ctx context.Context, s *Script, keys []string, args ...string) (string, error) {
	if s.function != "" && l.server.seven() && !l.plain.Load() {
		if reply, err, usable := l.callFunction(ctx, s, keys, args); usable {
			if err != nil {
				return "", l.failed(ctx, err)
			}
			return reply, nil
		}
	}
	f := &s.text
	if !l.server.seven() {
		f = &s.old
	}
	n := int64(len(keys))
	reply, err := l.call(ctx, l.client.B().Evalsha().Sha1(f.sha).Numkeys(n).Key(keys...).Arg(args...).Build())
	if unknownScript(err) {
		reply, err = l.call(ctx, l.client.B().Eval().Script(f.source).Numkeys(n).Key(keys...).Arg(args...).Build())
	}
	if err != nil {
		return "", l.failed(ctx, err)
	}
	return reply, nil
}

// RunReadOnly is Run for a script that changes nothing, and is refused if it tries (from Redis 7
// on). It works also where no writes are taken: on a replica, without memory, without
// enough replicas, if the script says #!lua flags=no-writes.
func (l *Link) RunReadOnly(ctx context.Context, s *Script, key string, args ...string) (string, error) {
	if !l.server.seven() { // there is no such command
		return l.Run(ctx, s, key, args...)
	}
	f := &s.text
	reply, err := l.call(ctx, l.client.B().EvalshaRo().Sha1(f.sha).Numkeys(1).Key(key).Arg(args...).Build())
	if unknownScript(err) {
		reply, err = l.call(ctx, l.client.B().EvalRo().Script(f.source).Numkeys(1).Key(key).Arg(args...).Build())
	}
	if err != nil {
		return "", l.failed(ctx, err)
	}
	return reply, nil
}

// failed is the error of a script. A server that takes no writes is a reason to connect anew: a
// name or an address that stands for whoever is master may have moved on, and only new
// connections get there. Sentinels and clusters tell.
func (l *Link) failed(ctx context.Context, err error) error {
	if l.address.Mode == Single && judge(err) == answers["READONLY"] && l.wires.renew() {
		_, _ = l.call(ctx, l.client.B().Ping().Build()) // finds out that its connection is closed, so that the next call need not
	}
	return l.fail(err)
}

func unknownScript(err error) bool {
	answer, ok := errors.AsType[*rueidis.RedisError](err)
	return ok && answer.IsNoScript()
}

// call sends a command whose answer is a string.
//
// rueidis does not always see a context end: not while somebody else dials, and not when the queue
// of a connection is full of calls whose callers have left. So, unless all is well, a command
// gets a goroutine and no context, and what is stuck is ended by the connection's own timeout.
// While all is well it is sent from here: on two cores a goroutine makes a call to a Redis nearby
// take 85 us instead of 50. The connections of a cluster are many, and not all are well or unwell.
func (l *Link) call(ctx context.Context, command rueidis.Completed) (string, error) {
	if l.address.Mode != Cluster {
		return l.callOnce(ctx, command)
	}
	command = command.Pin() // it may be sent again
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

// While a slot moves, two nodes of a cluster can send callers to each other until they have heard of each other. Nothing
// was run then: the call is made again, for up to unsettled.
const (
	unsettled = 3 * time.Second
	settling  = 100 * time.Millisecond
)

// isMoved reports whether a node said that another one has the key, after as many redirections as are followed.
func isMoved(err error) bool {
	answer, ok := errors.AsType[*rueidis.RedisError](err)
	if !ok {
		return false
	}
	_, moved := answer.IsMoved()
	_, ask := answer.IsAsk()
	return moved || ask
}

// callOnce makes a call once, wherever redirections lead.
func (l *Link) callOnce(ctx context.Context, command rueidis.Completed) (string, error) {
	if err := l.enter(ctx); err != nil {
		return "", err
	}
	if l.wires.calm.Load() && l.address.Mode != Cluster {
		result := l.client.Do(ctx, command)
		l.leave(result.NonRedisError())
		return result.ToString()
	}
	c := calls.Get().(*call)
	c.link, c.command = l, command
	go c.do()
	select {
	case <-c.done:
	case <-ctx.Done():
		return "", ctx.Err() // and c is left to the goroutine
	}
	result := c.result
	*c = call{done: c.done}
	calls.Put(c)
	return result.ToString()
}

// call is one command that may outlive its caller.
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

// enter takes one of the places for calls.
func (l *Link) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-l.wires.life.Done():
		return ErrClosed
	}
}

// leave gives the place back, when the call is over, and notes whether it was answered.
func (l *Link) leave(err error) {
	if l.wires.calm.Load() != (err == nil) {
		l.wires.calm.Store(err == nil)
	}
	<-l.slots
}
