package logstore_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

// Processes report late whenever the pool is calm. No window of the provider, who counts a request when its response
// begins, has more than its size.
func TestStormsOfLateReports(t *testing.T) {
	for seed := range uint64(8) {
		synctest.Test(t, func(t *testing.T) {
			w := world.New(seed)
			server := serverAt(w)
			j := &judge{T: t}
			spec := stormSpec()
			spec.Limits = []store.Limit{{Name: "window", Kind: store.Rolling, Unit: "requests", Size: stormSize, Window: stormWindow, Guard: store.GuardStrict}}
			var clients []*client
			for i := range 3 {
				s := logstore.New(server.Connect(), logstore.WithClock(uptime(uint64(i+1))), logstore.WithLeastLog(4<<10))
				p, err := s.Pool(context.Background(), spec)
				if err != nil {
					t.Fatal(err)
				}
				clients = append(clients, &client{judge: j, store: s, pool: p, told: map[store.ID]chan struct{}{}})
				p.Watch(clients[i].tell)
			}
			w.SetFaults(world.Faults{Delay: 10 * time.Millisecond, LoseReply: 0.02, LoseWake: 0.2, Stall: world.Chance{Of: 0.002, Most: 800 * time.Millisecond}})
			var wg sync.WaitGroup
			var late int
			var mu sync.Mutex
			for i, c := range clients {
				for k := range 3 {
					wg.Go(func() {
						r := rand.New(rand.NewPCG(seed, uint64(10*i+k)))
						for end := time.Now().Add(time.Minute); time.Now().Before(end); {
							time.Sleep(time.Duration(r.IntN(1200)) * time.Millisecond) // around the rate of the limit
							got, err := c.apply(store.Op{Kind: store.OpAcquire, Agent: "a", TTL: time.Minute, Wait: stormWait, Amounts: []store.Amount{{Unit: "requests", N: 1}}})
							if got.State == store.Waiting && err == nil {
								got = c.wait(got.ID)
							}
							if err != nil || got.State != store.Granted {
								continue
							}
							time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
							answered := time.Now()
							mu.Lock()
							j.grants = append(j.grants, store.Time(answered.UnixMicro()))
							mu.Unlock()
							crowd := make(chan struct{}, 1)
							calm := c.pool.(store.Calm)
							if calm.OnCrowd(func() {
								select {
								case crowd <- struct{}{}:
								default:
								}
							}); calm.Calm() {
								mu.Lock()
								late++
								mu.Unlock()
								select {
								case <-crowd:
								case <-time.After(150 * time.Millisecond):
								}
							}
							age := time.Since(answered)
							c.insist(store.Op{Kind: store.OpAnswer, ID: got.ID, Verdict: store.VerdictOK, Age: age})
							c.insist(store.Op{Kind: store.OpClose, ID: got.ID, Age: age})
						}
					})
				}
			}
			wg.Wait()
			w.SetFaults(world.Faults{})
			time.Sleep(10 * time.Second)
			alike(t, clients)
			for _, c := range clients {
				if err := c.store.Close(); err != nil {
					t.Error(err)
				}
			}
			j.verdict()
			if late == 0 || late == len(j.grants) {
				t.Errorf("%d of %d were reported late", late, len(j.grants))
			}
		})
	}
}
