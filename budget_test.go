package sluice_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/filestore"
	_ "github.com/sluicehq/sluice/store/redisstore"
)

func usd(n int64) sluice.Amount { return sluice.Amount{Unit: sluice.USD, N: n} }

// told collects events and alerts.
type told struct {
	mu     sync.Mutex
	events []inspect.Event
	alerts []inspect.Alert
}

func (h *told) event(e inspect.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.events = append(h.events, e)
}

func (h *told) alert(a inspect.Alert) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.alerts = append(h.alerts, a)
}

func (h *told) of(kind string) (list []inspect.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, e := range h.events {
		if e.Kind == kind {
			list = append(list, e)
		}
	}
	return list
}

// onStores runs a test on every kind of store. open opens a gate as a process of its own would.
func onStores(t *testing.T, test func(t *testing.T, open func(sluice.Config) *sluice.Gate)) {
	t.Helper()
	gates := func(url string) func(*testing.T) {
		return func(t *testing.T) {
			test(t, func(c sluice.Config) *sluice.Gate {
				c.Store, c.Resources = url, map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(1000, time.Minute)}}}
				return openConfig(t, c)
			})
		}
	}
	t.Run("file", func(t *testing.T) { gates("file:" + t.TempDir())(t) })
	t.Run("redis", func(t *testing.T) { gates(redisrun.New(t).URL())(t) })
	t.Run("store", func(t *testing.T) { gates(newShared(t).url)(t) })
	t.Run("memory", func(t *testing.T) {
		var one *sluice.Gate
		test(t, func(c sluice.Config) *sluice.Gate {
			if one == nil { // it has no others
				c.Store, c.Resources = "mem:", map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(1000, time.Minute)}}}
				one = openConfig(t, c)
			}
			return one
		})
	})
}

// spent returns the spending of a budget's account, in millionths.
func spent(tb testing.TB, g *sluice.Gate, budget, who string) int64 {
	tb.Helper()
	list, err := g.Budgets(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	for _, b := range list {
		if b.Name == budget && b.Who == who {
			return int64(b.UsedUSD*1e6 + 0.5)
		}
	}
	return 0
}

func wantSpent(tb testing.TB, g *sluice.Gate, budget, who string, want int64) {
	tb.Helper()
	if got := spent(tb, g, budget, who); got != want {
		tb.Errorf("%d spent of %s by %q, want %d", got, budget, who, want)
	}
}

func TestBudgetDenies(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func(sluice.Config) *sluice.Gate) {
		c := sluice.Config{Budgets: []sluice.Budget{
			{Name: "all", Micros: 1_000_000, Period: sluice.BudgetDay}, {Name: "each", Per: sluice.BudgetUser, Micros: 500_000, Period: sluice.BudgetMonth},
		}}
		g, other := open(c), open(c)
		req := func(user string, n int64) sluice.Request {
			r := costs("a", usd(n))
			r.User = user
			return r
		}
		ana := acquire(t, g, req("ana", 300_000))
		wantSpent(t, other, "all", "", 300_000)
		_, err := other.Acquire(context.Background(), req("ana", 300_000))
		e := wantError(t, err, sluice.ErrBudget)
		if e.Limit != "each" || e.Reason != "budget" || e.RetryAt.Day() != 1 || !strings.Contains(e.Message, `of user "ana" has no room for 0.30 usd: 0.30 of 0.50 usd spent, until `) {
			t.Errorf("%+v", e)
		}
		_, err = other.Acquire(context.Background(), req("bo", 600_000)) // more than the budget, so its reset makes no room
		if e := wantError(t, err, sluice.ErrBudget); !e.RetryAt.IsZero() || !strings.HasPrefix(e.Hint, "ask for less") || strings.Contains(e.Message, "until") {
			t.Errorf("%+v", e)
		}
		if s := state(t, other); s.InFlight != 1 || s.Sent != 1 {
			t.Errorf("what was refused stays: %d in flight, %d sent", s.InFlight, s.Sent)
		}
		end(t, ana, usd(450_000))
		bo, err := other.Ticket(acquire(t, g, req("bo", 400_000)).ID())
		if err != nil {
			t.Fatal(err)
		}
		end(t, bo, usd(600_000)) // more than there is is counted
		wantSpent(t, g, "all", "", 1_050_000)
		wantSpent(t, g, "each", "bo", 600_000)
		_, err = g.Try(context.Background(), req("cy", 1))
		e = wantError(t, err, sluice.ErrBudget)
		if e.Limit != "all" || !strings.Contains(e.Message, `budget "all" is used up: 1.05 of 1.00 usd spent, until `) {
			t.Errorf("%+v", e)
		}
		pass(t, g, from("free")) // what costs nothing goes
	})
}

