package redisconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
)

func TestRun(t *testing.T) {
	t.Parallel()
	l := open(t, redisrun.New(t).URL())
	binary := strings.Repeat("\x00\r\n\xff", 50_000) // larger than any buffer
	if got, err := l.Run(bounded(t), echo, "k", binary, "more"); err != nil || got != "k="+binary {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	if got, err := l.Run(context.Background(), echo, "", ""); err != nil || got != "=" {
		t.Errorf("%q, %v", got, err)
	}
	both := NewScript("return KEYS[1] .. KEYS[2] .. ARGV[1]")
	for range 2 { // sent, then named
		if got, err := l.RunKeys(bounded(t), both, []string{"{k}1", "{k}2"}, "x"); err != nil || got != "{k}1{k}2x" {
			t.Errorf("%q, %v", got, err)
		}
	}
	if got := l.Server(); !strings.HasPrefix(got, "Redis ") && !strings.HasPrefix(got, "Valkey ") {
		t.Errorf("server %q", got)
	}
	for source, says := range map[string]string{
		"error('boom')": "boom",
		"return redis.error_reply('MINE is wrong')": "MINE is wrong",
		"return false":    "returned nothing",
		"return 1":        "something else than a string",
		"return {'a'}":    "something else than a string",
		"return":          "returned nothing",
		"this is not Lua": "compil",
	} {
		_, err := l.Run(bounded(t), NewScript(source), "k")
		expect(t, err, FaultScript, says)
	}
}

// A server forgets scripts when it is told to, and when it is restarted.
func TestUnknownScriptIsSentAgain(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL())
	counted(t, l, "k", "1")
	counted(t, l, "k", "2")
	if _, err := server.Do(bounded(t), "SCRIPT", "FLUSH"); err != nil {
		t.Fatal(err)
	}
	counted(t, l, "k", "3")
	if got, err := l.Run(bounded(t), value, "k"); err != nil || got != "3" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestManyCallers(t *testing.T) {
	t.Parallel()
	l := open(t, redisrun.New(t).URL())
	var wg sync.WaitGroup
	for i := range 3 * maxCalls {
		wg.Go(func() {
			key, arg := fmt.Sprint("k", i), fmt.Sprint(i)
			if got, err := l.Run(bounded(t), echo, key, arg); err != nil || got != key+"="+arg {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	wg.Wait()
}

func TestEndedContextSendsNothing(t *testing.T) {
	t.Parallel()
	l := open(t, redisrun.New(t).URL())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := l.Run(ctx, count, "k")
	expect(t, err, FaultUnreachable, "the caller left")
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	counted(t, l, "k", "1")
}

// A call without a reply may have been carried out, so Run does not repeat it. Its caller knows whether that is safe.
func TestLostReplyIsNotRepeated(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	proxy := newCutter(t, server.Addr())
	l := open(t, "redis://"+proxy.Addr().String())
	counted(t, l, "k", "1")
	proxy.swallow()
	_, err := l.Run(bounded(t), count, "k")
	expect(t, err, FaultUnreachable, "closed before Redis answered")
	counted(t, l, "k", "3") // it did run, once; and the link is whole again
}

func TestRunAfterRestart(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL())
	counted(t, l, "k", "1")
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error { // the first may find out that the connection is gone
		_, err := l.Run(bounded(t), count, "k")
		if Classify(err) != FaultUnreachable {
			t.Fatalf("%v: %v", Classify(err), err)
		}
		if !strings.Contains(Why(err), "is it running there?") {
			return err
		}
		return nil
	})
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	counted(t, l, "k", "1") // on a server that knows neither key nor script
}

func TestClosedLink(t *testing.T) {
	t.Parallel()
	l := open(t, redisrun.New(t).URL())
	counted(t, l, "k", "1")
	l.Close()
	l.Close()
	for range 2 * maxCalls {
		_, err := l.Run(context.Background(), count, "k")
		expect(t, err, FaultClosed, "closed")
	}
	_, err := l.Subscribe(bounded(t), "c", func(string) {}, nil)
	expect(t, err, FaultClosed, "closed")
}
