package remotestore_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// A lost answer is requested again, and nothing is done twice.
func TestLostAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.open(places)
		lost := 0
		r.drop(func(q *http.Request) loss {
			if applies(q) && lost == 0 {
				lost++
				return noAnswer
			}
			return arrives
		})
		res := r.do(p, ask(0))
		if res.State != store.Granted || lost != 1 {
			t.Errorf("%v, %d answers lost", res.State, lost)
		}
		r.stands(1, 0)
		if res = r.do(p, store.Op{Kind: store.OpClose, ID: res.ID}); res.State != store.Ended {
			t.Errorf("close: %v", res.State)
		}
		r.stands(0, 0)
	})
}

// A caller that was told that the daemon is unreachable has nothing, whatever the daemon did.
func TestDoubtIsResolved(t *testing.T) {
	for _, c := range []struct {
		name  string
		asked bool // the batch arrives
	}{{"it was carried out", true}, {"it was not", false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				p := r.open(places)
				held := r.do(p, ask(0))
				first := true
				r.drop(func(*http.Request) loss {
					if first && c.asked {
						first = false
						return noAnswer
					}
					return nowhere
				})
				ops := []store.Op{ask(0), {Kind: store.OpClose, ID: held.ID}}
				if err := p.Apply(t.Context(), ops); !errors.Is(err, store.ErrUnavailable) {
					t.Fatalf("%v", err)
				}
				if o, lasts := p.(store.Alarm).Outage(); !lasts || o.Mode != store.FailClosed || o.Why == "" {
					t.Errorf("%+v %v", o, lasts)
				}
				if err := p.Apply(t.Context(), []store.Op{ask(0)}); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("while it lasts: %v", err)
				}
				r.drop(func(*http.Request) loss { return arrives })
				time.Sleep(5 * time.Second)
				r.stands(0, 0) // what was asked for is given back, and what was ended has ended
				if res := r.do(p, ask(0)); res.State != store.Granted {
					t.Errorf("afterwards: %v", res.State)
				}
			})
		})
	}
}

// A daemon that goes on without its own store grants a request that waits there under another id. If its answer is lost, the
// caller does not know that id: the ticket goes back.
func TestDoubtAboutATicketWithAnotherID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.open(places)
		r.do(p, ask(0))
		r.do(p, ask(0))
		answered, lost := r.do(p, ask(-1)), r.do(p, ask(-1))
		r.lone.Store(true)
		poll := store.Op{Kind: store.OpPoll, ID: answered.ID}
		res := r.do(p, poll)
		if res.State != store.Granted || res.ID == answered.ID {
			t.Fatalf("it is %+v", res)
		}
		r.stands(3, 1)
		first := true
		r.drop(func(*http.Request) loss {
			if first {
				first = false
				return noAnswer
			}
			return nowhere
		})
		poll.ID = lost.ID
		if err := p.Apply(t.Context(), []store.Op{poll}); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("%v", err)
		}
		r.stands(4, 0)
		r.lone.Store(false)
		r.drop(func(*http.Request) loss { return arrives })
		time.Sleep(5 * time.Second)
		r.stands(3, 0)
	})
}

// Tickets that end while the daemon is unreachable are reported when it is back.
func TestSaidLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.open(places)
		var told []bool
		p.(store.Alarm).OnOutage(func(_ store.Outage, over bool) { told = append(told, over) })
		a, b := r.do(p, ask(0)), r.do(p, ask(0))
		r.drop(func(*http.Request) loss { return nowhere })
		for _, id := range []store.ID{a.ID, b.ID} { // when it is lost, and while it is
			if err := p.Apply(t.Context(), []store.Op{{Kind: store.OpClose, ID: id}}); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrKept) {
				t.Errorf("%v", err)
			}
		}
		r.stands(2, 0)
		r.drop(func(*http.Request) loss { return arrives })
		time.Sleep(5 * time.Second)
		r.stands(0, 0)
		if len(told) != 2 || told[0] || !told[1] {
			t.Errorf("told of outages: %v", told)
		}
	})
}

// With `open`, all requests go while the daemon is unreachable, and leave nothing behind.
func TestOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		spec := places
		spec.OnFailure = store.FailOpen
		p := r.open(spec)
		r.drop(func(*http.Request) loss { return nowhere })
		for range 5 {
			res := r.do(p, ask(0))
			if res.State != store.Granted {
				t.Fatalf("%v", res.State)
			}
			if res = r.do(p, store.Op{Kind: store.OpAnswer, ID: res.ID, Verdict: store.VerdictOK}); res.State != store.Granted {
				t.Errorf("answer: %v", res.State)
			}
			if res = r.do(p, store.Op{Kind: store.OpClose, ID: res.ID}); res.State != store.Ended {
				t.Errorf("close: %v", res.State)
			}
		}
		local := r.do(p, ask(0))
		if o, _ := p.(store.Alarm).Outage(); o.Granted != 6 {
			t.Errorf("%d were let go", o.Granted)
		}
		r.drop(func(*http.Request) loss { return arrives })
		time.Sleep(5 * time.Second)
		if res := r.do(p, store.Op{Kind: store.OpClose, ID: local.ID}); res.State != store.Ended {
			t.Errorf("one that the daemon never heard of: %v", res.State)
		}
		r.stands(0, 0)
	})
}

