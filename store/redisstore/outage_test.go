package redisstore_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore"
)

// quick is how long a caller waits that has others to ask for.
const quick = 2 * time.Second

func failing(mode store.OnFailure, limits ...store.Limit) store.Spec {
	s := poolOf(limits...)
	s.OnFailure = mode
	return s
}

// down are the ways in which a server is lost.
var down = map[string]func(*redisrun.Server) error{
	"killed": (*redisrun.Server).Kill,
	"paused": (*redisrun.Server).Pause,
}

// up ends them.
func up(t *testing.T, how string, s *redisrun.Server) {
	t.Helper()
	err := error(nil)
	if how == "paused" {
		err = s.Resume()
	} else {
		err = s.Restart()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// persistent keeps what was written when a server is killed.
var persistent = []string{"appendonly yes", "appendfsync always"}

func TestClosedRefusesEverythingMeanwhile(t *testing.T) {
	for how, cut := range down {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := redisrun.New(t, persistent...)
			m := join(t, server.URL(), failing(store.FailClosed, slotsOf(2)))
			var began, ended atomic.Int32
			m.pool.(store.Alarm).OnOutage(func(o store.Outage, over bool) {
				if o.Mode != store.FailClosed || o.Why == "" || o.Since == 0 {
					t.Errorf("the outage is %+v", o)
				}
				if over {
					ended.Add(1)
				} else {
					began.Add(1)
				}
			})
			held := m.take(1)
			m.take(1)
			waits := m.must(waiting(ask(1)), store.Waiting)
			m.store.AnswerWithin(0)
			if err := cut(server); err != nil {
				t.Fatal(err)
			}
			for range 3 { // not because of its caller's deadline: the store counts as lost
				_, err := m.try(waiting(ask(1)), patience)
				m.refuses(err)
				if !m.lost() {
					t.Error("nobody has noticed that the store is lost")
				}
			}
			_, err := m.try(store.Op{Kind: store.OpPoll, ID: waits}, patience)
			m.refuses(err)
			if _, err := m.pool.Snapshot(t.Context()); !errors.Is(err, store.ErrUnavailable) {
				t.Errorf("a snapshot: %v", err)
			}
			_, err = m.try(store.Op{Kind: store.OpClose, ID: held}, patience) // it is heeded all the same
			m.refuses(err)
			m.store.AnswerWithin(unhurried)
			up(t, how, server)
			m.back()
			await(t, "the alarm is over", func() bool { return began.Load() == 1 && ended.Load() == 1 })
			await(t, "the ticket that was closed is closed", func() bool { return m.snapshot().InFlight == 1 })
		})
	}
}

func TestOpenLetsEverythingGoMeanwhile(t *testing.T) {
	for how, cut := range down {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := redisrun.New(t, persistent...)
			m := join(t, server.URL(), failing(store.FailOpen, slotsOf(1)))
			held := m.take(1)
			waits := m.must(waiting(ask(1)), store.Waiting)
			m.store.AnswerWithin(0)
			if err := cut(server); err != nil {
				t.Fatal(err)
			}
			var ids []store.ID
			for range 5 {
				ids = append(ids, m.take(1))
			}
			if s := m.collect(waits); s != store.Granted {
				t.Errorf("the one that waited is %v", s)
			}
			m.close(ids[0])
			m.close(held)
			m.must(store.Op{Kind: store.OpAnswer, ID: ids[1]}, store.Granted)
			if o, lost := m.pool.(store.Alarm).Outage(); !lost || o.Mode != store.FailOpen || o.Granted != 6 {
				t.Errorf("the outage is %+v", o)
			}
			m.store.AnswerWithin(unhurried)
			up(t, how, server)
			m.back()
			for _, id := range append(ids, waits) { // the store has never heard of them
				m.close(id)
			}
			m.must(store.Op{Kind: store.OpAnswer, ID: ids[2]}, store.Granted)
			await(t, "nothing is held", func() bool { s := m.snapshot(); return s.InFlight == 0 && s.Waiting[0] == 0 })
			m.take(1)
		})
	}
}

// brief is a limit whose window is short enough to see a share come back.
func brief(n int64) store.Limit {
	l := perMinute(n)
	l.Window = 4 * time.Second
	return l
}

