//go:build unix

package redisstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

// TestMain lets the test binary be a process that uses a pool, see user process.
func TestMain(m *testing.M) {
	if url := os.Getenv("SLUICE_TEST_USES"); url != "" {
		if err := use(url); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// thousand is a pool of 1000 requests in ten minutes: longer than any test, so that what is refused stays refused.
func thousand() store.Spec {
	backoff := store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}
	return store.Spec{
		Name: "pool", Classes: []store.Class{{Name: "p0", Weight: 1}}, MaxWaiting: 10, Throttle: backoff, Overload: backoff,
		Limits: []store.Limit{{Name: "window", Kind: store.Rolling, Unit: "requests", Size: 1000, Window: 10 * time.Minute, Guard: store.GuardOff}},
	}
}

// use asks for requests in four goroutines, and writes a line for each that is granted ("g"), refused ("r") or fails ("f"),
// until its standard input ends.
func use(url string) error {
	s, err := Open(context.Background(), url)
	if err != nil {
		return err
	}
	p, err := s.Pool(context.Background(), thousand())
	if err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = bufio.NewReader(os.Stdin).ReadString(0)
	}()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				case <-time.After(5 * time.Millisecond):
				}
				ops := []store.Op{{Kind: store.OpAcquire, Agent: fmt.Sprint("a", i), TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: 1}}}}
				said := "f"
				if err := p.Apply(context.Background(), ops); err == nil {
					said = "r"
					if ops[0].Result.State == store.Granted {
						said = "g"
					}
				}
				mu.Lock()
				fmt.Println(said)
				mu.Unlock()
				if said == "g" && n%2 == 0 {
					_ = p.Apply(context.Background(), []store.Op{{Kind: store.OpAnswer, ID: ops[0].Result.ID, Verdict: store.VerdictOK}, {Kind: store.OpClose, ID: ops[0].Result.ID}})
				}
			}
		})
	}
	wg.Wait()
	return s.Close()
}

// userProcess is a process that uses the pool.
type userProcess struct {
	command          *exec.Cmd
	granted, refused atomic.Int64
	asked            atomic.Int64
}

func startUser(t *testing.T, url string) *userProcess {
	t.Helper()
	u := &userProcess{command: exec.Command(os.Args[0])}
	u.command.Env = append(os.Environ(), "SLUICE_TEST_USES="+url, "XDG_STATE_HOME="+t.TempDir())
	u.command.Stderr = os.Stderr
	in, err := u.command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := u.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := u.command.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			u.asked.Add(1)
			switch lines.Text() {
			case "g":
				u.granted.Add(1)
			case "r":
				u.refused.Add(1)
			}
		}
	}()
	t.Cleanup(func() {
		u.signal(t, syscall.SIGCONT)
		_ = in.Close()
		<-read
		if err := u.command.Wait(); err != nil {
			t.Errorf("a process: %v", err)
		}
	})
	return u
}

func (u *userProcess) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := u.command.Process.Signal(s); err != nil {
		t.Error(err)
	}
}

func sum(all []*userProcess) (granted int64) {
	for _, u := range all {
		granted += u.granted.Load()
	}
	return granted
}

// Whatever Redis loses under load, what was used counts exactly, and the rest is granted: no process waits for a window, which
// is longer than this test. A process that was stopped meanwhile learns what the others did, and tells them what it knows.
func TestWhatWasUsedCountsExactly(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(t *testing.T, r *relay, s *redisrun.Server, all []*userProcess){
		"flushed": func(t *testing.T, _ *relay, s *redisrun.Server, _ []*userProcess) { do(t, s, "FLUSHALL") },
		"restarted": func(t *testing.T, _ *relay, s *redisrun.Server, _ []*userProcess) {
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
		},
		"failed over to a replica that lagged behind": func(t *testing.T, r *relay, s *redisrun.Server, all []*userProcess) {
			replica := redisrun.New(t)
			do(t, replica, append([]string{"REPLICAOF"}, strings.Split(s.Addr(), ":")...)...)
			until(t, func() bool { return strings.Contains(do(t, replica, "INFO", "replication"), "master_link_status:up") })
			do(t, replica, "REPLICAOF", "NO", "ONE") // what comes now it does not have
			had := sum(all)
			until(t, func() bool { return sum(all) >= had+100 })
			r.set(replica.Addr(), false)
			if err := s.Kill(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		for _, stops := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stopped %v", name, stops), func(t *testing.T) {
				s := redisrun.New(t)
				r := newRelay(t, s.Addr())
				var all []*userProcess
				for range 3 {
					all = append(all, startUser(t, "redis://"+r.Addr().String()+"?timeout=10s"))
				}
				until(t, func() bool {
					return sum(all) >= 300 && !slices.ContainsFunc(all, func(u *userProcess) bool { return u.granted.Load() == 0 })
				})
				awake := all
				if stops {
					all[2].signal(t, syscall.SIGSTOP)
					awake = all[:2]
					had := sum(awake)
					until(t, func() bool { return sum(awake) >= had+50 }) // they have read what it wrote
				}
				lose(t, r, s, awake)
				if at := sum(all); at >= 1000 {
					t.Fatalf("nothing is left to lose: %d granted", at)
				}
				had := all[0].refused.Load()
				until(t, func() bool { return all[0].refused.Load() >= had+20 })
				if stops {
					all[2].signal(t, syscall.SIGCONT)
					had := all[2].asked.Load()
					until(t, func() bool { return all[2].asked.Load() >= had+20 })
				}
				until(t, func() bool { return sum(all) >= 1000 })
				had = all[0].refused.Load()
				until(t, func() bool { return all[0].refused.Load() >= had+100 })
				if n := sum(all); n != 1000 {
					t.Errorf("%d were granted, of 1000", n)
				}
			})
		}
	}
}