// A caller that gives up leaves nothing behind, although its answer is still in flight.
func TestCallerGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.open(places)
		slow := make(chan struct{})
		r.drop(func(q *http.Request) loss {
			if applies(q) {
				r.mu.Unlock()
				<-slow
				r.mu.Lock()
			}
			return arrives
		})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- p.Apply(ctx, []store.Op{ask(0)}) }()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		close(slow)
		synctest.Wait()
		r.stands(0, 0)
	})
}

// A restarted daemon knows no clients. Callers recover: tickets are ended, and waiting requests ask again.
func TestDaemonStartedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c := sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1}}}}}
		gate, err := sluice.OpenWithStore(t.Context(), r.remote, c)
		if err != nil {
			t.Fatal(err)
		}
		defer gate.Close()
		held, err := gate.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a"})
		if err != nil {
			t.Fatal(err)
		}
		granted := make(chan error)
		go func() {
			ticket, err := gate.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "b"})
			granted <- errors.Join(err, ticket.Close())
		}()
		synctest.Wait()
		r.stop()
		r.start(anybody)
		time.Sleep(10 * time.Second)
		if w, err := gate.Why(t.Context(), "api"); err != nil || len(w) != 1 || w[0].Agent != "b" {
			t.Errorf("who waits: %+v %v", w, err)
		}
		if err := held.Close(); err != nil {
			t.Error(err)
		}
		if err := <-granted; err != nil {
			t.Errorf("who waited: %v", err)
		}
		synctest.Wait()
		s, err := gate.Resource(t.Context(), "api")
		if err != nil || s.InFlight != 0 || s.Limits[0].Used != 0 {
			t.Errorf("%+v %v", s, err)
		}
	})
}

// A stopped process does not hold up others for long: its waiting requests are cancelled. When it continues, it
// recovers.
func TestStoppedCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.open(places)
		r.do(p, ask(0))
		r.do(p, ask(0))
		if res := r.do(p, ask(-1)); res.State != store.Waiting {
			t.Fatalf("%v", res.State)
		}
		r.stands(2, 1)
		time.Sleep(2 * wire.GoneAfter) // it is alive, and says so
		r.stands(2, 1)
		r.drop(func(q *http.Request) loss {
			r.mu.Unlock()
			<-q.Context().Done() // like a process that is stopped, as far as the daemon can tell
			r.mu.Lock()
			return nowhere
		})
		time.Sleep(2 * wire.GoneAfter)
		r.stands(2, 0) // what was granted may have been sent
		r.drop(func(*http.Request) loss { return arrives })
		time.Sleep(5 * time.Second)
		if res := r.do(p, ask(0)); res.State != store.Refused {
			t.Errorf("%v", res.State)
		}
	})
}

// With `share`, waiting requests keep waiting while the daemon is away. New and one-shot requests are refused.
func TestWaitersStay(t *testing.T) {
	for _, passing := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			spec := places
			spec.OnFailure, spec.OneShot = store.FailShare, passing
			p := r.open(spec)
			var mu sync.Mutex
			var told []store.ID
			p.Watch(func(ids []store.ID) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, ids...)
			})
			a := r.do(p, ask(0))
			r.do(p, ask(0))
			w := r.do(p, ask(time.Minute))
			if w.State != store.Waiting {
				t.Fatal(w.State)
			}
			synctest.Wait()
			r.stop()
			synctest.Wait()
			if err := p.Apply(t.Context(), []store.Op{ask(0)}); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("new ones: %v", err)
			}
			ops := []store.Op{{Kind: store.OpPoll, ID: w.ID}}
			switch err := p.Apply(t.Context(), ops); {
			case passing && !errors.Is(err, store.ErrUnavailable):
				t.Errorf("one who passes by: %v", err)
			case passing:
				return
			case err != nil || ops[0].Result.State != store.Waiting || ops[0].Result.Reason.Code != store.CodeStore:
				t.Errorf("%v %+v", err, ops[0].Result)
			}
			mu.Lock()
			told = nil
			mu.Unlock()
			r.start(anybody)
			time.Sleep(5 * time.Second)
			mu.Lock()
			defer mu.Unlock()
			if len(told) == 0 || told[0] != w.ID {
				t.Errorf("told of %v", told)
			}
			if res := r.do(p, store.Op{Kind: store.OpPoll, ID: w.ID}); res.State == store.Waiting || res.State == store.Granted {
				t.Errorf("its place was in a session that is over: %v", res.State)
			}
			r.do(p, store.Op{Kind: store.OpClose, ID: a.ID})
			r.stands(1, 0)
		})
	}
}

