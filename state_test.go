package sluice_test

import (
	"context"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

// wantState fails unless the resource is in the given state, with a reason that contains the words.
func wantState(tb testing.TB, g *sluice.Gate, want, words string) inspect.ResourceStatus {
	tb.Helper()
	s := state(tb, g)
	if s.State != want || !strings.Contains(s.Reason, words) || s.Reason == "" {
		tb.Errorf("the state is %s: %q, want %s: %q", s.State, s.Reason, want, words)
	}
	return s
}

func TestStatesFollowWhatHappens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(2, 5*time.Minute))
		wantState(t, g, inspect.StateIdle, "no request was sent yet")
		pass(t, g, from("a"))
		wantState(t, g, inspect.StateFlowing, "without waiting")
		pass(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("b", from("b"))
		if s := wantState(t, g, inspect.StateQueueing, "1 request waits: the limit "); !strings.Contains(s.Reason, "is full (2 of 2 used)") || s.Until == nil {
			t.Errorf("it says %q until %v, want how full the limit is and when it has room", s.Reason, s.Until)
		}
		if err := g.Pause(t.Context(), "api", time.Minute, "maintenance"); err != nil {
			t.Fatal(err)
		}
		if s := wantState(t, g, inspect.StatePaused, "maintenance"); s.Until == nil || !s.Until.Equal(*s.PausedUntil) {
			t.Errorf("it is paused until %v, want %v", s.Until, s.PausedUntil)
		}
		if err := g.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		c.order()
		wantState(t, g, inspect.StateFlowing, "")
		time.Sleep(time.Minute)
		wantState(t, g, inspect.StateIdle, "in the last minute")
	})
}

// The reason of a paused model names it; a pause of the whole resource comes first.
func TestAPausedModelIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Minute))
		opus := sluice.Request{Resource: "api", Agent: "a", Model: "opus"}
		held := acquire(t, g, opus)
		answer(t, held, sluice.Answer{Verdict: store.VerdictThrottled, Scope: sluice.PerModel, Cause: "status 429"})
		end(t, held)
		if s := wantState(t, g, inspect.StatePaused, "model opus: status 429"); s.Consecutive429 != 1 || s.PausedUntil != nil {
			t.Errorf("%d refusals in a row, the whole resource is paused until %v", s.Consecutive429, s.PausedUntil)
		}
		c := &crowd{tb: t, gate: g}
		c.ask("held", opus)
		if list, err := g.Why(t.Context(), "api"); err != nil || len(list) != 1 || list[0].Reason != "paused" || list[0].Scope != "model=opus" {
			t.Errorf("why says %+v, %v", list, err)
		}
		if err := g.Pause(t.Context(), "api", time.Minute, "maintenance"); err != nil {
			t.Fatal(err)
		}
		wantState(t, g, inspect.StatePaused, "maintenance")
		if list, err := g.Why(t.Context(), "api"); err != nil || len(list) != 1 || list[0].Scope != "" {
			t.Errorf("why says %+v, %v, want the whole resource", list, err)
		}
		c.order()
	})
}

