package redisconn

import (
	"context"
	"errors"
	"strings"

	"github.com/redis/rueidis"
)

// NewFunction returns a script whose source defines main(KEYS, ARGV, passing); passing tells that what it
// keeps is gone when it returns. From Redis 7 on it is loaded as a
// function: what it defines is made once, and not with every call, which for a long script is most of
// the work. Where functions cannot be used it is run as any script.
//
// Its name has the hash of its source, so that versions do not get in each other's way.
func NewFunction(source string) *Script {
	s := NewScript(source + "return main(KEYS, ARGV, true)\n")
	s.function = "sluice_" + s.text.sha[:16]
	s.library = "#!lua name=" + s.function + "\n" + source + "redis.register_function('" + s.function + "', main)\n"
	return s
}

// callFunction calls a function, loading it where it is not known: it has not run then. It
// reports false if functions cannot be used here.
func (l *Link) callFunction(ctx context.Context, s *Script, keys, args []string) (reply string, err error, usable bool) { //nolint:revive // the error is not the last thing to say
	for range 2 {
		reply, err = l.call(ctx, l.client.B().Fcall().Function(s.function).Numkeys(int64(len(keys))).Key(keys...).Arg(args...).Build())
		if !l.answered(err, "function not found") {
			break
		}
		if failed := l.loadFunction(ctx, s); failed != nil {
			if isAnswer(failed) {
				l.plain.Store(true) // not allowed, or a server without them
				return "", nil, false
			}
			return "", failed, true
		}
	}
	if l.answered(err, "noperm", "unknown command") {
		l.plain.Store(true)
		return "", nil, false
	}
	return reply, err, true
}

// loadFunction makes a function known: in a cluster, to every node that takes writes.
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
		} else if !l.answered(err, "readonly") {
			failed = err
		}
	}
	if loaded { // one that could not be reached does not know it either way
		return nil
	}
	return failed
}

func isAnswer(err error) bool {
	_, ok := errors.AsType[*rueidis.RedisError](err)
	return ok
}

// answered reports whether err is an answer of the server that has one of these words in it.
func (l *Link) answered(err error, words ...string) bool {
	answer, ok := errors.AsType[*rueidis.RedisError](err)
	if !ok {
		return false
	}
	text := strings.ToLower(answer.Error())
	for _, w := range words {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
