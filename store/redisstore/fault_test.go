package redisstore

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/internal/sharedlog"
)

// start returns a log with one entry.
func start(t *testing.T, e *Engine) (*log, sharedlog.Position) {
	t.Helper()
	l := e.Log("pool").(*log)
	loaded, err := l.Load(t.Context(), sharedlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := l.Append(t.Context(), loaded.At, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	return l, got.At
}

func do(t *testing.T, s *redisrun.Server, command ...string) string {
	t.Helper()
	said, err := s.Do(t.Context(), command...)
	if err != nil {
		t.Fatal(err)
	}
	return said
}

// A server without memory refuses what needs some. Reading goes on, and appending when there is room again.
func TestFullMemory(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	l, at := start(t, open(t, s.URL()))
	do(t, s, "CONFIG", "SET", "maxmemory", "1")
	_, err := l.Append(t.Context(), at, []byte("two"))
	refused(t, err, sharedlog.ErrFull, "maxmemory")
	refused(t, l.Compact(t.Context(), at, []byte("one")), sharedlog.ErrFull, "maxmemory")
	_, err = open(t, s.URL()).Log("other").Load(t.Context(), sharedlog.Position{})
	refused(t, err, sharedlog.ErrFull, "maxmemory")
	if got, err := l.Read(t.Context(), at); err != nil || len(got.Data) > 0 {
		t.Errorf("%v, %d bytes", err, len(got.Data))
	}
	do(t, s, "CONFIG", "SET", "maxmemory", "0")
	if got, err := l.Append(t.Context(), at, []byte("two")); err != nil || !got.Own || len(got.Data) > 0 {
		t.Errorf("%v, %+v", err, got)
	}
}

// Keys that Redis deletes to make room are told from a log that was deleted, whichever they are.
func TestEvictedKeysAreNamed(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	e := open(t, s.URL())
	calls := map[string]func(l *log, at sharedlog.Position) error{
		"Append": func(l *log, at sharedlog.Position) error {
			_, err := l.Append(t.Context(), at, []byte("x"))
			return err
		},
		"Read": func(l *log, at sharedlog.Position) error { _, err := l.Read(t.Context(), at); return err },
		"Load": func(l *log, _ sharedlog.Position) error {
			_, err := l.Load(t.Context(), sharedlog.Position{})
			return err
		},
		"Compact": func(l *log, at sharedlog.Position) error {
			return l.Compact(t.Context(), at, []byte("x"))
		},
	}
	for _, c := range []struct {
		gone string
		told []string
	}{
		{"segment", []string{"Append", "Read", "Load", "Compact"}},
		{"head", []string{"Compact"}},
		{"snapshot", []string{"Load"}},
	} {
		for _, call := range c.told {
			l, at := start(t, e)
			if err := l.Compact(t.Context(), at, []byte("one")); err != nil {
				t.Fatal(err)
			}
			at = at.Moved(at.Offset)
			got, err := l.Append(t.Context(), at, []byte("two"))
			if err != nil {
				t.Fatal(err)
			}
			h, err := l.look(t.Context(), l.head())
			if err != nil {
				t.Fatal(err)
			}
			do(t, s, "DEL", map[string]string{"segment": l.segment(at).key, "head": l.head(), "snapshot": l.snapshotKey(h.snapshot)}[c.gone])
			err = calls[call](l, got.At)
			refused(t, err, sharedlog.ErrEvicted, "noeviction")
			refused(t, err, sharedlog.ErrLost, "")
			do(t, s, "FLUSHALL")
		}
	}

	// Everything is gone: the server says whether it evicted it.
	l, at := start(t, e)
	do(t, s, "FLUSHALL")
	if _, err := l.Read(t.Context(), at); !errors.Is(err, sharedlog.ErrLost) || errors.Is(err, sharedlog.ErrEvicted) {
		t.Errorf("after FLUSHALL: %v", err)
	}
	l, at = start(t, e)
	do(t, s, "CONFIG", "SET", "maxmemory-policy", "allkeys-random", "maxmemory", "1")
	until(t, func() bool { _, _ = s.Do(t.Context(), "SET", "other", "x"); return do(t, s, "DBSIZE") == "0" })
	do(t, s, "CONFIG", "SET", "maxmemory", "0")
	_, err := l.Read(t.Context(), at)
	refused(t, err, sharedlog.ErrEvicted, "noeviction")
}

// A restart without persistence loses the log, and the scripts. One process writes it again and all go on.
func TestRestartLosesTheLog(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	l, at := start(t, open(t, s.URL()))
	woken, err := l.Watch(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err = l.Append(t.Context(), at, []byte("two"))
	refused(t, err, sharedlog.ErrUnavailable, "")
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		_, err = l.Append(t.Context(), at, []byte("two"))
		return !errors.Is(err, sharedlog.ErrUnavailable)
	})
	refused(t, err, sharedlog.ErrLost, "restarted without its data")
	<-woken // some may have been lost
	at, err = l.Revive(t.Context(), at, []byte("one"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := l.Append(t.Context(), at, []byte("two")); err != nil || !got.Own {
		t.Errorf("%v, %+v", err, got)
	}
	if err := l.Publish(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	<-woken
}

// Scripts that the server has forgotten are sent again, and an entry is appended once.
func TestForgottenScripts(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	e := open(t, s.URL())
	l, at := start(t, e)
	for range 3 {
		do(t, s, "SCRIPT", "FLUSH")
		got, err := l.Append(t.Context(), at, []byte("next"))
		if err != nil || !got.Own || len(got.Data) > 0 {
			t.Fatalf("%v, %+v", err, got)
		}
		at = got.At
	}
}

// Keys of a log that hold something else, and a log of another version, are refused and left as they are.
func TestKeysThatAreNoLog(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	e := open(t, s.URL())
	l, at := start(t, e)
	for _, c := range []struct {
		command []string
		want    error
		says    string
	}{
		{[]string{"SET", l.head(), "x"}, sharedlog.ErrDamaged, ""},
		{[]string{"HSET", l.head(), "f", "2"}, sharedlog.ErrFormat, "?prefix="},
		{[]string{"HSET", l.head(), "incarnation", "x"}, sharedlog.ErrDamaged, l.head()},
		{[]string{"HSET", l.head(), "segment", "-1"}, sharedlog.ErrDamaged, l.head()},
		{[]string{"HSET", l.head(), "size", "99999999999"}, sharedlog.ErrDamaged, l.head()},
		{[]string{"HSET", l.head(), "origin", "somewhere"}, sharedlog.ErrDamaged, l.head()},
		{[]string{"APPEND", l.segment(at).key, "\xff\xff\xff"}, sharedlog.ErrDamaged, ""},
		{[]string{"APPEND", l.segment(at).key, "half"}, sharedlog.ErrDamaged, ""},
	} {
		do(t, s, "FLUSHALL")
		l, at = start(t, e)
		if strings.HasPrefix(c.command[1], l.base+"s:") {
			c.command[1] = l.segment(at).key
		}
		if c.command[0] == "SET" {
			do(t, s, "DEL", l.head())
		}
		do(t, s, c.command...)
		_, err := l.Load(t.Context(), sharedlog.Position{})
		refused(t, err, c.want, c.says)
	}
	do(t, s, "DEL", l.posts())
	do(t, s, "HSET", l.posts(), "x", "y")
	_, err := l.Post(t.Context(), 1, at)
	refused(t, err, sharedlog.ErrDamaged, "post")
}

// Calls return by their deadlines while the server is stopped, and work at once when it goes on.
func TestStoppedServer(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	e := open(t, s.URL()+"?timeout=1m")
	l, at := start(t, e)
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			_, err := l.Append(ctx, at, []byte("x"))
			refused(t, err, sharedlog.ErrUnavailable, "in time")
		})
	}
	wg.Wait()
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool { _, err := l.Append(t.Context(), at, []byte("y")); return err == nil })
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error, 1)
	go func() { _, err := l.Append(context.Background(), at, []byte("x")); failed <- err }()
	if err := e.Close(); err != nil { // does not wait for the server
		t.Fatal(err)
	}
	refused(t, <-failed, sharedlog.ErrClosed, "closed")
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
}