// A billing stop says what a person can do, and a success ends it. It holds no request.
func TestABillingStopIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &record{}
		g := openConfig(t, sluice.Config{Events: kept.add, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(10, time.Minute)}}}})
		opus := sluice.Request{Resource: "api", Agent: "a", Model: "opus"}
		say := func(a sluice.Answer) {
			t.Helper()
			held := acquire(t, g, opus)
			answer(t, held, a)
			end(t, held)
		}
		say(sluice.Answer{Verdict: store.VerdictBilling, Status: 400, Scope: sluice.PerKey, Cause: "the credit is used up"})
		const words = "billing stop: the credit is used up; the provider refuses requests until you add credit or raise the limit there"
		if s := wantState(t, g, inspect.StatePaused, words); !s.BillingStop || s.Until != nil || s.PausedUntil != nil {
			t.Errorf("billing stop %v until %v, paused until %v", s.BillingStop, s.Until, s.PausedUntil)
		}
		if e := kept.last(t, inspect.EventState); e.State != inspect.StatePaused || e.Reason != words {
			t.Errorf("told %+v", e)
		}
		if f := inside.Of(g).FailingFor("api"); f != 0 {
			t.Errorf("the provider is well, and failing for %v", f)
		}
		say(sluice.Answer{Verdict: store.VerdictBilling, Status: 429, Scope: sluice.PerModel | sluice.PerKey, Cause: "the plan has no quota for the model"})
		wantState(t, g, inspect.StatePaused, "billing stop: model opus: the plan has no quota for the model; ")
		time.Sleep(15 * time.Minute)
		wantState(t, g, inspect.StateIdle, "the last one met a billing stop: model opus: ")
		say(sluice.Answer{Verdict: store.VerdictBilling, Status: 402})
		wantState(t, g, inspect.StatePaused, "billing stop: status 402; ")
		say(sluice.Answer{Verdict: store.VerdictOK, Status: 200})
		if s := wantState(t, g, inspect.StateFlowing, "without waiting"); s.BillingStop {
			t.Error("it is stopped still")
		}
		if e := kept.last(t, inspect.EventState); e.State != inspect.StateFlowing || e.Was != inspect.StatePaused || e.Reason != "the provider serves the account again" {
			t.Errorf("told %+v", e)
		}
		say(sluice.Answer{Verdict: store.VerdictBilling})
		wantState(t, g, inspect.StatePaused, "billing stop: the account is not paid for; ")
		if err := g.Pause(t.Context(), "api", time.Minute, "maintenance"); err != nil { // it does not hide the billing stop
			t.Fatal(err)
		}
		if s := wantState(t, g, inspect.StatePaused, "billing stop: the account is not paid for; "); !s.BillingStop || s.Until != nil || !strings.HasSuffix(s.Reason, "; besides it is paused: maintenance") {
			t.Errorf("billing stop %v until %v: %s", s.BillingStop, s.Until, s.Reason)
		}
	})
}

// A full limit is not trouble: nothing is wrong while requests wait for it.
func TestAFullLimitIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(2, time.Minute))
		pass(t, g, from("a"))
		pass(t, g, from("a"))
		if s := wantState(t, g, inspect.StateFlowing, ""); s.LightBinds {
			t.Error("the light of a flow binds")
		}
	})
}

// A quota that is used up until its reset never lets requests pass, whether they wait, are refused or do not come.
func TestAUsedUpLimitIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 20, Window: time.Hour, Reset: bubbleStart.Add(time.Hour)}}, Light: sluice.Light{Off: true}})
		spend(t, g, from("a"), 20)
		told := func(state, words string) {
			t.Helper()
			if s := wantState(t, g, state, words); s.Until == nil || !s.Until.Equal(*s.Limits[0].ResetAt) {
				t.Errorf("%s until %v, want the reset", s.State, s.Until)
			}
		}
		told(inspect.StateFlowing, "no request waits, but the limit hour is used up (20 of 20 used)")
		for range 3 {
			time.Sleep(30 * time.Second)
			wantRefused(t, g, from("b"), "limit")
			told(inspect.StateQueueing, "the limit hour is used up (20 of 20 used): requests that need it wait or are refused")
		}
		time.Sleep(time.Minute)
		told(inspect.StateIdle, "no request was sent in the last minute; the limit hour is used up (20 of 20 used)")
		time.Sleep(time.Hour)
		if s := wantState(t, g, inspect.StateIdle, "no request was sent in the last minute"); s.Until != nil || strings.Contains(s.Reason, "used up") {
			t.Errorf("after the reset: %s until %v", s.Reason, s.Until)
		}
	})
}

// Refused requests count as held by a window that moves, or by the light, too. Requests that others still get do not.
func TestRefusedRequestsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(2, time.Hour))
		spend(t, g, from("a"), 2)
		if s := wantState(t, g, inspect.StateFlowing, "no request waits, but the limit "); s.Until != nil {
			t.Errorf("until %v, but room comes back bit by bit", s.Until)
		}
		time.Sleep(10 * time.Second)
		wantRefused(t, g, from("b"), "limit")
		wantState(t, g, inspect.StateQueueing, "is full (2 of 2 used): requests that need it wait or are refused")
	})
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{
			Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 10, Window: time.Hour}}, Light: sluice.Light{Static: true},
		})
		boss := sluice.Request{Resource: "api", Agent: "boss", Class: "p0"}
		spend(t, g, boss, 8)
		wantState(t, g, inspect.StateFlowing, "requests pass without waiting")
		time.Sleep(10 * time.Second)
		spend(t, g, boss, 1)
		time.Sleep(10 * time.Second)
		wantRefused(t, g, sluice.Request{Resource: "api", Agent: "low", Class: "p2"}, "light")
		wantState(t, g, inspect.StateQueueing, "the light on the limit hour is amber (9 of 10 used): lower classes wait or are refused")
	})
}

