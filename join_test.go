package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

func status(tb testing.TB, g *sluice.Gate) inspect.Status {
	tb.Helper()
	s, err := g.Status(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// living lists the live agents.
func living(tb testing.TB, g *sluice.Gate) string {
	tb.Helper()
	var names []string
	for _, a := range status(tb, g).Agents {
		names = append(names, a.Name)
	}
	return strings.Join(names, " ")
}

// agent returns the status of an agent.
func agent(tb testing.TB, g *sluice.Gate, name string) inspect.AgentStatus {
	tb.Helper()
	all := status(tb, g).Agents
	i := slices.IndexFunc(all, func(a inspect.AgentStatus) bool { return a.Name == name })
	if i < 0 {
		tb.Fatalf("%s is not alive; alive are %+v", name, all)
	}
	return all[i]
}

func leave(tb testing.TB, leases ...*sluice.Lease) {
	tb.Helper()
	for _, l := range leases {
		if err := l.Leave(); err != nil {
			tb.Errorf("%s: %v", l.Agent(), err)
		}
	}
}

// roomy is a limit that none of these tests reaches.
func roomy() sluice.Limit { return rolling(wide, time.Minute) }

func TestHeartbeatsKeepALease(t *testing.T) {
	for _, c := range []struct {
		leases        sluice.Leases
		renew, expire time.Duration
	}{
		{sluice.Leases{}, 2 * time.Minute, 5 * time.Minute},
		{sluice.Leases{Renew: 10 * time.Second, Expire: 15 * time.Second}, 10 * time.Second, 15 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := openConfig(t, sluice.Config{Leases: c.leases, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{roomy()}}}})
			lease := join(t, g, sluice.JoinRequest{Agent: "a", Class: "p1", User: "u", Machine: "m"})
			if lease.Agent() != "a" {
				t.Errorf("the lease is for %q", lease.Agent())
			}
			a := agent(t, g, "a")
			if a.Class != "p1" || a.User != "u" || a.Machine != "m" || a.State != "active" || a.Resource != "api" || a.Allocated != wide {
				t.Errorf("it is %+v", a)
			}
			wantIn(t, "lease expires", a.LeaseExpiresAt, c.expire)
			time.Sleep(c.renew - time.Millisecond)
			wantIn(t, "lease expires before the heartbeat", agent(t, g, "a").LeaseExpiresAt, c.expire-c.renew+time.Millisecond)
			time.Sleep(2 * time.Millisecond)
			wantIn(t, "lease expires after it", agent(t, g, "a").LeaseExpiresAt, c.expire-time.Millisecond)
			time.Sleep(10 * c.expire)
			a = agent(t, g, "a")
			if !a.LeaseStartedAt.Equal(bubbleStart) {
				t.Errorf("the lease started at %v, want when it was taken", a.LeaseStartedAt)
			}
			lease.Kill()
			last := time.Until(*a.LeaseExpiresAt)
			time.Sleep(last - time.Millisecond)
			if got := living(t, g); got != "a" {
				t.Errorf("alive are %q before its lease is over", got)
			}
			time.Sleep(time.Millisecond)
			if got := living(t, g); got != "" {
				t.Errorf("alive are %q without a heartbeat", got)
			}
			if err := lease.Err(); err != nil {
				t.Error(err)
			}
		})
	}
}

// wantIn fails unless a time is d ahead.
func wantIn(tb testing.TB, what string, at *time.Time, d time.Duration) {
	tb.Helper()
	if at == nil {
		tb.Errorf("%s: nobody knows when, want in %v", what, d)
	} else if got := time.Until(*at); got != d {
		tb.Errorf("%s in %v, want %v", what, got, d)
	}
}

// An agent that never joined stays live for the length of a lease after its last request, or its last moment in the
// queue.
func TestAgentsThatOnlyAskLiveForALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy(), places(1))
		held := acquire(t, g, classed("holder", "p1"))
		c := &crowd{tb: t, gate: g}
		c.ask("waits", classed("waits", "p2"))
		time.Sleep(5*time.Minute - time.Second)
		if got := living(t, g); got != "holder waits" {
			t.Errorf("alive are %q", got)
		}
		if a := agent(t, g, "holder"); a.Class != "p1" || a.Machine != "" || a.State != "active" {
			t.Errorf("it is %+v", a)
		}
		time.Sleep(time.Minute)
		if got := living(t, g); got != "waits" {
			t.Errorf("alive are %q, want the one in line alone", got)
		}
		end(t, held)
		c.order()
	})
}