// A process that has not read the end of a log does not miss it when that is lost. It asks the others all the same before it
// acts on what is left, and so does a newcomer.
func TestNobodyActsOnALogThatMayLackItsEnd(t *testing.T) {
	t.Parallel()
	for _, newcomer := range []bool{false, true} {
		t.Run(fmt.Sprint("newcomer ", newcomer), func(t *testing.T) {
			t.Parallel()
			first, second := redisrun.New(t), redisrun.New(t)
			r := newRelay(t, first.Addr())
			open := func() (take func(n int) int) {
				s, err := Open(t.Context(), "redis://"+r.Addr().String()+"?timeout=20s", logstore.WithMemory(t.TempDir(), "redis"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.Close() })
				p, err := s.Pool(t.Context(), thousand())
				if err != nil {
					t.Fatal(err)
				}
				return func(n int) int {
					t.Helper()
					return granted(t, p, n)
				}
			}
			one, other := open(), open()
			do(t, second, append([]string{"REPLICAOF"}, strings.Split(first.Addr(), ":")...)...)
			until(t, func() bool { return strings.Contains(do(t, second, "INFO", "replication"), "master_link_status:up") })
			do(t, second, "REPLICAOF", "NO", "ONE")
			if n := one(600); n != 600 {
				t.Fatalf("%d of 600 were granted", n)
			}
			r.set(second.Addr(), false)
			if err := first.Kill(); err != nil {
				t.Fatal(err)
			}
			if newcomer {
				other = open()
			}
			if n := other(1000); n != 400 {
				t.Errorf("%d of the 400 that are left were granted", n)
			}
			if n := one(10); n != 0 {
				t.Errorf("%d more were granted", n)
			}
		})
	}
}

// granted asks n times for a request, and returns how many were granted.
func granted(t *testing.T, p store.Pool, n int) (granted int) {
	t.Helper()
	for range n {
		ops := []store.Op{{Kind: store.OpAcquire, Agent: "a", TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: 1}}}}
		until(t, func() bool {
			err := p.Apply(t.Context(), ops)
			if err != nil && !errors.Is(err, store.ErrUnavailable) {
				t.Fatal(err)
			}
			return err == nil
		})
		if ops[0].Result.State == store.Granted {
			granted++
		}
	}
	return granted
}

// Keys that Redis evicts to make room are a loss that the processes heal, and the notice names the policy.
func TestEvictionIsHealedAndNamed(t *testing.T) {
	t.Parallel()
	for _, policy := range []string{"allkeys-lru", "volatile-ttl"} {
		s := redisrun.New(t)
		st, err := Open(t.Context(), s.URL()+"?timeout=20s", logstore.WithMemory(t.TempDir(), "redis"))
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		p, err := st.Pool(t.Context(), thousand())
		if err != nil {
			t.Fatal(err)
		}
		notices := make(chan store.Notice, 10)
		store.Can(p).Copied.OnNotice(func(n store.Notice) { notices <- n })
		if n := granted(t, p, 600); n != 600 {
			t.Fatalf("%d of 600 were granted", n)
		}
		do(t, s, "CONFIG", "SET", "maxmemory-policy", policy, "maxmemory", "1")
		until(t, func() bool {
			_, _ = s.Do(t.Context(), "SET", "other", "x", "EX", "100")
			return do(t, s, "DBSIZE") == "0"
		})
		do(t, s, "CONFIG", "SET", "maxmemory", "0")
		if n := granted(t, p, 500); n != 400 {
			t.Errorf("%s: %d of the 400 that are left were granted", policy, n)
		}
		if n := <-notices; n.Kind != store.NoticeEvicted || !strings.Contains(n.Why, "Redis has deleted a part of the log") {
			t.Errorf("%s: %v: %s", policy, n.Kind, n.Why)
		}
	}
}
