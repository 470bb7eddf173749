//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// queuer is the task of a process that asks for something and says what becomes of it: that it waits, and
// whether it keeps the time; what waiting took of the processor; and the decision.
type queuer struct {
	Dir    string
	Spec   store.Spec
	Agent  string
	Amount int64
	TTL    time.Duration
}

var _ = role("queuer", func(k queuer) {
	ctx := context.Background()
	s, p := inChild(k.Dir, k.Spec)
	w := watch(p)
	op := ask(k.Agent, time.Hour, k.TTL)
	for i := range op.Amounts {
		op.Amounts[i].N = k.Amount
	}
	ops := []store.Op{op}
	if err := p.Apply(ctx, ops); err != nil {
		giveUp("apply: %v", err)
	}
	if ops[0].Result.State == store.Waiting {
		before := burnt()
		keeper, self := s.Keeper("pool")
		say("waiting %v", keeper == self)
		<-w.decided(ops[0].ID)
		spent := burnt() - before
		ops = []store.Op{{Kind: store.OpPoll, ID: ops[0].ID}}
		if err := p.Apply(ctx, ops); err != nil {
			giveUp("poll: %v", err)
		}
		say("spent %d", spent.Microseconds())
	}
	say("%v %d", ops[0].Result.State, ops[0].Result.GrantedAt)
	select {} // it holds what it has until it is killed
})

// expect waits until a process says something that begins so, and returns the rest.
func (c *child) expect(begins string) string {
	c.t.Helper()
	said := c.next()
	rest, ok := strings.CutPrefix(said, begins)
	if !ok {
		c.t.Fatalf("it says %q, not %q", said, begins)
	}
	return strings.TrimSpace(rest)
}

func TestWaitingCostsNextToNothing(t *testing.T) {
	t.Parallel()
	const crowd = 16
	dir := t.TempDir()
	spec := specOf(store.Limit{Kind: store.Concurrency, Size: crowd, Guard: store.GuardOff})
	_, p := opened(t, dir, spec)
	ctx := context.Background()
	if err := p.Apply(ctx, []store.Op{{Kind: store.OpPause, RetryAfter: time.Hour, Cause: "a long one"}}); err != nil {
		t.Fatal(err)
	}
	crew := make([]*child, crowd)
	for i := range crew {
		crew[i] = start(t, "queuer", queuer{Dir: dir, Spec: spec, Agent: fmt.Sprint("agent ", i), Amount: 1, TTL: time.Hour})
	}
	for _, c := range crew {
		c.expect("waiting")
	}
	// What is measured is time that passes.
	const rest = 2 * time.Second
	time.Sleep(rest)
	if err := p.Apply(ctx, []store.Op{{Kind: store.OpResume}}); err != nil {
		t.Fatal(err)
	}
	var most, all time.Duration
	for _, c := range crew {
		var micros int64
		if _, err := fmt.Sscan(c.expect("spent"), &micros); err != nil {
			t.Fatal(err)
		}
		spent := time.Duration(micros) * time.Microsecond
		most, all = max(most, spent), all+spent
		c.expect("granted")
	}
	t.Logf("%d processes waited for %v: each used the processor for %v, at most %v", crowd, rest, all/crowd, most)
	if most > 20*time.Millisecond {
		t.Errorf("one that waited for %v used the processor for %v", rest, most)
	}
}

// A process that was killed while it waited delays the ones behind it only for a moment.
func TestAKilledWaiterIsPassedOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := specOf(store.Limit{Kind: store.Concurrency, Size: 2, Guard: store.GuardOff})
	_, p := opened(t, dir, spec)
	ctx := context.Background()
	one := []store.Op{ask("holder", 0, time.Hour)}
	if err := p.Apply(ctx, one); err != nil {
		t.Fatal(err)
	}
	// The first in line wants more than there is; the second could go but for it.
	first := start(t, "queuer", queuer{Dir: dir, Spec: spec, Agent: "first", Amount: 2, TTL: time.Hour})
	first.expect("waiting")
	second := start(t, "queuer", queuer{Dir: dir, Spec: spec, Agent: "second", Amount: 1, TTL: time.Hour})
	second.expect("waiting")
	first.kill()
	began := time.Now()
	second.expect("spent")
	second.expect("granted")
	took := time.Since(began)
	t.Logf("after %v", took.Round(time.Millisecond))
	if took > 15*time.Second {
		t.Errorf("it took %v", took)
	}
}