// An agent whose lease has expired but that still sends requests is as live as any other that does.
func TestAgentThatAsksOutlivesItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, hourly(1000))
		join(t, g, sluice.JoinRequest{Agent: "a", Class: "p1"}).Kill()
		time.Sleep(5*time.Minute + time.Second)
		pass(t, g, classed("a", "p1"))
		if got := living(t, g); got != "a" {
			t.Errorf("alive are %q", got)
		}
		if a := pool(t, g).Allocations["a"]; a.Allocated != 1000 || a.Used != 1 {
			t.Errorf("allocated %+v, want everything to the only one", a)
		}
	})
}

func TestLeaveGivesEverythingBackAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Slots:     sluice.Slots{Max: 1},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{hourly(1000)}, Light: sluice.Light{Off: true}}},
		})
		first := join(t, g, sluice.JoinRequest{Agent: "first", Class: "p0"})
		pass(t, g, classed("first", "p0"))
		pass(t, g, classed("second", "p2"))
		if a := pool(t, g).Allocations["second"]; a.Allocated != 384 {
			t.Errorf("allocated %+v, want 25 of 65", a)
		}
		leave(t, first, first)
		if got := living(t, g); got != "second" {
			t.Errorf("alive are %q", got)
		}
		if a := pool(t, g).Allocations["second"]; a.Allocated != 1000 {
			t.Errorf("allocated %+v, want everything", a)
		}
		for range 998 { // nothing is kept for the one who left
			pass(t, g, classed("second", "p2"))
		}
		second := join(t, g, sluice.JoinRequest{Agent: "second"})
		leave(t, first) // once more: it is not first's slot any more
		pass(t, g, urgent("first"))
		if got := living(t, g); got != "first second" {
			t.Errorf("alive are %q, want the one who left as well: it has asked again", got)
		}
		if _, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "third"}); err == nil {
			t.Error("a second one got the only slot")
		}
		leave(t, second)
	})
}

// A lease that was given back stays so, whatever its owner does with it.
func TestLeaseThatWasLeftIsNotTakenAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, roomy())
		lease := join(t, g, sluice.JoinRequest{Agent: "a"})
		leave(t, lease)
		err := lease.WaitFor(t.Context(), "b")
		wantError(t, err, sluice.ErrEnded)
		if got := living(t, g); got != "" {
			t.Errorf("alive are %q", got)
		}
		if w, err := lease.StartNewWork(t.Context()); err != nil || !w.Start {
			t.Errorf("%+v, %v", w, err)
		}
	})
}