// A proxy that answers instead of the daemon does not know what the daemon has done.
func TestGatewayInBetween(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.open(places)
		a := r.do(p, ask(0))
		r.drop(func(q *http.Request) loss {
			if applies(q) {
				return gateway
			}
			return nowhere
		})
		if err := p.Apply(t.Context(), []store.Op{ask(0)}); !errors.Is(err, store.ErrUnavailable) {
			t.Fatal(err)
		}
		r.drop(func(*http.Request) loss { return arrives })
		time.Sleep(5 * time.Second)
		if res := r.do(p, store.Op{Kind: store.OpClose, ID: a.ID}); res.State != store.Ended || res.ID != a.ID {
			t.Errorf("%+v", res)
		}
		r.stands(0, 0)
	})
}

// Ended tickets are reported again if the daemon's store was unavailable, and requests work when it is back.
func TestStoreBehindTheDaemonIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.open(places)
		a := r.do(p, ask(0))
		r.away.Store(true)
		if err := p.Apply(t.Context(), []store.Op{{Kind: store.OpClose, ID: a.ID}, ask(0)}); !errors.Is(err, store.ErrUnavailable) || !errors.Is(err, store.ErrKept) {
			t.Errorf("%v", err)
		}
		if _, lasts := p.(store.Alarm).Outage(); lasts {
			t.Error("the daemon answers: it is not lost")
		}
		time.Sleep(10 * time.Second)
		r.away.Store(false)
		time.Sleep(3 * time.Second)
		r.stands(0, 0)
		if res := r.do(p, ask(0)); res.State != store.Granted {
			t.Errorf("%v", res.State)
		}
	})
}

// No call waits forever for a daemon that does not answer.
func TestSilentDaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.open(places)
		r.do(p, ask(0))
		r.drop(func(*http.Request) loss { return silence })
		forever := context.Background()
		for what, f := range map[string]func() error{
			"look": func() error { _, err := p.Snapshot(forever); return err },
			"ask":  func() error { return p.Apply(forever, []store.Op{ask(0)}) },
			"open": func() error { _, err := r.remote.Pool(forever, places); return err },
		} {
			began := time.Now()
			if err := f(); !errors.Is(err, store.ErrUnavailable) || time.Since(began) > 10*time.Second {
				t.Errorf("%s: %v after %v", what, err, time.Since(began))
			}
		}
		began := time.Now()
		if err := r.remote.Close(); err != nil || time.Since(began) > 20*time.Second {
			t.Errorf("closed: %v after %v", err, time.Since(began))
		}
	})
}

// A caller that gives up while it collects its ticket does not keep it.
func TestCallerGoesWhileItCollects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		c := sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1}}}}}
		gate, err := sluice.OpenWithStore(t.Context(), r.remote, c)
		if err != nil {
			t.Fatal(err)
		}
		defer gate.Close()
		held, err := gate.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := gate.Acquire(ctx, sluice.Request{Resource: "api", Agent: "b"})
			done <- err
		}()
		synctest.Wait()
		calls, slow := 0, make(chan struct{})
		r.drop(func(q *http.Request) loss {
			if applies(q) {
				if calls++; calls == 2 { // after the end of the other one
					r.mu.Unlock()
					<-slow
					r.mu.Lock()
				}
			}
			return arrives
		})
		if err := held.Close(); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		if calls != 2 {
			t.Errorf("%d calls", calls)
		}
		close(slow)
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if s, err := gate.Resource(t.Context(), "api"); err != nil || s.InFlight != 0 {
			t.Errorf("%d in flight, %v", s.InFlight, err)
		}
	})
}

// A caller whose ticket is granted, but who never gets the answer that says so, leaves nothing behind: with `share` it keeps
// waiting and gets the ticket when the daemon is back, otherwise it gets an error and the ticket goes back.
func TestLostGrantOfAWaitingCaller(t *testing.T) {
	for _, mode := range []store.OnFailure{store.FailShare, store.FailClosed} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			c := sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1}}}}, OnStoreFailure: mode}
			gate, err := sluice.OpenWithStore(t.Context(), r.remote, c)
			if err != nil {
				t.Fatal(err)
			}
			defer gate.Close()
			held, err := gate.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "a"})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() {
				ticket, err := gate.Acquire(t.Context(), sluice.Request{Resource: "api", Agent: "b"})
				done <- errors.Join(err, ticket.Close())
			}()
			synctest.Wait()
			calls := 0
			r.drop(func(q *http.Request) loss {
				if applies(q) {
					if calls++; calls == 1 { // the end of the other one
						return arrives
					}
				}
				return noAnswer
			})
			if err := held.Close(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			r.drop(func(*http.Request) loss { return arrives })
			switch err := <-done; {
			case mode == store.FailShare && err != nil:
				t.Errorf("share: %v", err)
			case mode == store.FailClosed && !errors.Is(err, sluice.ErrStore):
				t.Errorf("closed: %v", err)
			}
			time.Sleep(5 * time.Second)
			if s, err := gate.Resource(t.Context(), "api"); err != nil || s.InFlight != 0 {
				t.Errorf("%v: %d in flight, %v", mode, s.InFlight, err)
			}
		})
	}
}