// A budget that refuses is told where requests cost money.
func TestAUsedUpBudgetIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := func(b sluice.Budget) *sluice.Gate {
			limits := []sluice.Limit{rolling(100, time.Minute)}
			return openConfig(t, sluice.Config{Budgets: []sluice.Budget{b}, Resources: map[string]sluice.Resource{"api": {Paid: true, Limits: limits}, "free": {Limits: limits}}})
		}
		pay := sluice.Request{Resource: "api", Agent: "a", Cost: []sluice.Amount{usd(1_000_000)}}
		g := open(sluice.Budget{Name: "all", Micros: 1_000_000, Period: sluice.BudgetDay})
		pass(t, g, pay)
		_, err := g.Try(t.Context(), pay)
		wantError(t, err, sluice.ErrBudget)
		const words = "the budget all is used up"
		if s := wantState(t, g, inspect.StateQueueing, words+": requests that it pays for are refused"); s.Until == nil {
			t.Error("it does not say until when")
		}
		if st, err := g.Status(t.Context()); err != nil || st.Resources[0].State != inspect.StateQueueing || st.Resources[1].Reason != "no request was sent yet" {
			t.Errorf("%+v, %v", st.Resources, err)
		}
		time.Sleep(time.Minute)
		wantState(t, g, inspect.StateIdle, "no request was sent in the last minute; "+words)

		g = open(sluice.Budget{Name: "each", Per: sluice.BudgetAgent, Micros: 1_000_000})
		pass(t, g, pay)
		const each = `the budget each of agent "a" is used up`
		wantState(t, g, inspect.StateFlowing, "no request waits, but "+each)
		time.Sleep(time.Minute)
		if s := wantState(t, g, inspect.StateIdle, each); !s.UsedUp || s.Until != nil { // it never begins anew
			t.Errorf("used up: %v, until %v", s.UsedUp, s.Until)
		}
	})
}

// A budget refuses requests that cost more than what is left of it.
func TestABudgetWithTooLittleLeftIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			spent, asks int64
			words       string
		}{
			{980_000, 50_000, "the budget all has 0.02 usd left: larger requests are refused"},
			{800_000, 500_000, "the budget all has 0.20 usd left: larger requests are refused"},
			{990_000, 0, "the budget all has 0.01 usd left: larger requests are refused"},
			{800_000, 0, ""},
		} {
			g := openConfig(t, sluice.Config{
				Budgets:   []sluice.Budget{{Name: "all", Micros: 1_000_000, Period: sluice.BudgetDay}},
				Resources: map[string]sluice.Resource{"api": {Paid: true, Limits: []sluice.Limit{rolling(100, time.Minute)}}},
			})
			ask := func(micros int64) sluice.Request {
				return sluice.Request{Resource: "api", Agent: "a", Cost: []sluice.Amount{usd(micros)}}
			}
			pass(t, g, ask(c.spent))
			state, words := inspect.StateFlowing, "no request waits, but "+c.words
			if c.asks > 0 {
				_, err := g.Try(t.Context(), ask(c.asks))
				wantError(t, err, sluice.ErrBudget)
				state, words = inspect.StateQueueing, c.words
			}
			if c.words == "" {
				words = "requests pass without waiting"
			}
			if s := wantState(t, g, state, words); s.UsedUp != (c.words != "") || (s.Until != nil) != s.UsedUp {
				t.Errorf("%+v: used up: %v, until %v", c, s.UsedUp, s.Until)
			}
			time.Sleep(time.Minute)
			if s := wantState(t, g, inspect.StateIdle, c.words); s.UsedUp != (c.words != "") {
				t.Errorf("%+v: used up: %v a minute later", c, s.UsedUp)
			}
		}
		all, each := sluice.Budget{Name: "all", Micros: 1_000_000}, sluice.Budget{Name: "each", Per: sluice.BudgetAgent, Micros: 990_000}
		for _, list := range [][]sluice.Budget{{all, each}, {each, all}} { // one that has nothing left comes first
			g := openConfig(t, sluice.Config{Budgets: list, Resources: map[string]sluice.Resource{"api": {Paid: true, Limits: []sluice.Limit{rolling(100, time.Minute)}}}})
			pass(t, g, sluice.Request{Resource: "api", Agent: "a", Cost: []sluice.Amount{usd(990_000)}})
			wantState(t, g, inspect.StateFlowing, `no request waits, but the budget each of agent "a" is used up`)
		}
	})
}