func TestShareGoesOnWithinIt(t *testing.T) {
	for how, cut := range down {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			server := redisrun.New(t, persistent...)
			m := join(t, server.URL(), failing(store.FailShare, brief(10)))
			m.joined()
			m.store.AnswerWithin(0)
			if err := cut(server); err != nil {
				t.Fatal(err)
			}
			// Three seconds in which others may still count on what this one leaves.
			r := m.do(ask(1))
			if r.State != store.Refused || r.Reason.Code != store.CodeStore || r.Reason.At <= r.Now || r.Reason.At.Sub(r.Now) > 5*time.Second {
				t.Fatalf("it is %+v", r)
			}
			soon := ask(1)
			soon.Wait = time.Second / 2
			// A machine that stops for so long can make that late enough.
			if now := m.do(soon); now.Now.Add(soon.Wait) < r.Reason.At && (now.State != store.Refused || now.Reason.Code != store.CodeStore) {
				t.Errorf("it is %+v", now)
			}
			// It had charged nothing: its share, a half, is there a window later.
			var ids []store.ID
			for range 6 {
				ids = append(ids, m.must(waiting(ask(1)), store.Waiting))
			}
			for _, id := range ids[:5] {
				if s := m.collect(id); s != store.Granted {
					t.Fatalf("it is %v", s)
				}
			}
			if s := m.state(ids[5]); s != store.Waiting {
				t.Errorf("beyond its share it is %v", s)
			}
			o, lost := m.pool.(store.Alarm).Outage()
			if !lost || o.Mode != store.FailShare || o.Granted != 5 {
				t.Errorf("the outage is %+v", o)
			}
			granted := m.do(store.Op{Kind: store.OpPoll, ID: ids[0]}).GrantedAt
			if after := granted.Sub(o.Since); after < brief(10).Window {
				t.Errorf("it had its share after %v", after)
			}
			m.close(ids[0])
			m.store.AnswerWithin(unhurried)
			up(t, how, server)
			m.back()
			// What was let go is charged, before the one that waited was asked for.
			if s := m.collect(ids[5]); s != store.Granted {
				t.Errorf("it is %v", s)
			}
			s := m.snapshot()
			late := s.Now.Sub(granted) >= brief(10).Window // the server took so long to come back that nothing of it counts any more
			if !late && s.Limits[0].Used != 6 || s.Counters.Sent != 6 || s.InFlight != 5 {
				t.Errorf("%d are used, %d were sent, %d are in flight", s.Limits[0].Used, s.Counters.Sent, s.InFlight)
			}
			for _, id := range ids {
				m.close(id)
			}
			if s := m.snapshot(); s.InFlight != 0 {
				t.Errorf("%d in flight", s.InFlight)
			}
			m.take(1)
		})
	}
}

// Members that reach the store leave a share to a member that is cut off. Together they keep to the limit, also when it
// returns.
func TestTogetherTheyKeepToTheLimit(t *testing.T) {
	guarded := brief(20)
	guarded.Guard = store.GuardAuto
	for how, limit := range map[string]store.Limit{"counting grants": brief(20), "counting arrivals": guarded} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			all := grantsThroughACut(t, limit)
			if limit.Guard == store.GuardAuto {
				for i := range all {
					all[i].began = all[i].ended // the request arrives after its grant was returned and before the ticket is closed
				}
			}
			if n := mostWithin(all, limit.Window); n > 20 {
				t.Errorf("%d in a window", n)
			}
			if len(all) < 40 {
				t.Errorf("only %d were let go", len(all))
			}
		})
	}
}

// grantsThroughACut lets two members ask without end while one of them is cut off and comes back.
func grantsThroughACut(t *testing.T, limit store.Limit) []span {
	server := redisrun.New(t)
	c := newCutter(t, server.Addr())
	m := join(t, c.url(), failing(store.FailShare, limit))
	other := join(t, server.URL(), failing(store.FailShare, limit))
	m.joined()
	other.joined()
	grants := make(chan span, 10_000)
	stop := make(chan struct{})
	done := make(chan struct{})
	for _, p := range []*member{m, other} {
		go func() {
			defer func() { done <- struct{}{} }()
			for {
				select {
				case <-stop:
					return
				default:
				}
				began := time.Now()
				r, err := p.try(ask(1), quick)
				if err != nil {
					continue
				}
				if r.State == store.Granted {
					grants <- span{began, time.Now()}
					_, _ = p.try(store.Op{Kind: store.OpClose, ID: r.ID}, quick)
				}
				time.Sleep(20 * time.Millisecond) // as callers do
			}
		}()
	}
	time.Sleep(limit.Window)
	m.store.AnswerWithin(0)
	c.block(true)
	await(t, "it is cut off", m.lost)
	time.Sleep(3*time.Second + 2*limit.Window)
	m.store.AnswerWithin(unhurried)
	c.block(false)
	m.back()
	time.Sleep(limit.Window)
	close(stop)
	<-done
	<-done
	close(grants)
	var all []span
	for s := range grants {
		all = append(all, s)
	}
	return all
}

func TestWhoIsNoMemberIsClosedMeanwhile(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	m := join(t, server.URL(), passing(perMinute(10)))
	unknown := perMinute(0)
	u := join(t, server.URL()+"?prefix=u", failing(store.FailShare, unknown))
	u.joined()
	id := m.take(1)
	if err := server.Kill(); err != nil {
		t.Fatal(err)
	}
	_, err := m.try(ask(1), patience)
	m.refuses(err)
	_, err = m.try(store.Op{Kind: store.OpClose, ID: id}, patience)
	m.refuses(err)
	if _, err := m.store.Pool(t.Context(), passing(perMinute(10))); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("opening it once more: %v", err)
	}
	if _, err := redisstore.Open(t.Context(), server.URL()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("opening the store: %v", err)
	}
	if r := u.do(ask(1)); r.State != store.Refused || r.Reason.Code != store.CodeStore || r.Reason.At != 0 {
		t.Errorf("of a limit whose size is not known: %+v", r)
	}
	for _, kind := range []store.OpKind{store.OpHeartbeat, store.OpLeave, store.OpLaunch, store.OpPause, store.OpResume, store.OpObserve} {
		if _, err := u.try(store.Op{Kind: kind, Agent: "a", RetryAfter: time.Second}, patience); !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("operation %d: %v", kind, err)
		}
	}
	if err := m.store.Close(); err != nil {
		t.Log(err) // it could not leave
	}
}

// A span holds the moment of a grant, which only the store knows: not before the call began, not after it ended.
type span struct{ began, ended time.Time }

// mostWithin returns the largest number of grants that were certainly made within one window. A call that began
// before the window or ended after it is left out: the store may have decided it outside.
func mostWithin(all []span, window time.Duration) (most int) {
	for _, first := range all {
		n := 0
		for _, s := range all {
			if !s.began.Before(first.began) && s.ended.Sub(first.began) < window {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}
