package logstore_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/lab/world"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/logstore"
)

// slowRate is the line of a slow process in bytes a second. The others write more than that.
const slowRate = 700_000

// slowly is a process on a fleet with a slow process.
type slowly struct {
	*client
	notices sync.Map     // kinds
	outages atomic.Int64 // that began or ended
	grants  atomic.Int64
	late    atomic.Int64 // grants that it heard of more than 40 ms later
}

func joinSlowly(j *judge, server *world.Server, machine uint64, line world.Line) *slowly {
	s := &slowly{client: &client{judge: j, told: map[store.ID]chan struct{}{}}}
	s.store = logstore.New(server.ConnectOver(line), logstore.WithClock(uptime(machine)))
	spec := stormSpec()
	spec.OnFailure = store.FailClosed
	spec.Limits = []store.Limit{{Name: "bucket", Kind: store.Bucket, Unit: "requests", Size: 100, Burst: 1, Window: time.Second, Guard: store.GuardOff}}
	p, err := s.store.Pool(j.Context(), spec)
	if err != nil {
		j.Fatal(err)
	}
	p.Watch(s.tell)
	store.Can(p).Copied.OnNotice(func(n store.Notice) { s.notices.Store(n.Kind, n.Why) })
	store.Can(p).Alarm.OnOutage(func(o store.Outage, over bool) { s.outages.Add(1) })
	s.pool = p
	return s
}

// send waits for a grant, and ends it.
func (s *slowly) send(agent string) bool {
	r, err := s.apply(store.Op{Kind: store.OpAcquire, Agent: agent, Wait: stormWait, TTL: time.Minute, Amounts: []store.Amount{{Unit: "requests", N: 1}}})
	for err == nil && r.State == store.Waiting {
		select {
		case <-s.channel(r.ID):
		case <-time.After(time.Second):
		}
		r, err = s.apply(store.Op{Kind: store.OpPoll, ID: r.ID})
	}
	if err != nil || r.State != store.Granted {
		return false
	}
	s.grants.Add(1)
	if s.pool.Now().Sub(r.GrantedAt) > 40*time.Millisecond {
		s.late.Add(1)
	}
	_, err = s.apply(store.Op{Kind: store.OpClose, ID: r.ID})
	return err == nil
}

// ask has ten callers of each process send all the time, until ended.
func ask(all *sync.WaitGroup, ended *atomic.Bool, processes ...*slowly) {
	for i, s := range processes {
		for n := range 10 {
			all.Go(func() {
				for !ended.Load() {
					if !s.send(fmt.Sprint("agent", i, "-", n)) {
						time.Sleep(100 * time.Millisecond)
					}
				}
			})
		}
	}
}

// What time grants does not wait for a process that is far away, even if its request is the next.
func TestNobodyWaitsForAFarProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &judge{T: t}
		server := world.New(1).Server()
		far, near := joinSlowly(j, server, 1, world.Line{Delay: 150 * time.Millisecond}), joinSlowly(j, server, 2, world.Line{})
		var ended atomic.Bool
		var all sync.WaitGroup
		ask(&all, &ended, near, far)
		time.Sleep(5 * time.Second)
		before, late := near.grants.Load()+far.grants.Load(), near.late.Load()
		time.Sleep(20 * time.Second)
		if n := near.grants.Load() + far.grants.Load() - before; n < 1900 {
			t.Errorf("%d of the 2000 that are free in twenty seconds were granted", n)
		}
		if n := near.late.Load() - late; n > 40 { // it tries every ten seconds whether the others can rely on the far process
			t.Errorf("the near process heard late of %d grants", n)
		}
		if n := far.grants.Load(); n < 100 {
			t.Errorf("%d were granted to the far process", n)
		}
		ended.Store(true)
		all.Wait()
		for _, s := range []*slowly{near, far} {
			if err := s.store.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// A process whose line is too slow for the log is told so. It gets nothing, and holds nobody up: what time grants, snapshots,
// and healing go on without it. It goes on when there is less to read.
func TestASlowProcessHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		j := &judge{T: t}
		server := world.New(1).Server()
		var fast []*slowly
		for i := range uint64(2) {
			fast = append(fast, joinSlowly(j, server, i+1, world.Line{}))
		}
		slow := joinSlowly(j, server, 9, world.Line{Rate: slowRate})
		var ended atomic.Bool
		var all sync.WaitGroup
		ask(&all, &ended, append(fast, slow)...) // they use up the bucket
		var noisy atomic.Bool
		noisy.Store(true)
		for i, s := range fast { // and write much
			all.Go(func() {
				long := strings.Repeat("x", store.MaxName-20) // longer names than any that have numbers
				for !ended.Load() {
					time.Sleep(10 * time.Millisecond)
					if !noisy.Load() {
						continue
					}
					var ops []store.Op
					for k := range 30 {
						ops = append(ops, store.Op{Kind: store.OpAcquire, Agent: fmt.Sprint(long, i, "-", k), TTL: time.Minute})
					}
					if err := s.pool.Apply(t.Context(), ops); err != nil {
						t.Error(err)
						return
					}
					for k := range ops {
						ops[k] = store.Op{Kind: store.OpClose, ID: ops[k].Result.ID}
					}
					if err := s.pool.Apply(t.Context(), ops); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		sent := func() int64 { return fast[0].grants.Load() + fast[1].grants.Load() }
		rate := func(what string) {
			before := sent()
			time.Sleep(10 * time.Second)
			if n := sent() - before; n < 900 { // the slow process gets some when it has caught up for a moment
				t.Errorf("%s: %d of the 1000 that are free in ten seconds were granted to the others", what, n)
			}
		}
		time.Sleep(20 * time.Second)
		if why, ok := slow.notices.Load(store.NoticeBehind); !ok || !strings.Contains(fmt.Sprint(why), "kB on") {
			t.Errorf("the slow process does not know that it is behind: %v", why)
		}
		if n := slow.outages.Load(); n == 0 || n > 10 {
			t.Errorf("outages of the slow process began and ended %d times", n)
		}
		rate("behind")
		for _, s := range fast {
			if c := store.Can(s.pool).Copied.Copy(); c.LogBytes > 1<<20 || c.Behind > 0 || c.Lost > 0 {
				t.Errorf("snapshots do not go on: %+v", c)
			}
		}
		server.Flush()
		time.Sleep(time.Second)
		rate("healed")
		noisy.Store(false)
		time.Sleep(30 * time.Second)
		if o, lasts := store.Can(slow.pool).Alarm.Outage(); lasts {
			t.Errorf("the slow process is still behind: %+v", o)
		}
		before := slow.grants.Load()
		time.Sleep(10 * time.Second)
		if n := slow.grants.Load() - before; n < 200 {
			t.Errorf("%d grants for the slow process in ten seconds, when it is back", n)
		}
		ended.Store(true)
		all.Wait()
		for _, s := range append(fast, slow) {
			if err := s.store.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}
