//go:build linux || darwin

package fleet_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
)

// trial is clients of several processes that take places of one limit, and give them back, all at the same time.
type trial struct {
	spec    store.Spec
	size    int
	most    int          // that one asks for
	undo    store.OpKind // gives places back
	steps   int          // of each client
	stores  int
	clients int // of each store; each has a session of its own

	t    *testing.T
	base time.Time

	mu      sync.Mutex
	history []porcupine.Operation
	count   [2][4]int // of takes and gives, by how they came out
	again   int       // how often one had to ask again
	forgot  [2]int    // takes and gives of which nobody wanted to know more

	cutOff atomic.Bool // a process of the trial was, by the machine
}

// client is one session.
type client struct {
	trial *trial
	pool  store.Pool
	id    int
	last  uint64 // number of the latest ticket
	held  []ticket
	rand  *rand.Rand
}

type ticket struct {
	id store.ID
	n  int
}

// run lets the clients go, and checks whether what they were told could have come about one after the other. url is
// where each store finds Redis.
func (x *trial) run(t *testing.T, url string) {
	t.Helper()
	x.t, x.base = t, time.Now()
	var clients []*client
	for range x.stores {
		s := openStore(t, url)
		for range x.clients {
			c := &client{trial: x, pool: openPool(t, s, x.spec), id: len(clients)}
			c.rand = rand.New(rand.NewPCG(uint64(c.id), rand.Uint64()))
			clients = append(clients, c)
		}
	}
	var all sync.WaitGroup
	for _, c := range clients {
		all.Go(c.run)
	}
	all.Wait()
	if t.Failed() {
		return
	}
	// A machine that is too slow to repeat a call within 90 ms makes the store count as lost. The process that comes back gives
	// back what it cannot know that it got, and moves its sessions past numbers that clients would choose: nobody can tell then
	// what was granted, and for how long.
	stretches.Add(1)
	if x.cutOff.Load() {
		waived.Add(1)
		t.Logf("%s: the machine does not keep up: the store counted as lost, and the grants say nothing", x.spec.Name)
		return
	}
	result := porcupine.CheckOperationsTimeout(places(x.size), x.history, patience)
	t.Logf("%s: %d granted, %d refused, %d behind others, %d given back, %d of unknown outcome; asked again %d times: %s", x.spec.Name,
		x.count[0][yes], x.count[0][no], x.count[0][behind], x.count[1][yes], x.count[0][unknown]+x.count[1][unknown], x.again, result)
	if result != porcupine.Ok {
		slices.SortFunc(x.history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		t.Errorf("%s: the grants could not have come about one after the other (%s)", x.spec.Name, result)
		model := places(x.size)
		for _, op := range x.history[:min(len(x.history), 50)] {
			t.Logf("%d to %d: client %d, %s", op.Call, op.Return, op.ClientId, model.DescribeOperation(op.Input, op.Output))
		}
	}
	if x.count[0][yes] < x.steps || x.count[0][no] < x.steps {
		t.Errorf("%s: %d grants and %d refusals are too few to tell", x.spec.Name, x.count[0][yes], x.count[0][no])
	}
}

func (c *client) run() {
	for range c.trial.steps {
		if len(c.held) > 0 && c.rand.IntN(2) == 0 {
			c.give()
		} else {
			c.take()
		}
	}
}

// take tries to take places. It numbers its tickets itself, so that it can ask again about the same one.
func (c *client) take() {
	c.last++
	n := 1 + c.rand.IntN(c.trial.most)
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{N: c.last}, Agent: fmt.Sprint("client ", c.id), TTL: store.MaxTTL}
	op.Amounts = []store.Amount{{Unit: "requests", N: int64(n)}}
	c.do(step{n: n}, op, func(r store.Result) said {
		switch {
		case r.State == store.Granted:
			c.held = append(c.held, ticket{r.ID, n})
			return yes
		case r.State == store.Refused && r.Reason.Code == store.CodeLimit:
			return no
		case r.State == store.Refused && r.Reason.Code == store.CodeOrder && c.trial.most > 1:
			return behind
		case r.State == store.Refused && r.Reason.Code == store.CodeOrder:
			return no // those ahead want as much, and went away empty
		case r.State == store.Ended: // its process was cut off meanwhile
			c.trial.cutOff.Store(true)
			return unknown
		}
		c.trial.t.Errorf("client %d asks for %d: %v, %v", c.id, n, r.State, r.Reason)
		return unknown
	})
}