func TestBudgetRefundsAndEstimates(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func(sluice.Config) *sluice.Gate) {
		g := open(sluice.Config{Budgets: []sluice.Budget{{Micros: 1_000_000}}})
		cancelled := acquire(t, g, costs("a", usd(500_000)))
		if err := errors.Join(cancelled.Cancel(), cancelled.Cancel()); err != nil {
			t.Error(err)
		}
		wantSpent(t, g, "fleet/total", "", 0)
		end(t, acquire(t, g, costs("a", usd(0))), usd(70)) // nothing was known of it
		wantSpent(t, g, "fleet/total", "", 70)
		end(t, acquire(t, g, costs("a", usd(500))), usd(0))
		wantSpent(t, g, "fleet/total", "", 70)
		end(t, acquire(t, g, costs("a", usd(30)))) // nobody says
		if err := acquire(t, g, costs("a", usd(100))).CloseUnanswered(); err != nil {
			t.Error(err)
		}
		once := costs("a", usd(800))
		once.Spent = true
		acquire(t, g, once)
		wantSpent(t, g, "fleet/total", "", 1000)
		if s := state(t, g); s.InFlight != 0 {
			t.Errorf("%d in flight", s.InFlight)
		}
	})
}

// Requests over budgets that do not deny go out and are counted; one alert is sent.
func TestBudgetsThatDoNotDeny(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func(sluice.Config) *sluice.Gate) {
		var h told
		c := sluice.Config{Events: h.event, Alert: h.alert, Budgets: []sluice.Budget{
			{Name: "low", Per: sluice.BudgetAgent, Agent: "low", Micros: 100, Over: sluice.OverDowngrade},
			{Name: "route", Per: sluice.BudgetAgent, Agent: "route", Micros: 100, Over: sluice.OverReroute},
			{Name: "alert", Per: sluice.BudgetAgent, Agent: "alert", Micros: 100, Period: sluice.BudgetDay, Over: sluice.OverAlert},
		}}
		g, other := open(c), open(c)
		for _, agent := range []string{"low", "route", "alert"} {
			for _, gate := range []*sluice.Gate{g, g, other, other} {
				req := costs(agent, usd(150))
				req.Class = sluice.P0
				pass(t, gate, req)
			}
			wantSpent(t, g, agent, agent, 600)
			if s, err := inside.Of(other).BudgetState(context.Background(), agent, ""); err != nil || !s.Over || s.Budget != agent || s.SizeUSD != 0.0001 {
				t.Errorf("%+v, %v", s, err)
			}
		}
		if s, err := inside.Of(g).BudgetState(context.Background(), "route", ""); err != nil || s.Policy != sluice.OverReroute {
			t.Errorf("%+v, %v", s, err)
		}
		if s, err := inside.Of(g).BudgetState(context.Background(), "somebody", ""); err != nil || s.Over {
			t.Errorf("%+v, %v", s, err)
		}
		for agent, class := range map[string]string{"low": sluice.P2, "route": sluice.P0, "alert": sluice.P0} {
			sends := slices.DeleteFunc(h.of(inspect.EventSend), func(e inspect.Event) bool { return e.Agent != agent })
			if first, last := sends[0].Class, sends[len(sends)-1].Class; first != sluice.P0 || last != class {
				t.Errorf("%s went in class %s, then in %s, want %s", agent, first, last, class)
			}
		}
		if len(h.alerts) != 3 || len(h.of(inspect.EventBudget)) != 3 {
			t.Errorf("alerts %+v, events %+v", h.alerts, h.of(inspect.EventBudget))
		}
		for _, a := range h.alerts {
			if a.Who != a.Budget || a.UsedUSD < a.SizeUSD || (a.ResetsAt == nil) != (a.Budget != "alert") || a.Text == "" {
				t.Errorf("%+v", a)
			}
		}
	})
}

