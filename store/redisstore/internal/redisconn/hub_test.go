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

var publisher = NewScript("return tostring(redis.call('PUBLISH', ARGV[1], ARGV[2]))")

func publish(t *testing.T, l *Link, channel, message string) (receivers string) {
	t.Helper()
	n, err := l.Run(bounded(t), publisher, "k", channel, message)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// listen subscribes until the test ends.
func listen(t *testing.T, l *Link, channel string, got func(string), missed func()) (cancel func()) {
	t.Helper()
	cancel, err := l.Subscribe(bounded(t), channel, got, missed)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cancel)
	return cancel
}

func TestSubscribe(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL())
	a, b, c := make(chan string, 10), make(chan string, 10), make(chan string, 10)
	never := func() { t.Error("nothing was missed") }
	cancelA := listen(t, l, "one", func(m string) { a <- m }, never)
	listen(t, l, "one", func(m string) { b <- m }, never)
	cancelC := listen(t, l, "two", func(m string) { c <- m }, never)

	if n := publish(t, l, "one", "x\r\n\x00"); n != "1" {
		t.Errorf("%s connections listen to one channel, want 1", n)
	}
	if got := receive(t, a) + receive(t, b); got != "x\r\n\x00x\r\n\x00" {
		t.Errorf("%q", got)
	}
	publish(t, l, "two", "y")
	if got := receive(t, c); got != "y" {
		t.Errorf("%q", got)
	}

	cancelA()
	cancelA()
	publish(t, l, "one", "z")
	if got := receive(t, b); got != "z" || len(a) != 0 {
		t.Errorf("%q, and %d for the one who has left", got, len(a))
	}
	cancelC()
	eventually(t, func() error {
		if n := publish(t, l, "two", "y"); n != "0" {
			return fmt.Errorf("%s listen", n)
		}
		return nil
	})
	// Again, on a connection that has the other channel.
	listen(t, l, "two", func(m string) { c <- m }, never)
	publish(t, l, "two", "again")
	if got := receive(t, c); got != "again" {
		t.Errorf("%q", got)
	}
}

func TestOneConnectionForAllChannels(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL())
	connections := func() int {
		list, err := server.Do(bounded(t), "CLIENT", "LIST")
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(list, "name=sluice ")
	}
	counted(t, l, "k", "1")
	before := connections()
	if before > 2 { // rueidis' own and that of the call
		t.Errorf("%d connections without a subscription", before)
	}
	const channels = 5 * maxNamed
	heard := make(chan string, channels)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var cancels []func()
	for i := range channels {
		wg.Go(func() {
			cancel, err := l.Subscribe(bounded(t), fmt.Sprint("c", i), func(m string) { heard <- m }, nil)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			cancels = append(cancels, cancel)
		})
	}
	wg.Wait()
	for i := range channels {
		publish(t, l, fmt.Sprint("c", i), fmt.Sprint(i))
	}
	seen := map[string]bool{}
	for range channels {
		seen[receive(t, heard)] = true
	}
	if len(seen) != channels {
		t.Errorf("%d messages of %d", len(seen), channels)
	}
	if n := connections(); n != before+1 {
		t.Errorf("%d connections with %d subscriptions", n, channels)
	}
	for _, cancel := range cancels {
		cancel()
	}
	eventually(t, func() error {
		if n := connections(); n != before {
			return fmt.Errorf("%d connections after the last subscription", n)
		}
		return nil
	})
}

func TestSubscriptionSurvivesARestart(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL())
	heard, missed := make(chan string, 100), make(chan string, 100)
	for _, channel := range []string{"one", "two"} {
		listen(t, l, channel, func(m string) { heard <- channel + m }, func() { missed <- channel })
	}
	for round := range 2 {
		if err := server.Kill(); err != nil {
			t.Fatal(err)
		}
		_, err := l.Subscribe(bounded(t), "three", func(string) {}, nil)
		expect(t, err, FaultUnreachable, "")
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		if got := receive(t, missed) + receive(t, missed); got != "onetwo" && got != "twoone" {
			t.Errorf("round %d: %s missed", round, got)
		}
		if _, err := server.Do(bounded(t), "PUBLISH", "one", "x"); err != nil { // heard from the moment that is told on
			t.Fatal(err)
		}
		if got := receive(t, heard); got != "onex" {
			t.Errorf("round %d: %q", round, got)
		}
	}
}

func TestSubscribeRefused(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	if _, err := server.Do(bounded(t), "ACL", "SETUSER", "me", "on", ">pw", "~*", "&sluice:*", "+@all"); err != nil {
		t.Fatal(err)
	}
	l := open(t, "redis://me:pw@"+server.Addr())
	heard := make(chan string, 1)
	listen(t, l, "sluice:c", func(m string) { heard <- m }, func() { t.Error("the other was lost") })
	_, err := l.Subscribe(bounded(t), "other:c", func(string) {}, nil)
	expect(t, err, FaultUnfit, "&sluice:*")
	publish(t, l, "sluice:c", "x")
	if got := receive(t, heard); got != "x" {
		t.Errorf("%q", got)
	}
}

// Redis ends the connections of a user who loses the right to a channel.
func TestRightsTakenAndGivenBack(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	rights := func(rules ...string) {
		t.Helper()
		if _, err := server.Do(bounded(t), append([]string{"ACL", "SETUSER", "me", "on", ">pw", "~*", "+@all", "resetchannels"}, rules...)...); err != nil {
			t.Fatal(err)
		}
	}
	rights("&sluice:*", "&b")
	l := open(t, "redis://me:pw@"+server.Addr())
	heard, missed := make(chan string, 10), make(chan string, 10)
	for _, channel := range []string{"sluice:a", "b"} {
		listen(t, l, channel, func(m string) { heard <- channel + m }, func() { missed <- channel })
	}
	rights("&sluice:*")
	if got := receive(t, missed); got != "sluice:a" {
		t.Errorf("%s is heard again", got)
	}
	rights("&sluice:*", "&b")
	if got := receive(t, missed); got != "b" {
		t.Errorf("%s is heard again", got)
	}
	if _, err := server.Do(bounded(t), "PUBLISH", "b", "x"); err != nil {
		t.Fatal(err)
	}
	if got := receive(t, heard); got != "bx" || len(missed) != 0 {
		t.Errorf("%q, and %d more were missed", got, len(missed))
	}
}

func TestSubscribeGivesUp(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	l := open(t, server.URL())
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := l.Subscribe(ctx, "c", func(string) {}, nil); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	heard := make(chan string, 1)
	listen(t, l, "c", func(m string) { heard <- m }, nil)
	publish(t, l, "c", "x")
	receive(t, heard)
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 1)
	defer cancel()
	_, err := l.Subscribe(ctx, "d", func(string) {}, nil)
	expect(t, err, FaultUnreachable, "did not answer in time")
	if err := server.Resume(); err != nil {
		t.Fatal(err)
	}
	publish(t, l, "c", "x")
	receive(t, heard)
}
