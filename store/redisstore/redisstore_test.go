package redisstore

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/sharedlog/logtest"
)

func TestLog(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	logtest.Run(t, func(t *testing.T) logtest.Rig { return rig(t, s.URL()) })
}

func TestSameAsAList(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	logtest.Differential(t, func(t *testing.T) logtest.Rig { return rig(t, s.URL()) }, 1, 20)
}

// open opens an engine that is closed when the test ends.
func open(t *testing.T, url string) *Engine {
	t.Helper()
	e, err := OpenEngine(t.Context(), patient(url))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// patient adds a timeout to a URL that suits a busy machine.
func patient(url string) string {
	switch {
	case strings.Contains(url, "timeout="):
		return url
	case strings.Contains(url, "?"):
		return url + "&timeout=30s"
	}
	return url + "?timeout=30s"
}

// rig is a server with the suite's faults, which are inflicted by commands.
func rig(t *testing.T, url string) logtest.Rig {
	url = patient(url)
	admin := open(t, url)
	eval := func(l *log, source string, args ...string) error {
		c := admin.client.B().Eval().Script(source).Numkeys(1).Key(l.head()).Arg(args...).Build()
		return admin.client.Do(context.Background(), c).Error()
	}
	return logtest.Rig{
		Connect: func() (sharedlog.Engine, error) { return OpenEngine(context.Background(), url) },
		Lose: func(pool string) error {
			l := admin.Log(pool).(*log)
			return eval(l, "for _, k in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', k) end return 1", l.head()+"*")
		},
		LoseTail: func(pool string, at sharedlog.Position, n int64) error {
			l := admin.Log(pool).(*log)
			return eval(l, "return redis.call('SET', ARGV[1], redis.call('GETRANGE', ARGV[1], 0, -1 - ARGV[2]))",
				l.segment(at).key, strconv.FormatInt(n, 10))
		},
	}
}
