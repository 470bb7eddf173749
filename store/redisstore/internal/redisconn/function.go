package redisconn

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/redis/rueidis"
)

// NewFunction returns a script whose source defines main(KEYS, ARGV, passing). From Redis 7 on it is loaded as a function:
// its definitions are made once instead of with every call, which is most of the work of a long script. Where functions
// cannot be used it runs like any script. passing is then true: its variables are gone when it returns.
//
// The name of the function includes the hash of the source, so that versions do not interfere with each other.
func NewFunction(source string) *Script {
	s := NewScript(source + "return main(KEYS, ARGV, true)\n")
	s.function = "sluice_" + s.sha[:16]
	s.library = "#!lua name=" + s.function + "\n" + source + "redis.register_function('" + s.function + "', main)\n"
	return s
}

// callFunction calls a function. If the server does not know it, nothing has run, and callFunction loads it and calls it
// again. usable is false if functions cannot be used on this server.
func (l *Link) callFunction(ctx context.Context, s *Script, keys, args []string) (reply string, err error, usable bool) { //nolint:revive // the error is not the last thing to say
	for range 2 {
		reply, err = l.call(ctx, l.client.B().Fcall().Function(s.function).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
		if !replied(err, "function not found") {
			break
		}
		if failed := l.loadFunction(ctx, s); failed != nil {
			if replied(failed) {
				l.plain.Store(true) // this user may not load functions, or the server has none
				return "", nil, false
			}
			return "", failed, true
		}
	}
	if replied(err, "noperm", "unknown command") {
		l.plain.Store(true)
		return "", nil, false
	}
	return reply, err, true
}

// loadFunction loads a function, in a cluster on every node that takes writes.
func (l *Link) loadFunction(ctx context.Context, s *Script) error {
	if l.address.Mode != Cluster {
		_, err := l.call(ctx, l.client.B().FunctionLoad().Replace().FunctionCode(s.library).Build())
		return err
	}
	var failed error
	loaded := false
	for _, node := range l.client.Nodes() {
		err := node.Do(ctx, node.B().FunctionLoad().Replace().FunctionCode(s.library).Build()).Error()
		if err == nil {
			loaded = true
		} else if !replied(err, "readonly") {
			failed = err
		}
	}
	if loaded { // a node that was out of reach gets it with a later call
		return nil
	}
	return failed
}

// replied reports whether err is an error reply of the server that contains one of words, or any if there are none.
func replied(err error, words ...string) bool {
	reply, ok := errors.AsType[*rueidis.RedisError](err)
	return ok && (len(words) == 0 || slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(reply.Error()), w) }))
}