// Callers can state dollars to a provider that counts no tokens.
func TestABudgetOfStatedDollarsIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []sluice.Limit{rolling(100, time.Minute)}
		g := openConfig(t, sluice.Config{
			Budgets:   []sluice.Budget{{Name: "all", Micros: 1_000_000}},
			Resources: map[string]sluice.Resource{"api": {Limits: limits}, "free": {Limits: limits}},
		})
		pass(t, g, sluice.Request{Resource: "api", Agent: "a", Cost: []sluice.Amount{usd(1_000_000)}})
		pass(t, g, sluice.Request{Resource: "free", Agent: "a"})
		wantState(t, g, inspect.StateQueueing, "the budget all is used up: requests that it pays for are refused")
		if s, err := g.Resource(t.Context(), "free"); err != nil || s.UsedUp || s.State != inspect.StateFlowing {
			t.Errorf("%+v, %v", s, err)
		}
	})
}

// Grants are told what is left of limits. That takes no reading of budgets, and a round of the watcher takes one.
func TestBudgetsAreReadSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &laggard{Store: memstore.New()}
		defer func() { _ = s.Store.Close() }()
		limits := []sluice.Limit{rolling(100, time.Minute)}
		g, err := sluice.OpenWithStore(t.Context(), s, sluice.Config{
			Budgets:   []sluice.Budget{{Name: "all", Micros: 1_000_000}},
			Resources: map[string]sluice.Resource{"api": {Paid: true, Limits: limits}, "more": {Paid: true, Limits: limits}, "most": {Paid: true, Limits: limits}},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = g.Close() }()
		if _, err := g.Budgets(t.Context()); err != nil {
			t.Fatal(err)
		}
		ofBudgets := s.reads.Swap(0)
		if l, callers, err := inside.Of(g).Levels(t.Context(), "api"); err != nil || len(l) != 1 || l[0].Remaining != 100 || callers != 0 {
			t.Errorf("%+v, %d callers, %v", l, callers, err)
		}
		if n := s.reads.Swap(0); n != 1 {
			t.Errorf("%d pools are read for the levels of one", n)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { inside.Of(g).WatchStates(ctx); close(done) }()
		synctest.Wait() // one round
		if n := s.reads.Load(); n != 3+ofBudgets {
			t.Errorf("%d pools are read in a round, want 3 resources and %d of the budget", n, ofBudgets)
		}
		stop()
		<-done
	})
}

func TestAHeldClassIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{
			Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 10, Window: time.Hour}}, Light: sluice.Light{Static: true},
		})
		spend(t, g, sluice.Request{Resource: "api", Agent: "boss", Class: "p0"}, 9)
		c := &crowd{tb: t, gate: g}
		c.ask("low", sluice.Request{Resource: "api", Agent: "low", Class: "p2"})
		if s := wantState(t, g, inspect.StateQueueing, "the light on the limit hour holds p2 (9 of 10 used)"); !s.LightBinds || s.Light != "amber" {
			t.Errorf("the light is %s and binds: %v", s.Light, s.LightBinds)
		}
		c.order()
	})
}

// Each class stops where the light begins to hold it, before its color changes.
func TestAClassThatTheLightHoldsIsNamedWhereItStops(t *testing.T) {
	for class, want := range map[string]struct {
		sent   int
		reason string
	}{
		"p2": {8, "the light on the limit hour holds p2 (8 of 10 used)"},
		"p0": {9, "the light on the limit hour holds p0 (9 of 10 used)"},
	} {
		synctest.Test(t, func(t *testing.T) {
			g := openResource(t, sluice.Resource{
				Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 10, Window: time.Hour}}, Light: sluice.Light{Static: true, Red: 10},
			})
			sent := 0
			for ; ; sent++ {
				if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "agent", Class: class}); err != nil {
					break
				}
				time.Sleep(2 * time.Second)
			}
			wantState(t, g, inspect.StateQueueing, want.reason)
			if sent != want.sent {
				t.Errorf("%d requests of %s went, want %d", sent, class, want.sent)
			}
		})
	}
}