// relay passes bytes on to a server, until it loses the reply to a script.
type relay struct {
	net.Listener
	mu   sync.Mutex
	to   string
	lose bool
}

func newRelay(t *testing.T, to string) *relay {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: listener, to: to}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { r.serve(near) })
		}
	})
	t.Cleanup(func() { listener.Close(); wg.Wait() })
	return r
}

func (r *relay) set(to string, lose bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.to, r.lose = to, lose
}

func (r *relay) serve(near net.Conn) {
	r.mu.Lock()
	to := r.to
	r.mu.Unlock()
	far, err := net.Dial("tcp", to)
	if err != nil {
		near.Close()
		return
	}
	var lost atomic.Bool // the reply, and the connection with it
	var wg sync.WaitGroup
	wg.Go(func() {
		pass(near, far, func(b []byte) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.lose && bytes.Contains(b, []byte("EVALSHA")) {
				r.lose = false
				lost.Store(true)
			}
			return true
		})
	})
	wg.Go(func() { pass(far, near, func([]byte) bool { return !lost.Load() }) })
	wg.Wait()
}

// pass copies what may be copied, and closes both ends when it stops.
func pass(from, to net.Conn, may func([]byte) bool) {
	defer from.Close()
	defer to.Close()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if err != nil || !may(buf[:n]) {
			return
		}
		if _, err := to.Write(buf[:n]); err != nil {
			return
		}
	}
}

