package sluice_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
)

// A lost lease is reported at every failed heartbeat, and once when it is back.
func TestALeaseThatIsBackIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept, s := &record{}, newShared(t)
		g := s.open(t, sluice.Config{Events: kept.add, Leases: sluice.Leases{Renew: time.Minute, Expire: 10 * time.Minute}}, rolling(10, time.Minute))
		l, err := g.Join(t.Context(), sluice.JoinRequest{Agent: "a"})
		if err != nil {
			t.Fatal(err)
		}
		s.fail(store.ErrUnavailable)
		time.Sleep(2*time.Minute + time.Second)
		if e := kept.last(t, inspect.EventLeaseLost); kept.count(inspect.EventLeaseLost) != 2 || e.Consecutive != 2 {
			t.Errorf("%d were told, the last %+v", kept.count(inspect.EventLeaseLost), e)
		}
		s.recover()
		time.Sleep(2 * time.Minute)
		if e := kept.last(t, inspect.EventLeaseBack); kept.count(inspect.EventLeaseBack) != 1 || e.Agent != "a" || e.ForMS != 120_000 {
			t.Errorf("%d were told, the last %+v, want one after two minutes", kept.count(inspect.EventLeaseBack), e)
		}
		if err := l.Leave(); err != nil {
			t.Fatal(err)
		}
	})
}

// A used-up budget is reported, and also when it starts again.
func TestABudgetThatBeginsAnewIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := &record{}
		g := openConfig(t, sluice.Config{
			Events: kept.add, Resources: map[string]sluice.Resource{"api": {}}, Budgets: []sluice.Budget{{Name: "day", Micros: 1e6, Period: sluice.BudgetDay, Over: sluice.OverAlert}},
		})
		for range 2 {
			pass(t, g, costs("a", usd(1_500_000)))
		}
		e := kept.last(t, inspect.EventBudget)
		if e.Until == nil {
			t.Fatalf("told %+v", e)
		}
		time.Sleep(time.Until(*e.Until) - time.Second)
		if n := kept.count(inspect.EventBudgetBack); n != 0 {
			t.Errorf("%d were told too early", n)
		}
		time.Sleep(2 * time.Second)
		if b := kept.last(t, inspect.EventBudgetBack); b.Limit != "day" || b.Size != 1e6 || b.Resource != "api" {
			t.Errorf("told %+v", b)
		}
	})
}