func TestMemberThatMakesNoSenseIsRefused(t *testing.T) {
	g := openConfig(t, sluice.Config{
		Agents:    map[string]sluice.Agent{"busy": {WaitsFor: many("a", 15)}},
		Resources: map[string]sluice.Resource{"api": {}, "other": {}},
	})
	long := strings.Repeat("x", store.MaxName+1)
	for name, c := range map[string]struct {
		member sluice.JoinRequest
		about  error
		says   string
	}{
		"no agent":          {sluice.JoinRequest{}, sluice.ErrInvalid, "names no agent"},
		"long agent":        {sluice.JoinRequest{Agent: long}, sluice.ErrInvalid, "256 bytes"},
		"long user":         {sluice.JoinRequest{Agent: "a", User: long}, sluice.ErrInvalid, "256 bytes"},
		"long machine":      {sluice.JoinRequest{Agent: "a", Machine: long}, sluice.ErrInvalid, "256 bytes"},
		"unknown class":     {sluice.JoinRequest{Agent: "a", Class: "p9"}, sluice.ErrInvalid, `unknown class "p9"`},
		"unknown resource":  {sluice.JoinRequest{Agent: "a", Resources: []string{"api", "mars"}}, sluice.ErrUnknownResource, `"mars" is not configured`},
		"waits for itself":  {sluice.JoinRequest{Agent: "a", WaitsFor: []string{"b", "a"}}, sluice.ErrInvalid, `cannot wait for "a"`},
		"waits for nobody":  {sluice.JoinRequest{Agent: "a", WaitsFor: []string{""}}, sluice.ErrInvalid, `cannot wait for ""`},
		"waits for a novel": {sluice.JoinRequest{Agent: "a", WaitsFor: []string{long}}, sluice.ErrInvalid, "cannot wait for"},
		"waits for all":     {sluice.JoinRequest{Agent: "a", WaitsFor: many("b", 17)}, sluice.ErrInvalid, "up to 16 others, not for 17"},
		"with configured":   {sluice.JoinRequest{Agent: "busy", WaitsFor: many("b", 2)}, sluice.ErrInvalid, "up to 16 others, not for 17"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := g.Join(t.Context(), c.member)
			e := wantError(t, err, c.about)
			if !strings.Contains(e.Error(), c.says) || len(e.Error()) > 200 || l != nil {
				t.Errorf("error is %q with %v, want one that says %q", e, l, c.says)
			}
			if errors.Is(err, sluice.ErrInvalid) && e.Agent != c.member.Agent {
				t.Errorf("the error is about agent %q", e.Agent)
			}
		})
	}
	if got := living(t, g); got != "" {
		t.Errorf("alive are %q", got)
	}
	twice := join(t, g, sluice.JoinRequest{Agent: "busy", WaitsFor: []string{"a1", "a2", "b"}}) // 16, each once
	wantError(t, twice.WaitFor(t.Context(), "b", "c"), sluice.ErrInvalid)
	wantError(t, twice.WaitFor(t.Context(), "busy"), sluice.ErrInvalid)
	if got := agent(t, g, "busy").WaitsFor; len(got) != 16 || got[15] != "b" {
		t.Errorf("it waits for %q", got)
	}
	leave(t, twice)
}

func many(name string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprint(name, i))
	}
	return list
}

func TestMemberIsWhatTheConfigurationSays(t *testing.T) {
	g := openConfig(t, sluice.Config{
		Agents: map[string]sluice.Agent{
			"known": {Class: "p0", User: "me", WaitsFor: []string{"b"}}, "*": {Class: "p1", User: "guest"},
		},
		Resources: map[string]sluice.Resource{"api": {}},
	})
	host, _ := os.Hostname() // a machine without a name has none
	for _, c := range []struct{ member, want sluice.JoinRequest }{
		{sluice.JoinRequest{Agent: "known"}, sluice.JoinRequest{Class: "p0", User: "me", Machine: host, WaitsFor: []string{"b"}}},
		{sluice.JoinRequest{Agent: "new"}, sluice.JoinRequest{Class: "p1", User: "guest", Machine: host}},
		{
			sluice.JoinRequest{Agent: "known", Class: "p2", User: "you", Machine: "m", WaitsFor: []string{"b", "c"}},
			sluice.JoinRequest{Class: "p2", User: "you", Machine: "m", WaitsFor: []string{"b", "c"}},
		},
	} {
		lease := join(t, g, c.member)
		a := agent(t, g, c.member.Agent)
		if a.Class != c.want.Class || a.User != c.want.User || a.Machine != c.want.Machine || !slices.Equal(a.WaitsFor, c.want.WaitsFor) {
			t.Errorf("%+v is %+v", c.member, a)
		}
		leave(t, lease)
	}
}

// If an agent names its resources, nothing is kept for it on the others.
func TestMemberOfSomeResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{
			"api": {Limits: []sluice.Limit{hourly(1000)}}, "other": {Limits: []sluice.Limit{hourly(1000)}},
		}})
		lease := join(t, g, sluice.JoinRequest{Agent: "a", Class: "p0", Resources: []string{"other"}})
		low := join(t, g, sluice.JoinRequest{Agent: "b", Class: "p2"})
		if p := pool(t, g); len(p.Allocations) != 1 || p.Allocations["b"].Allocated != 1000 {
			t.Errorf("allocations are %+v, want all of it to b", p.Allocations)
		}
		p, err := g.Pool(t.Context(), "other")
		if err != nil || p.Allocations["a"].Allocated != 615 || p.Allocations["b"].Allocated != 384 {
			t.Errorf("allocations are %+v (%v), want 40 to 25", p.Allocations, err)
		}
		if a := agent(t, g, "a"); a.Resource != "other" || a.Allocated != 615 {
			t.Errorf("it is %+v", a)
		}
		leave(t, lease, low)
	})
}