// give gives the places of a ticket back.
func (c *client) give() {
	i := c.rand.IntN(len(c.held))
	tk := c.held[i]
	c.held = slices.Delete(c.held, i, i+1)
	c.do(step{give: true, n: tk.n}, store.Op{Kind: c.trial.undo, ID: tk.id}, func(r store.Result) said {
		if r.State != store.Ended {
			c.trial.t.Errorf("client %d gives %v back: %v", c.id, tk.id, r.State)
		}
		return yes
	})
}

const (
	againAfter = 5 * time.Millisecond // a client asks again that was not told
	maxForgot  = 1                    // takes that are forgotten, and gives: each multiplies the ways in which it all can have come about
)

// do applies an operation, and records when it was begun, when it was over and how it came out. One that fails
// may have been done: it is asked for again, under the same id, which must not do it twice; or it is forgotten.
func (c *client) do(s step, op store.Op, judge func(r store.Result) said) {
	x := c.trial
	o := porcupine.Operation{ClientId: c.id, Input: s, Output: unknown, Call: int64(time.Since(x.base)), Return: never}
	kind, tries := 0, 0
	if s.give {
		kind = 1
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for ; ; tries++ {
		ops := []store.Op{op}
		err := c.pool.Apply(ctx, ops)
		if err == nil {
			o.Return, o.Output = int64(time.Since(x.base)), judge(ops[0].Result)
			break
		}
		if x.forget(kind) {
			break
		}
		select {
		case <-time.After(againAfter):
			continue
		case <-ctx.Done():
			x.t.Errorf("client %d was not told for %v: %v", c.id, patience, err)
		}
		break
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.history = append(x.history, o)
	x.again += tries
	x.count[kind][o.Output.(said)]++
}

// forget reports whether an operation that failed is not asked for again: so it is with the first few.
func (x *trial) forget(kind int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.forgot[kind] == maxForgot {
		return false
	}
	x.forgot[kind]++
	return true
}

// trials are of a limit whose places are held, and of a bucket out of which next to nothing drains while the test
// runs, but for what is cancelled: its guard is strict, so that nothing begins to drain before a ticket is closed.
// The more clients there are, the longer the check takes where something is not known.
func trials(steps, clients int) []*trial {
	const size, capacity, stores = 5, 30, 4
	return []*trial{
		{spec: specOf("places", store.Limit{Kind: store.Concurrency, Size: size}), size: size, most: 1, undo: store.OpClose, steps: steps, stores: stores, clients: clients},
		{spec: specOf("several", store.Limit{Kind: store.Concurrency, Size: 2 * size}), size: 2 * size, most: 3, undo: store.OpCancel, steps: steps, stores: stores, clients: clients},
		{
			spec: specOf("bucket", store.Limit{Kind: store.Bucket, Size: capacity, Burst: capacity, Window: 24 * time.Hour, Guard: store.GuardStrict}),
			size: capacity, most: 9, undo: store.OpCancel, steps: steps, stores: stores, clients: clients,
		},
	}
}

func TestGrantsAreLinearizable(t *testing.T) {
	redis := redisrun.New(t)
	for _, x := range trials(150, 3) {
		x.run(t, redis.URL())
	}
}

// The same, where replies get lost on the way: what was asked for has been done, and nobody knows.
func TestGrantsAreLinearizableThoughRepliesAreLost(t *testing.T) {
	redis := redisrun.New(t)
	thief := newThief(t, redis.Addr())
	for _, x := range trials(80, 2) {
		before := thief.stolen()
		x.run(t, thief.url())
		n := thief.stolen() - before
		t.Logf("%s: %d replies were lost", x.spec.Name, n)
		if n == 0 {
			t.Errorf("%s: no reply was lost", x.spec.Name)
		}
	}
}
