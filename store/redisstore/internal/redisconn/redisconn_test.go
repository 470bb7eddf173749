package redisconn

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/leaktest"
)

// TestMain checks that closed links leave nothing behind.
func TestMain(m *testing.M) { leaktest.Main(m) }

// within bounds what a test waits for. It is far above what anything here takes.
const within = 30 * time.Second

func bounded(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	t.Cleanup(cancel)
	return ctx
}

// open dials a URL and closes the link when the test ends.
func open(t *testing.T, url string) *Link {
	t.Helper()
	a, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Dial(bounded(t), a)
	if err != nil {
		t.Fatalf("%v (%s)", err, Why(err))
	}
	t.Cleanup(l.Close)
	return l
}

// refuse dials a URL that must not work, and returns the error.
func refuse(t *testing.T, url string) error {
	t.Helper()
	a, err := Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	l, err := Dial(bounded(t), a)
	if err == nil {
		l.Close()
		t.Fatalf("%s: it was taken", url)
	}
	return err
}

// expect checks what an error means, and that it says so.
func expect(t *testing.T, err error, fault Fault, says string) {
	t.Helper()
	if Classify(err) != fault || !strings.Contains(Why(err), says) {
		t.Errorf("%v: %q, want %v: %q", Classify(err), Why(err), fault, says)
	}
	sentinel := map[Fault]error{FaultUnreachable: ErrUnreachable, FaultNotRun: ErrUnreachable, FaultUnfit: ErrUnfit, FaultClosed: ErrClosed}
	for f, want := range sentinel {
		if errors.Is(err, want) != (want == sentinel[fault]) {
			t.Errorf("%v: match of %q, the error of %v, is wrong", err, want, f)
		}
	}
}

// eventually tries until there is no error.
func eventually(t *testing.T, try func() error) {
	t.Helper()
	end := time.Now().Add(within)
	for {
		err := try()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("it does not come: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// receive waits for something to come out of a channel.
func receive[T any](t *testing.T, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(within):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}

var (
	echo  = NewScript("return KEYS[1] .. '=' .. ARGV[1]")
	count = NewScript("#!lua\nreturn tostring(redis.call('INCR', KEYS[1]))")
	value = NewScript("#!lua flags=no-writes\nreturn redis.call('GET', KEYS[1]) or 'none'")
)

// counted runs count and wants a value.
func counted(t *testing.T, l *Link, key, want string) {
	t.Helper()
	if got, err := l.Run(bounded(t), count, key); err != nil || got != want {
		t.Errorf("count of %s: %q, %v, want %s", key, got, err, want)
	}
}