func TestAnOutageDegrades(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newAlarmed(t)
		g := s.open(t, sluice.Config{}, rolling(10, time.Minute))
		s.lose("connection refused")
		got := wantState(t, g, inspect.StateDegraded, "the store is out of reach: connection refused; this process lets all requests go")
		for _, field := range []string{"in_flight", "sent", "throttled", "light", "used_up", "consecutive_429", "throttled_7d"} {
			if n, there := asJSON(t, got).(map[string]any)[field]; n != nil || !there {
				t.Errorf("%s is %v while the store is away, want null", field, n)
			}
		}
		s.back(0)
		wantState(t, g, inspect.StateIdle, "")
	})
}

// A size that is not known yet is null, not 0.
func TestUnknownNumbersAreNull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, sluice.Limit{Name: "learned", Kind: sluice.Rolling, Window: time.Minute})
		pass(t, g, from("a"))
		s, err := g.Status(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		p, err := g.Pool(context.Background(), "api")
		if err != nil {
			t.Fatal(err)
		}
		for what, v := range map[string]any{
			"limit": at(t, asJSON(t, s), "resources", 0, "limits", 0, "limit"), "remaining": at(t, asJSON(t, s), "resources", 0, "limits", 0, "remaining"),
			"allocated": at(t, asJSON(t, s), "agents", 0, "allocated"), "totalLimit": at(t, asJSON(t, p), "totalLimit"),
			"allocations": at(t, asJSON(t, p), "allocations", "a", "allocated"),
		} {
			if v != nil {
				t.Errorf("%s is %v, want null", what, v)
			}
		}
	})
}

// refusedDial returns the error of net.Dial if nothing listens.
func refusedDial() error {
	return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9}, Err: syscall.ECONNREFUSED}
}

// Every process that shares the store reports an unreachable provider at once, until a request succeeds.
func TestADeadProviderIsFailingEverywhere(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, kept := newShared(t), &record{}
		g := s.open(t, sluice.Config{Events: kept.add}, rolling(10, time.Minute))
		other := s.open(t, sluice.Config{}, rolling(10, time.Minute))
		a := sluice.Answer{Verdict: store.VerdictUnreachable, Err: refusedDial()}
		if err := g.Observe(t.Context(), from("a"), a); err != nil {
			t.Fatal(err)
		}
		words := "the last send failed: connection refused by 127.0.0.1:9; new requests are tried"
		wantState(t, g, inspect.StateFailing, words)
		wantState(t, other, inspect.StateFailing, words)
		if inside.Of(g).FailingFor("api") == 0 || inside.Of(other).FailingFor("api") != 0 {
			t.Error("FailingFor is not of this process's own sends")
		}
		if e := kept.last(t, inspect.EventUpstream); e.Reason != "refused" || e.Error != "connection refused by 127.0.0.1:9" || e.Agent != "a" {
			t.Errorf("the failure is told as %+v", e)
		}
		if e := kept.last(t, inspect.EventState); e.State != inspect.StateFailing || e.Was != inspect.StateIdle || !strings.Contains(e.Reason, words) {
			t.Errorf("the state is told as %+v", e)
		}
		for range 3 { // it is told once
			_ = g.Observe(t.Context(), from("a"), a)
		}
		if n := kept.count(inspect.EventState); n != 1 {
			t.Errorf("%d changes of state were told, want 1", n)
		}
		time.Sleep(12 * time.Second)
		ok := acquire(t, g, from("a"))
		answer(t, ok, sluice.Answer{Verdict: store.VerdictOK, Status: 404})
		end(t, ok)
		wantState(t, g, inspect.StateFlowing, "")
		wantState(t, other, inspect.StateFlowing, "")
		if e := kept.last(t, inspect.EventState); e.State != inspect.StateFlowing || e.Was != inspect.StateFailing || e.ForMS != 12_000 {
			t.Errorf("the end is told as %+v", e)
		}
	})
}

// One broken connection among many that work does not make the provider failing.
func TestAFailureBeforeASuccessIsNoTrouble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Minute))
		sent := time.Now()
		time.Sleep(time.Second)
		ok := acquire(t, g, from("a"))
		answer(t, ok, sluice.Answer{Verdict: store.VerdictOK, Status: 200})
		end(t, ok)
		if err := g.Observe(t.Context(), from("b"), sluice.Answer{Verdict: store.VerdictUnreachable, Err: io.EOF, SentAt: sent}); err != nil {
			t.Fatal(err)
		}
		wantState(t, g, inspect.StateFlowing, "")
		if err := g.Observe(t.Context(), from("b"), sluice.Answer{Verdict: store.VerdictUnreachable, Err: io.EOF, SentAt: time.Now()}); err != nil {
			t.Fatal(err)
		}
		wantState(t, g, inspect.StateFailing, "the connection broke")
	})
}

