package sluice_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// No request is refused that could have gone in time: the time predicted for a new request is never later than when it
// really goes.
func TestForeseenTimeIsNotTooLate(t *testing.T) {
	const traces = 300
	waited, near := 0, 0
	for seed := range uint64(traces) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, seed))
			limit := []sluice.Limit{
				bucket(1, time.Second, 1+r.Int64N(5)), rolling(1+r.Int64N(10), 10*time.Second),
				{Name: "fixed", Kind: sluice.Fixed, Size: 1 + r.Int64N(10), Window: 10 * time.Second, Reset: bubbleStart.Add(7 * time.Second)},
			}[r.IntN(3)]
			order := store.Order(r.IntN(3))
			g := openConfig(t, sluice.Config{
				Order: order, Resources: map[string]sluice.Resource{"api": {Guard: store.GuardOff, Limits: []sluice.Limit{limit}}},
			})
			c := &crowd{tb: t, gate: g}
			agents, classes := 1+r.IntN(50), 1+r.IntN(3)
			request := func(agent int) sluice.Request {
				return classed(fmt.Sprint("agent", agent), fmt.Sprint("p", agent%classes))
			}
			for range r.IntN(60) {
				c.ask("", request(r.IntN(agents)))
				if r.IntN(4) == 0 {
					time.Sleep(time.Duration(r.Int64N(int64(2 * time.Second))))
				}
			}
			newcomer := request(r.IntN(agents + 2))
			start := time.Now()
			_, err := g.Try(t.Context(), newcomer)
			if err == nil {
				c.order()
				return
			}
			foreseen := wantError(t, err, sluice.ErrNotNow).RetryAt.Sub(start)
			actual := took(func() { pass(t, g, newcomer) })
			if foreseen > actual {
				t.Errorf("seed %d, %v, %v of %d, %d agents, %d classes: foreseen after %v, went after %v",
					seed, order, limit.Kind, limit.Size, agents, classes, foreseen, actual)
			}
			waited++
			if foreseen > actual*3/4 {
				near++
			}
			c.order()
		})
	}
	if waited < traces/3 || near < waited/2 {
		t.Errorf("of %d newcomers %d had to wait and %d were told about when: that is no use", traces, waited, near)
	}
}