// The status of an agent shows the resource that it uses most.
func TestStatusOfAnAgentThatUsesTwoResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{
			"api": {Limits: []sluice.Limit{hourly(1000)}}, "other": {Limits: []sluice.Limit{hourly(500)}},
		}})
		spend(t, g, from("a"), 3)
		if a := agent(t, g, "a"); a.Resource != "api" || a.Allocated != 1000 || a.Used != 3 {
			t.Errorf("it is %+v", a)
		}
		spend(t, g, sluice.Request{Resource: "other", Agent: "a"}, 5)
		if a := agent(t, g, "a"); a.Resource != "other" || a.Allocated != 500 || a.Used != 5 {
			t.Errorf("it is %+v", a)
		}
	})
}

// Two processes see each other's agents, and one can take over an agent from the other.
func TestAgentsOfTwoProcesses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		config := sluice.Config{Slots: sluice.Slots{Max: 2}}
		one, two := s.open(t, config, hourly(1000)), s.open(t, config, hourly(1000))
		a := join(t, one, sluice.JoinRequest{Agent: "a", Class: "p1", User: "u", Machine: "m1"})
		b := join(t, two, sluice.JoinRequest{Agent: "b", Class: "p1", User: "u", Machine: "m2"})
		for _, g := range []*sluice.Gate{one, two} {
			if got := living(t, g); got != "a b" {
				t.Errorf("alive are %q", got)
			}
			if a := pool(t, g).Allocations["a"]; a.Allocated != 500 {
				t.Errorf("allocated %+v, want half", a)
			}
		}
		_, err := one.Join(t.Context(), sluice.JoinRequest{Agent: "c", User: "u"})
		wantError(t, err, sluice.ErrSlots)

		a.Kill()
		time.Sleep(time.Minute)
		taken := join(t, two, sluice.JoinRequest{Agent: "a", Class: "p1", User: "u", Machine: "m2"})
		got := agent(t, one, "a")
		if got.Machine != "m2" || !got.LeaseStartedAt.Equal(bubbleStart) {
			t.Errorf("it is %+v, want the same lease on another machine", got)
		}
		wantIn(t, "its lease expires", got.LeaseExpiresAt, 5*time.Minute)
		time.Sleep(20 * time.Minute)
		if got := living(t, one); got != "a b" {
			t.Errorf("alive are %q", got)
		}
		if err := two.Close(); err != nil {
			t.Error(err)
		}
		if got := living(t, one); got != "" {
			t.Errorf("alive are %q after their process has closed", got)
		}
		leave(t, taken, b)
	})
}

// An agent that was taken over leaves without ending the lease of the new one.
func TestLeaveOfAnAgentThatAnotherMachineHasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		one, two := s.open(t, sluice.Config{}, roomy()), s.open(t, sluice.Config{}, roomy())
		old := join(t, one, sluice.JoinRequest{Agent: "a", Machine: "m1"})
		taken := join(t, two, sluice.JoinRequest{Agent: "a", Machine: "m2"})
		leave(t, old)
		if got := living(t, one); got != "a" {
			t.Errorf("alive are %q, want the one on m2", got)
		}
		leave(t, taken)
		if got := living(t, one); got != "" {
			t.Errorf("alive are %q", got)
		}
	})
}

func TestCloseLeavesForEveryone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		g, other := s.open(t, sluice.Config{}, roomy()), s.open(t, sluice.Config{}, roomy())
		var leases []*sluice.Lease
		for i := range 20 {
			leases = append(leases, join(t, g, sluice.JoinRequest{Agent: fmt.Sprint("agent", i)}))
		}
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		if got := living(t, other); got != "" {
			t.Errorf("alive are %q", got)
		}
		leave(t, leases...)
		_, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "late"})
		wantError(t, err, sluice.ErrClosed)
		_, err = g.StartNewWork(t.Context(), "late")
		wantError(t, err, sluice.ErrClosed)
		_, err = g.StartDelay(t.Context(), "api", time.Minute)
		wantError(t, err, sluice.ErrClosed)
	})
	for _, c := range []sluice.Config{{}, {Leases: sluice.Leases{Off: true}}} {
		g := openConfig(t, c)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
		_, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "late"})
		if e := wantError(t, err, sluice.ErrClosed); strings.Contains(e.Error(), "\n") {
			t.Errorf("it says %q", e)
		}
	}
}