// Four errors of the provider in a row can be chance, five are trouble. Other errors do not count.
func TestFiveErrorsOfTheProviderAreFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(20, time.Minute))
		send := func(a sluice.Answer) {
			ticket := acquire(t, g, from("a"))
			answer(t, ticket, a)
			end(t, ticket)
		}
		for range 4 {
			send(sluice.Answer{Verdict: store.VerdictError, Status: 502})
		}
		send(sluice.Answer{Verdict: store.VerdictError, Status: 408})
		send(sluice.Answer{Verdict: store.VerdictError})
		wantState(t, g, inspect.StateFlowing, "")
		send(sluice.Answer{Verdict: store.VerdictError, Status: 500})
		wantState(t, g, inspect.StateFailing, "the last 5 sends failed: status 500")
		send(sluice.Answer{Verdict: store.VerdictOK, Status: 200})
		wantState(t, g, inspect.StateFlowing, "")
	})
}

// If no requests are sent any more, the last failure is forgotten after a while.
func TestOldTroubleIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(20, time.Minute))
		pass(t, g, from("a"))
		if err := g.Observe(t.Context(), from("a"), sluice.Answer{Verdict: store.VerdictUnreachable, Err: refusedDial()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(14 * time.Minute)
		wantState(t, g, inspect.StateFailing, "")
		time.Sleep(2 * time.Minute)
		wantState(t, g, inspect.StateIdle, "the last send failed: connection refused")
	})
}

func TestDoReportsADeadProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := &record{}
		g := openConfig(t, sluice.Config{Events: kept.add, Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(20, time.Minute)}}}})
		dead := true
		err := g.Do(t.Context(), from("a"), func(context.Context, sluice.Ticket) (sluice.Answer, error) {
			if dead {
				wantState(t, g, map[bool]string{true: inspect.StateFlowing, false: inspect.StateFailing}[kept.count(inspect.EventUpstream) == 0], "")
				dead = kept.count(inspect.EventUpstream) < 2
				return sluice.Answer{Verdict: store.VerdictError}, refusedDial()
			}
			return sluice.Answer{Verdict: store.VerdictOK, Status: 200}, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if n := kept.count(inspect.EventUpstream); n != 3 {
			t.Errorf("%d failures were told, want 3", n)
		}
		wantState(t, g, inspect.StateFlowing, "")
	})
}

// The watcher reports changes by time and by other processes. It does not report states that come and go.
func TestStatesAreWatched(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, kept := newShared(t), &record{}
		g := s.open(t, sluice.Config{Events: kept.add}, rolling(2, 30*time.Second))
		other := s.open(t, sluice.Config{}, rolling(2, 30*time.Second))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { inside.Of(g).WatchStates(ctx); close(done) }()
		var states []string
		changed := func(d time.Duration) string {
			time.Sleep(d)
			synctest.Wait()
			var now []string
			for _, e := range kept.all(inspect.EventState) {
				now = append(now, e.State)
			}
			now, states = now[len(states):], now
			return strings.Join(now, " ")
		}
		if got := changed(10 * time.Second); got != "" {
			t.Errorf("told %q while nothing happened", got)
		}
		pass(t, other, from("a"))
		pass(t, other, from("a"))
		if got := changed(12 * time.Second); got != "flowing" {
			t.Errorf("told %q of another process's sends, want flowing", got)
		}
		c := &crowd{tb: t, gate: other}
		c.ask("b", from("b"))
		if got := changed(8 * time.Second); got != "queueing" {
			t.Errorf("told %q of somebody who waits, want queueing", got)
		}
		c.order()
		if err := other.Pause(t.Context(), "api", 20*time.Second, "maintenance"); err != nil {
			t.Fatal(err)
		}
		if got := changed(2 * time.Second); got != "paused" {
			t.Errorf("told %q of a pause, want paused", got)
		}
		if err := other.Observe(t.Context(), from("a"), sluice.Answer{Verdict: store.VerdictUnreachable, Err: refusedDial()}); err != nil {
			t.Fatal(err)
		}
		if got := changed(2 * time.Second); got != "failing" {
			t.Errorf("told %q of a provider that another process cannot reach, want failing", got)
		}
		stop()
		<-done
	})
}