// Concurrent requests exceed a budget at most by the requests in progress.
func TestBudgetUnderConcurrency(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open func(sluice.Config) *sluice.Gate) {
		c := sluice.Config{Budgets: []sluice.Budget{{Name: "all", Micros: 10_000, Period: sluice.BudgetDay}}}
		var all sync.WaitGroup
		var mu sync.Mutex
		var sum int64
		const callers, guess, actual = 6, 100, 130
		for range callers {
			g := open(c)
			all.Go(func() {
				for range 40 {
					ticket, err := g.Acquire(context.Background(), costs("a", usd(guess)))
					if errors.Is(err, sluice.ErrBudget) {
						return
					}
					if err == nil {
						err = ticket.Close(usd(actual))
					}
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					sum += actual
					mu.Unlock()
				}
			})
		}
		all.Wait()
		wantSpent(t, open(c), "all", "", sum)
		if sum < 10_000-guess || sum > 10_000+callers*(actual-guess) {
			t.Errorf("%d spent of 10000", sum)
		}
	})
}

func TestBudgetBeginsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // from 2000-01-01 00:00 UTC
		g := openConfig(t, sluice.Config{
			Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(1000, time.Minute)}}},
			Budgets: []sluice.Budget{
				{Micros: 100, Period: sluice.BudgetDay}, {Micros: 250, Period: sluice.BudgetMonth}, {Micros: 420},
			},
		})
		ask := func(want string) {
			t.Helper()
			ticket, err := g.Try(t.Context(), costs("a", usd(100)))
			if want == "" {
				if err != nil {
					t.Fatal(err)
				}
				end(t, ticket, usd(100))
			} else if e := wantError(t, err, sluice.ErrBudget); e.Limit != want {
				t.Errorf("refused by %s, want %s: %v", e.Limit, want, e)
			}
		}
		ask("")
		ask("fleet/day")
		time.Sleep(24*time.Hour - time.Second)
		ask("fleet/day")
		time.Sleep(time.Second)
		time.Sleep(time.Hour)
		long := costs("b", usd(100))
		long.TTL = 24 * time.Hour
		late := acquire(t, g, long)
		time.Sleep(23 * time.Hour)
		end(t, late, usd(100)) // it belongs to the day before
		ask("fleet/month")
		time.Sleep(29 * 24 * time.Hour) // the first of February
		ask("")
		time.Sleep(24 * time.Hour)
		ask("")
		time.Sleep(60 * 24 * time.Hour)
		ask("fleet/total")
		wantSpent(t, g, "fleet/total", "", 400)
	})
}

func TestBudgetWhereNobodyIsHeld(t *testing.T) {
	t.Parallel()
	var h told
	g := openConfig(t, sluice.Config{
		Resources: map[string]sluice.Resource{"api": {Observe: true, Limits: []sluice.Limit{rolling(1, time.Minute)}}},
		Budgets:   []sluice.Budget{{Name: "b", Micros: 100}}, Events: h.event, Alert: h.alert,
	})
	for range 3 {
		end(t, acquire(t, g, costs("a", usd(90))), usd(80))
	}
	wantSpent(t, g, "b", "", 240)
	reasons := map[string]int{}
	for _, e := range h.of(inspect.EventWouldWait) {
		reasons[e.Reason]++
	}
	if reasons["budget"] != 2 || reasons["limit"] != 2 || len(h.alerts) != 1 || len(h.of(inspect.EventRefused)) != 0 {
		t.Errorf("%v, alerts %+v", reasons, h.alerts)
	}
}