// A grant for a dead process goes to the next one at once.
func TestAGrantForTheDeadGoesToTheNext(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := specOf(store.Limit{Kind: store.Concurrency, Size: 1, Guard: store.GuardOff})
	spec.Order = store.FIFO
	_, p := opened(t, dir, spec)
	ctx := context.Background()
	one := []store.Op{ask("holder", 0, time.Hour)}
	if err := p.Apply(ctx, one); err != nil {
		t.Fatal(err)
	}
	line := make([]*child, 4)
	for i := range line {
		line[i] = start(t, "queuer", queuer{Dir: dir, Spec: spec, Agent: fmt.Sprint("agent ", i), Amount: 1, TTL: time.Hour})
		line[i].expect("waiting")
	}
	for _, c := range line[:3] {
		c.kill()
	}
	began := time.Now()
	if err := p.Apply(ctx, []store.Op{{Kind: store.OpClose, ID: one[0].ID}}); err != nil {
		t.Fatal(err)
	}
	line[3].expect("spent")
	line[3].expect("granted")
	took := time.Since(began)
	t.Logf("past three dead ones after %v", took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Errorf("it took %v", took)
	}
	// Nothing of the dead is left.
	bells, err := os.ReadDir(dir + "/pools/pool")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, e := range bells {
		if strings.HasPrefix(e.Name(), "bell-") {
			n++
		}
	}
	if n > 1 {
		t.Errorf("%d bells for one living process that waits", n)
	}
}

// keptTime is a line of processes that wait for time to pass.
type keptTime struct {
	line  []*child
	keeps int // the one that keeps the time
	due   store.Time
}

func newKeptTime(t *testing.T) *keptTime {
	t.Helper()
	const window = 6 * time.Second // four processes must be up before it ends
	dir, spec := t.TempDir(), specOf(store.Limit{Kind: store.Rolling, Size: 8, Window: window, Guard: store.GuardOff})
	s, p := opened(t, dir, spec)
	ops := make([]store.Op, 8)
	for i := range ops {
		ops[i] = ask("before", 0, time.Hour)
	}
	if err := p.Apply(context.Background(), ops); err != nil {
		t.Fatal(err)
	}
	k := &keptTime{due: ops[0].Result.GrantedAt.Add(window)}
	for i := range 4 {
		c := start(t, "queuer", queuer{Dir: dir, Spec: spec, Agent: fmt.Sprint("agent ", i), Amount: 1, TTL: time.Hour})
		if c.expect("waiting") == "true" {
			k.keeps = i
		}
		k.line = append(k.line, c)
	}
	if keeper, self := s.Keeper("pool"); keeper == self || keeper == 0 {
		t.Fatalf("the keeper is %d, and none of those who wait", keeper)
	}
	return k
}

// If the keeper is killed or stopped, another process takes its place.
func TestAnotherKeepsTheTimeIfTheKeeperDoesNot(t *testing.T) {
	t.Parallel()
	killed, stopped := newKeptTime(t), newKeptTime(t)
	killed.line[killed.keeps].kill()
	stopped.line[stopped.keeps].stop()
	for _, k := range []*keptTime{killed, stopped} {
		for i, c := range k.line {
			if i == k.keeps {
				continue
			}
			c.expect("spent")
			var at int64
			if _, err := fmt.Sscan(c.expect("granted"), &at); err != nil {
				t.Fatal(err)
			}
			late := store.Time(at).Sub(k.due)
			t.Logf("granted %v after its time", late.Round(time.Millisecond))
			if late < 0 || late > 3*time.Second {
				t.Errorf("granted %v after its time", late)
			}
		}
	}
}

// The bell of a stopped process fills up without delaying others. When the process continues, it misses nothing.
func TestAStoppedProcessHoldsUpNobody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	spec := specOf(store.Limit{Kind: store.Concurrency, Size: 1, Guard: store.GuardOff})
	_, p := opened(t, dir, spec)
	ctx := context.Background()
	w := watch(p)
	holder := []store.Op{ask("holder", 0, time.Hour)}
	if err := p.Apply(ctx, holder); err != nil {
		t.Fatal(err)
	}
	c := start(t, "queuer", queuer{Dir: dir, Spec: spec, Agent: "stopped", Amount: 1, TTL: time.Hour})
	c.expect("waiting")
	c.stop()
	began := time.Now()
	if err := p.Apply(ctx, []store.Op{{Kind: store.OpClose, ID: holder[0].ID}}); err != nil {
		t.Fatal(err)
	}
	// Its grant goes back after a second, since nobody collects it.
	r, err := w.acquire(ctx, p, ask("other", time.Minute, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	t.Logf("after %v", took.Round(time.Millisecond))
	if took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	c.goOn()
	c.expect("spent")
	c.expect("ended") // and it is told so
	if err := p.Apply(ctx, []store.Op{{Kind: store.OpClose, ID: r.ID}}); err != nil {
		t.Fatal(err)
	}
}