// The watcher reports an advice once: when there are two refusals within a week, not at the first and not at the third.
func TestAdviceIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &record{}
		g := newShared(t).open(t, sluice.Config{Events: kept.add}, places(wide))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { inside.Of(g).WatchStates(ctx); close(done) }()
		for n, want := range []int{0, 1, 1} {
			refuse(t, g, sluice.Answer{})
			time.Sleep(time.Hour)
			if got := kept.count(inspect.EventAdvice); got != want {
				t.Errorf("%d advices after %d refusals, want %d", got, n+1, want)
			}
		}
		if e := kept.all(inspect.EventAdvice); len(e) != 1 || e[0].Count != 2 || !strings.Contains(e[0].Reason, "resources.api.use: 95%") {
			t.Errorf("%+v", e)
		}
		if a := state(t, g).Advice; a == nil || a.Setting != "resources.api.use" {
			t.Errorf("%+v", a)
		}
		stop()
		<-done
	})
}

// A watcher without listeners finds the advice too. It used to call a function that was nil.
func TestStatesAreWatchedWithoutEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(wide))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { inside.Of(g).WatchStates(ctx); close(done) }()
		for range 2 {
			refuse(t, g, sluice.Answer{})
			time.Sleep(time.Hour)
		}
		if state(t, g).Advice == nil {
			t.Error("two refusals raise no advice")
		}
		stop()
		<-done
	})
}

// The setting of an advice follows what is seen at the moment, such as use outside the gate. One that comes back is
// reported again after a day, or after another refusal.
func TestAdviceThatComesAndGoesIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &record{}
		g := newShared(t).open(t, sluice.Config{Events: kept.add}, hourly(1000))
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { inside.Of(g).WatchStates(ctx); close(done) }()
		use := func(outside int64) (setting string) { // for one window
			ticket := acquire(t, g, from("a"))
			answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "hour", Size: 1000, Remaining: 999 - outside, ResetIn: 50 * time.Minute}}})
			end(t, ticket)
			time.Sleep(10 * time.Second)
			setting = state(t, g).Advice.Setting
			time.Sleep(time.Hour)
			return setting
		}
		for range 2 {
			refuse(t, g, sluice.Answer{})
			time.Sleep(2 * time.Hour)
		}
		seen := map[string]bool{}
		round := func() {
			seen[use(300)], seen[use(0)] = true, true
		}
		round()
		told := kept.count(inspect.EventAdvice)
		if len(seen) != 2 || told < 2 {
			t.Fatalf("%d advices about %v, want two settings that come and go", told, seen)
		}
		for range 4 {
			round()
		}
		if got := kept.count(inspect.EventAdvice); got != told {
			t.Errorf("%d advices within a day, want %d", got, told)
		}
		refuse(t, g, sluice.Answer{})
		time.Sleep(2 * time.Hour)
		round()
		more := kept.count(inspect.EventAdvice)
		if more <= told {
			t.Error("another refusal raises none")
		}
		time.Sleep(24 * time.Hour)
		round()
		if got := kept.count(inspect.EventAdvice); got <= more {
			t.Error("a day later none is told")
		}
		stop()
		<-done
	})
}

// The agents that used a window hold it, even after their tickets are closed. The one with the most use comes first,
// and use without the gate is named too.
func TestWhyNamesWhoUsedTheWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(10, time.Minute))
		for agent, n := range map[string]int{"big": 5, "abe": 1, "mid": 2} {
			for range n {
				pass(t, g, from(agent))
			}
		}
		out := acquire(t, g, from("mid"))
		answer(t, out, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: rolling(1, 1).Name, Size: 10, Remaining: 0, ResetIn: store.NotStated}}})
		end(t, out)
		time.Sleep(10 * time.Second)
		c := &crowd{tb: t, gate: g}
		c.ask("waits", from("waits"))
		list, err := g.Why(t.Context(), "api")
		if err != nil || len(list) != 1 || strings.Join(list[0].HeldBy, " ") != "big mid (outside the gate) abe" && strings.Join(list[0].HeldBy, " ") != "big mid abe (outside the gate)" {
			t.Errorf("why says %+v (%v), want held by big, mid, abe and somebody outside", list, err)
		}
		c.order()
	})
}