// While the ledger cannot be reached, requests continue if OnStoreFailure allows it, and are entered later.
func TestBudgetWithoutTheStore(t *testing.T) {
	t.Parallel()
	for mode, goes := range map[store.OnFailure]bool{store.FailShare: true, store.FailOpen: true, store.FailClosed: false} {
		st := newShared(t)
		g := st.open(t, sluice.Config{OnStoreFailure: mode, Budgets: []sluice.Budget{{Name: "b", Micros: 1000}}}, rolling(100, time.Minute))
		before := acquire(t, g, costs("a", usd(100)))
		pool := "(budget) b total"
		st.downPool.Store(&pool)
		ticket, err := g.Acquire(context.Background(), costs("a", usd(100)))
		if (err == nil) != goes || !goes && !errors.Is(err, sluice.ErrStore) {
			t.Fatalf("%v: %v", mode, err)
		}
		if s := state2(t, g); !goes && s.InFlight != 1 {
			t.Errorf("%d in flight", s.InFlight)
		}
		if err := errors.Join(ticket.Close(usd(150)), ticket.Close(usd(150))); err != nil {
			t.Error(err)
		}
		if err := before.Close(usd(120)); (err == nil) != goes {
			t.Errorf("%v: closing: %v", mode, err)
		}
		st.downPool.Store(nil)
		if !goes {
			continue
		}
		end(t, acquire(t, g, costs("a", usd(5))), usd(7))
		wantSpent(t, g, "b", "", 120+150+7)
	}
}

// state2 is state without budgets, which may be out of reach.
func state2(tb testing.TB, g *sluice.Gate) inspect.ResourceStatus {
	tb.Helper()
	s, err := g.Resource(context.Background(), "api")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestBudgetMistakes(t *testing.T) {
	t.Parallel()
	for name, list := range map[string][]sluice.Budget{
		"no size":    {{}},
		"too much":   {{Micros: 1 << 41}},
		"whose":      {{Micros: 1, Per: "team"}},
		"whose one":  {{Micros: 1, Per: sluice.BudgetUser, Agent: "a"}},
		"how long":   {{Micros: 1, Period: "week"}},
		"what then":  {{Micros: 1, Over: "ignore"}},
		"twice":      {{Micros: 1}, {Micros: 2}},
		"a long one": {{Micros: 1, Name: strings.Repeat("x", 200)}},
	} {
		_, err := sluice.Open(context.Background(), sluice.Config{Budgets: list})
		if !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Each agent that is not named has a budget of its own.
func TestBudgetOfAllOthers(t *testing.T) {
	t.Parallel()
	g := openConfig(t, sluice.Config{
		Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(100, time.Minute)}}},
		Agents:    map[string]sluice.Agent{"named": {}},
		Budgets:   []sluice.Budget{{Per: sluice.BudgetAgent, Agent: "*", Micros: 100}, {Per: sluice.BudgetAgent, Agent: "named", Micros: 200}},
	})
	for agent, most := range map[string]int64{"named": 200, "x": 100, "y": 100} {
		if _, err := g.Try(context.Background(), costs(agent, usd(most+1))); !errors.Is(err, sluice.ErrBudget) {
			t.Errorf("%s: %v", agent, err)
		}
		end(t, acquire(t, g, costs(agent, usd(most))), usd(most))
	}
}

// A ledger that cannot be written must not keep the quota: the ticket is given back anyway.
func TestCancelGivesTheTicketBackThoughTheLedgerFails(t *testing.T) {
	t.Parallel()
	g := openConfig(t, sluice.Config{
		Store: "mem:", Budgets: []sluice.Budget{{Name: "all", Micros: 1_000_000, Period: sluice.BudgetDay, Per: sluice.BudgetFleet}},
		Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1, Unit: sluice.Requests}}}},
	})
	ctx := context.Background()
	req := sluice.Request{Resource: "api", Agent: "a", Cost: []sluice.Amount{usd(1000)}}
	ticket, err := g.Try(ctx, req)
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("the disk is full")
	g.BreakBooks(full)
	if err := ticket.Cancel(); !errors.Is(err, full) {
		t.Errorf("cancelled: %v, want the ledger's error", err)
	}
	if _, err := g.Try(ctx, req); err != nil {
		t.Errorf("the next one: %v", err)
	}
}
