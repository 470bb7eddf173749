package redisconn

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisrun"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  error
		want Fault
	}{
		{nil, FaultNone},
		{context.DeadlineExceeded, FaultUnreachable},
		{fmt.Errorf("x: %w", context.Canceled), FaultUnreachable},
		{io.EOF, FaultUnreachable},
		{syscall.ECONNREFUSED, FaultUnreachable},
		{syscall.ECONNRESET, FaultUnreachable},
		{errors.New("anything"), FaultUnreachable},
		{rueidis.ErrClosing, FaultUnreachable},
		{rueidis.ErrNoSlot, FaultNotRun},
		{rueidis.Nil, FaultScript},
		{ErrClosed, FaultClosed},
		{fmt.Errorf("x: %w", &Error{Fault: FaultUnfit}), FaultUnfit},
	} {
		if got := Classify(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
		if why := Why(c.err); (why == "") != (c.err == nil) && !strings.HasPrefix(fmt.Sprint(c.err), "x: ") {
			t.Errorf("%v: why %q", c.err, why)
		}
	}
	if got := fmt.Sprint(FaultNone, FaultClosed, Fault(99)); got != "none closed invalid" {
		t.Error(got)
	}
}

// A call that a server refuses for now has changed nothing, whether the server checks before the script (with #!lua) or at
// its first write.
func TestRefusedForNow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		begin, end []string
		says       string
	}{
		"memory":   {[]string{"CONFIG", "SET", "maxmemory", "1mb"}, []string{"CONFIG", "SET", "maxmemory", "0"}, "noeviction"},
		"replicas": {[]string{"CONFIG", "SET", "min-replicas-to-write", "1"}, []string{"CONFIG", "SET", "min-replicas-to-write", "0"}, "min-replicas-to-write"},
		"replica":  {[]string{"REPLICAOF", "127.0.0.1", "1"}, []string{"REPLICAOF", "NO", "ONE"}, "a replica and takes no writes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redisrun.New(t)
			l := open(t, server.URL())
			late := NewScript("local n = redis.call('GET', KEYS[1]) redis.call('SET', KEYS[1], 'x') redis.call('SET', KEYS[1], n or '0') return 'ok'")
			counted(t, l, "k", "1")
			if _, err := server.Do(bounded(t), c.begin...); err != nil {
				t.Fatal(err)
			}
			for _, s := range []*Script{count, late} {
				_, err := l.Run(bounded(t), s, "k")
				expect(t, err, FaultNotRun, c.says)
			}
			if _, err := server.Do(bounded(t), c.end...); err != nil {
				t.Fatal(err)
			}
			counted(t, l, "k", "2")
		})
	}
}

func TestReplicaWithoutMaster(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t, "replica-serve-stale-data no")
	l := open(t, server.URL())
	if _, err := server.Do(bounded(t), "REPLICAOF", "127.0.0.1", "1"); err != nil {
		t.Fatal(err)
	}
	_, err := l.Run(bounded(t), echo, "k", "a")
	expect(t, err, FaultNotRun, "lost its master")
	expect(t, refuse(t, server.URL()), FaultNotRun, "lost its master")
}

func TestLoading(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t, "enable-debug-command yes", "loading-process-events-interval-bytes 1024")
	l := open(t, server.URL())
	for i := range 200 {
		if _, err := l.Run(bounded(t), NewScript("redis.call('SET', KEYS[1], ARGV[1]) return ''"), fmt.Sprint("fill", i), strings.Repeat("x", 100+i)); err != nil {
			t.Fatal(err)
		}
	}
	counted(t, l, "k", "1")
	if _, err := server.Do(bounded(t), "CONFIG", "SET", "key-load-delay", "10000", "rdbcompression", "no"); err != nil {
		t.Fatal(err)
	}
	loaded := make(chan error, 1)
	go func() {
		_, err := server.Do(bounded(t), "DEBUG", "RELOAD")
		loaded <- err
	}()
	runs := 1
	eventually(t, func() error {
		_, err := l.Run(bounded(t), count, "k")
		if err == nil {
			runs++
			return errors.New("it does not load yet")
		}
		expect(t, err, FaultNotRun, "loading its data")
		return nil
	})
	if err := receive(t, loaded); err != nil {
		t.Fatal(err)
	}
	counted(t, l, "k", fmt.Sprint(runs+1))
}

func TestBusy(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t, "lua-time-limit 10")
	l := open(t, server.URL())
	counted(t, l, "k", "1")
	ended := make(chan error, 1)
	go func() {
		_, err := server.Do(bounded(t), "EVAL", "while true do end", "0")
		ended <- err
	}()
	runs := 1
	eventually(t, func() error {
		_, err := l.Run(bounded(t), count, "k")
		if err == nil {
			runs++
			return errors.New("it is not busy yet")
		}
		expect(t, err, FaultNotRun, "somebody's long script")
		return nil
	})
	if _, err := server.Do(bounded(t), "SCRIPT", "KILL"); err != nil {
		t.Fatal(err)
	}
	if err := receive(t, ended); err == nil {
		t.Error("the long script ended by itself")
	}
	eventually(t, func() error {
		_, err := l.Run(bounded(t), value, "k")
		return err
	})
	counted(t, l, "k", fmt.Sprint(runs+1))
}