// An append whose reply is lost is not sent again by the client: its caller decides.
func TestALostReplyIsNotRepeated(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	r := newRelay(t, s.Addr())
	l, at := start(t, open(t, "redis://"+r.Addr().String()))
	r.set(s.Addr(), true)
	_, err := l.Append(t.Context(), at, []byte("two"))
	refused(t, err, sharedlog.ErrUnavailable, "")
	var got sharedlog.Entries
	until(t, func() bool { got, err = l.Read(t.Context(), at); return err == nil })
	var list []string
	for entry, err := range got.All() {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(entry.Body))
	}
	if !slices.Equal(list, []string{"two"}) {
		t.Errorf("the log has %q", list)
	}
}

// An address may stand for the master of the moment. A demoted one keeps its connections, so they are made anew.
func TestMasterBehindAnAddress(t *testing.T) {
	t.Parallel()
	first, second := redisrun.New(t), redisrun.New(t)
	r := newRelay(t, first.Addr())
	l, at := start(t, open(t, "redis://"+r.Addr().String()))
	r.set(second.Addr(), false)
	do(t, first, "REPLICAOF", "127.0.0.1", "1")
	_, err := l.Append(t.Context(), at, []byte("two"))
	refused(t, err, sharedlog.ErrUnavailable, "a replica and takes no writes")
	until(t, func() bool {
		_, err = l.Append(t.Context(), at, []byte("two"))
		return !errors.Is(err, sharedlog.ErrUnavailable)
	})
	refused(t, err, sharedlog.ErrLost, "gone") // the second server has nothing
}

// Every key of a log has an end, also before Keep was called, and those that a compaction or a new incarnation makes: the process
// that made them may be killed at any moment.
func TestEveryKeyExpires(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	l, at := start(t, open(t, s.URL()))
	if n := Eternal(t, s); n != "0" {
		t.Errorf("%s keys of a new log have no end", n)
	}
	do(t, s, "FLUSHALL")
	if _, err := l.Revive(t.Context(), at, []byte("snapshot")); err != nil {
		t.Fatal(err)
	}
	if n := Eternal(t, s); n != "0" {
		t.Errorf("%s keys of a new incarnation have no end", n)
	}
	do(t, s, "FLUSHALL")
	l, at = start(t, open(t, s.URL()))
	for range 2 {
		got, err := l.Append(t.Context(), at, []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Compact(t.Context(), got.At, []byte("snapshot")); err != nil {
			t.Fatal(err)
		}
		at = got.At.Moved(got.At.Offset)
	}
	if n := Eternal(t, s); n != "0" {
		t.Errorf("%s keys of a log with three segments have no end", n)
	}
}

// Eternal returns how many keys never expire.
func Eternal(t *testing.T, server *redisrun.Server) string {
	t.Helper()
	n, err := server.Do(t.Context(), "EVAL", "local n = 0 for _, k in ipairs(redis.call('KEYS', '*')) do if redis.call('PTTL', k) < 0 then n = n + 1 end end return n", "0")
	if err != nil {
		t.Fatal(err)
	}
	if size, err := server.Do(t.Context(), "DBSIZE"); err != nil || size == "0" {
		t.Errorf("%s keys in all, %v", size, err)
	}
	return n
}

// A watch ends its subscription, unless another watches the same. One that begins meanwhile works.
func TestWatchesEnd(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	l, _ := start(t, open(t, s.URL()))
	listeners := func() string {
		return do(t, s, "EVAL", "return redis.call('PUBLISH', ARGV[1], '') .. ''", "0", l.channel(1))
	}
	first, end := context.WithCancel(t.Context())
	second, endSecond := context.WithCancel(t.Context())
	var woken <-chan struct{}
	for _, ctx := range []context.Context{first, second} {
		var err error
		if woken, err = l.Watch(ctx, 1); err != nil {
			t.Fatal(err)
		}
	}
	end()
	if got := listeners(); got != "1" {
		t.Errorf("%s connections listen, want 1", got)
	}
	<-woken
	endSecond()
	until(t, func() bool { return listeners() == "0" })
	for range 20 {
		ctx, end := context.WithCancel(t.Context())
		woken, err := l.Watch(ctx, 1)
		if err != nil {
			t.Fatal(err)
		}
		until(t, func() bool { listeners(); return len(woken) > 0 })
		end()
	}
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := l.Watch(ctx, 2)
	refused(t, err, sharedlog.ErrUnavailable, "in time")
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
}