func TestJoinRacesWithClose(t *testing.T) {
	for range 50 {
		g := open(t, roomy())
		var wg sync.WaitGroup
		begun := make(chan struct{}, 20)
		for i := range 20 {
			wg.Go(func() {
				for {
					l, err := g.Join(context.Background(), sluice.JoinRequest{Agent: fmt.Sprint("agent", i)})
					select {
					case begun <- struct{}{}:
					default:
					}
					if err != nil {
						wantClosed(t, err)
						return
					}
					if i%2 == 0 {
						if err := l.WaitFor(context.Background(), "x"); err != nil && !errors.Is(err, sluice.ErrEnded) {
							wantClosed(t, err)
						}
					}
					if i%3 == 0 {
						if err := l.Leave(); err != nil {
							wantClosed(t, err)
						}
					}
				}
			})
		}
		<-begun
		if err := g.Close(); err != nil && !errors.Is(err, sluice.ErrClosed) {
			t.Error(err)
		}
		wg.Wait()
	}
}

func TestLeaseTellsThatTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		g := s.open(t, sluice.Config{}, roomy())
		lease := join(t, g, sluice.JoinRequest{Agent: "a"})
		s.fail(store.ErrUnavailable)
		if err := lease.Err(); err != nil {
			t.Errorf("no heartbeat has failed yet: %v", err)
		}
		time.Sleep(2*time.Minute + time.Second)
		if e := wantError(t, lease.Err(), sluice.ErrStore); !errors.Is(e, store.ErrUnavailable) {
			t.Errorf("the error is %v", e)
		}
		wantError(t, lease.WaitFor(t.Context(), "b"), sluice.ErrStore)
		_, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "b"})
		wantError(t, err, sluice.ErrStore)
		_, err = lease.StartNewWork(t.Context())
		wantError(t, err, sluice.ErrStore)
		_, err = g.Pool(t.Context(), "api")
		wantError(t, err, sluice.ErrStore)
		_, err = g.StartDelay(t.Context(), "api", time.Minute)
		wantError(t, err, sluice.ErrStore)
		time.Sleep(10 * time.Minute) // the lease has run out meanwhile
		s.recover()
		if got := living(t, g); got != "" {
			t.Errorf("alive are %q", got)
		}
		time.Sleep(2 * time.Minute) // it is taken anew
		if a := agent(t, g, "a"); lease.Err() != nil || !slices.Equal(a.WaitsFor, []string{"b"}) {
			t.Errorf("it is %+v, %v; want it back, with what it declared meanwhile", a, lease.Err())
		}
		s.fail(store.ErrUnavailable)
		wantError(t, lease.Leave(), sluice.ErrStore)
		s.recover()
		leave(t, lease)
	})
}

// A Join that fails on some resource leaves no lease and no slot.
func TestJoinThatFailsHalfWayTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShared(t)
		g := s.open(t, sluice.Config{Slots: sluice.Slots{Max: 1}}, roomy())
		api := "api"
		s.downPool.Store(&api)
		_, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "a"})
		wantError(t, err, sluice.ErrStore)
		s.downPool.Store(nil)
		leave(t, join(t, g, sluice.JoinRequest{Agent: "b"}))
	})
}

// Requests of a lease have its class and user.
func TestRequestsOfALease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Agents:    map[string]sluice.Agent{"known": {Class: "p1", User: "me"}},
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(10, time.Minute)}}},
		})
		for _, c := range []struct {
			member sluice.JoinRequest
			want   sluice.Request
		}{
			{sluice.JoinRequest{Agent: "known"}, sluice.Request{Resource: "api", Agent: "known", Class: "p1", User: "me"}},
			{sluice.JoinRequest{Agent: "known", Class: "p0", User: "you"}, sluice.Request{Resource: "api", Agent: "known", Class: "p0", User: "you"}},
			{sluice.JoinRequest{Agent: "other"}, sluice.Request{Resource: "api", Agent: "other", Class: "p2"}},
		} {
			lease := join(t, g, c.member)
			if got := lease.Request("api"); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%+v asks for %+v, want %+v", c.member, got, c.want)
			}
			pass(t, g, lease.Request("api"))
			if err := lease.Leave(); err != nil {
				t.Error(err)
			}
		}
	})
}
