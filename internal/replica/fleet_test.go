package replica

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// world is processes on one log, each with a replica that is ahead or behind the others'.
type world struct {
	t         testing.TB
	now       int64
	offset    int64
	log       []sharedlog.Entry
	processes []*member
}

// member is a process of a world.
type member struct {
	w       *world
	writer  *Writer
	replica *Replica
	read    int // entries
	id      uint64
	machine uint64
}

func newWorld(t testing.TB) *world { return &world{t: t, now: began} }

func (w *world) join(machine uint64) *member {
	n := uint64(len(w.processes) + 1)
	id := ProcessID(n << 44)
	m := &member{w: w, replica: New(), id: id, machine: machine, writer: NewWriter(Identity{Process: id, Machine: machine})}
	w.processes = append(w.processes, m)
	return m
}

// add appends an entry to the log.
func (w *world) add(body []byte) {
	w.now++
	w.offset += sharedlog.FrameSize(len(body))
	w.log = append(w.log, sharedlog.Entry{Body: body, Stamp: store.Time(w.now), At: sharedlog.Position{Offset: w.offset}})
}

// write makes an entry.
func (m *member) write(requests ...Request) []byte {
	uptime := time.Duration(m.machine)*time.Hour + time.Duration(m.w.now-began)*time.Microsecond
	body, err := m.writer.Append(nil, m.replica, uptime, requests)
	if err != nil {
		m.w.t.Fatal(err)
	}
	return body
}

// catchUp applies what others have appended, and returns what the last entry did.
func (m *member) catchUp() (did Applied) {
	for ; m.read < len(m.w.log); m.read++ {
		did = m.replica.Apply(m.w.log[m.read])
		if did.Diverged {
			m.w.t.Fatal("diverged")
		}
	}
	return did
}

// do appends an entry and catches up.
func (m *member) do(requests ...Request) Applied {
	m.w.add(m.write(requests...))
	return m.catchUp()
}

func (m *member) session(n uint64) uint64 { return SessionOf(m.id, n) }

func (m *member) open(n uint64, spec store.Spec) error {
	did := m.do(Request{Kind: Open, Session: m.session(n), Spec: &spec})
	if did.Err != nil {
		return did.Err
	}
	return did.Errs[0]
}

func (m *member) op(op store.Op) store.Result {
	did := m.do(Request{Session: m.session(1), Ops: []store.Op{op}})
	if did.Err != nil {
		m.w.t.Fatal(did.Err)
	}
	return did.Ops[0].Result
}

func (m *member) ask(wait time.Duration) store.Result {
	return m.op(store.Op{
		Kind: store.OpAcquire, Agent: fmt.Sprint("agent", m.id>>44), TTL: time.Hour, Tie: store.TieBeat, Wait: wait,
		Amounts: []store.Amount{{Limit: "places", N: 1}},
	})
}

// pass lets time pass. Processes show themselves each second.
func (w *world) pass(d time.Duration, alive ...*member) {
	for end := w.now + d.Microseconds(); w.now < end; {
		w.now += min(sec, end-w.now)
		for _, m := range alive {
			m.catchUp()
			m.do()
		}
	}
}

func (w *world) alike() {
	w.t.Helper()
	var want []byte
	for i, m := range w.processes {
		m.catchUp()
		got := m.replica.AppendSnapshot(nil)
		if i > 0 && !bytes.Equal(got, want) {
			w.t.Fatalf("the replica of process %d differs", i)
		}
		want = got
	}
}

func placesSpec(size int64) store.Spec {
	return store.Spec{
		Name: "pool", MaxWaiting: 100, Classes: []store.Class{{Name: "p0", Weight: 1}},
		Limits:   []store.Limit{{Name: "places", Kind: store.Concurrency, Unit: "requests", Size: size}},
		Throttle: store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour},
		Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
}

func (m *member) size() int64 { return m.replica.Pool().Stated().Limits[0].Size }

func pair(t testing.TB) (w *world, a, b *member) {
	w = newWorld(t)
	a, b = w.join(1), w.join(2)
	for _, m := range w.processes {
		if err := m.open(1, placesSpec(2)); err != nil {
			t.Fatal(err)
		}
	}
	return w, a, b
}

func TestASecondCopyIsNotCarriedOut(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	a.catchUp()
	body := a.write(Request{Session: a.session(1), Ops: []store.Op{{Kind: store.OpAcquire, Agent: "x", TTL: time.Hour}}})
	w.add(body)
	w.add(b.write())
	w.add(body)
	if did := a.catchUp(); !errors.Is(did.Err, ErrDuplicate) || did.Process != a.id {
		t.Errorf("%+v", did)
	}
	if n := a.replica.Pool().View().Snapshot(store.Time(w.now)).InFlight; n != 1 {
		t.Errorf("%d tickets", n)
	}
	first := w.log[0].Body // with which a joined
	w.add(first)
	if did := a.catchUp(); !errors.Is(did.Err, ErrDuplicate) {
		t.Errorf("joined twice: %+v", did)
	}
	if did := a.do(Request{Kind: Leave}); did.Err != nil || did.Errs[0] != nil {
		t.Fatalf("%+v", did)
	}
	w.add(first)
	if did := a.catchUp(); !errors.Is(did.Err, ErrDuplicate) {
		t.Errorf("joined after it has left: %+v", did)
	}
	if err := a.open(2, placesSpec(2)); err != nil { // on purpose
		t.Error(err)
	}
	w.alike()
}

func TestOldEntriesAreRefused(t *testing.T) {
	t.Parallel()
	w, a, _ := pair(t)
	a.catchUp()
	old := a.write(Request{Session: a.session(1), Ops: []store.Op{{Kind: store.OpAcquire, Agent: "x", TTL: time.Hour}}})
	later := a.write(Request{}) // as if the one before had never been
	w.add(later)
	a.catchUp()
	a.do()
	for range 300 {
		a.do()
	}
	w.add(old)
	if did := a.catchUp(); !errors.Is(did.Err, ErrDuplicate) {
		t.Errorf("%+v", did)
	}
	w.alike()
}

func TestASilentProcessIsGone(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	b.catchUp()
	b.ask(0)
	b.ask(0)
	a.catchUp()
	held := a.ask(-1)
	queued := b.do(Request{Session: b.session(1), Ops: []store.Op{{Kind: store.OpAcquire, Agent: "y", TTL: time.Hour, Wait: -1, Amounts: []store.Amount{{Limit: "places", N: 1}}}}})
	if held.State != store.Waiting || queued.Ops[0].Result.State != store.Waiting {
		t.Fatalf("%+v, %+v", held, queued)
	}
	if m, ok := a.replica.Member(b.id); !ok || m.Sessions != 1 || !a.replica.IsOpen(b.session(1)) {
		t.Fatalf("%+v, %v", m, ok)
	}
	w.pass(9*time.Second, a)
	if _, ok := a.replica.Member(b.id); !ok {
		t.Fatal("gone after nine seconds")
	}
	for range 30 {
		w.pass(200*time.Millisecond, a)
		held = a.op(store.Op{Kind: store.OpPoll, ID: held.ID})
	}
	if _, ok := a.replica.Member(b.id); ok || a.replica.IsOpen(b.session(1)) {
		t.Fatal("still a member after fifteen seconds")
	}
	if held.State != store.Granted {
		t.Errorf("%+v: the places of the dead are not free", held)
	}
	if a.replica.Pool().Waiting(b.session(1)) != 0 {
		t.Error("the dead still wait")
	}
	w.add(b.write()) // it does not know
	if did := b.catchUp(); !errors.Is(did.Err, ErrNotMember) {
		t.Fatalf("%+v", did)
	}
	if err := b.open(1, placesSpec(2)); err != nil {
		t.Error(err)
	}
	w.alike()
}

// While nobody could append, silence proves nothing.
func TestSilenceOfAllProvesNothing(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	w.pass(20*time.Second, a, b)
	w.now += 3600 * sec
	w.pass(9*time.Second, a)
	if _, ok := a.replica.Member(b.id); !ok {
		t.Error("gone although the engine was away")
	}
	b.catchUp()
	if did := b.do(); did.Err != nil {
		t.Errorf("%+v", did)
	}
	w.alike()
}

// An entry that the engine took late does not tell how late it is. The next one does: then the callers of what the first one granted
// have had no time to collect it.
func TestAGrantOutlivesAStandstill(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.join(1), w.join(1)
	spec := placesSpec(1)
	spec.Limits[0] = store.Limit{Name: "places", Kind: store.Bucket, Unit: "requests", Size: 100, Burst: 1, Window: time.Second, Guard: store.GuardOff}
	for _, m := range w.processes {
		if err := m.open(1, spec); err != nil {
			t.Fatal(err)
		}
	}
	w.pass(20*time.Second, a, b)
	var waiting []store.ID
	for range 30 {
		if r := a.ask(time.Minute); r.State == store.Waiting {
			waiting = append(waiting, r.ID)
		}
	}
	late := a.write()
	w.now += 4 * sec
	w.add(late)
	b.catchUp()
	b.do()
	a.catchUp()
	for _, id := range waiting {
		if r := a.op(store.Op{Kind: store.OpPoll, ID: id}); r.State != store.Granted && r.State != store.Waiting {
			t.Errorf("%v: %v", id, r.State)
		}
	}
	w.alike()
}

func TestTheLeastSizeOfTheLivingHolds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.join(1), w.join(2)
	for m, size := range map[*member]int64{a: 5, b: 3} {
		m.catchUp()
		if err := m.open(1, placesSpec(size)); err != nil {
			t.Fatal(err)
		}
	}
	a.catchUp()
	if a.size() != 3 {
		t.Fatalf("%d", a.size())
	}
	other := placesSpec(3)
	other.Limits[0].Name = "others"
	if err := a.open(2, other); err == nil || !strings.Contains(err.Error(), "running") {
		t.Errorf("other limits while others run: %v", err)
	}
	restated := placesSpec(7)
	restated.Restate = true
	if err := a.open(3, restated); err != nil {
		t.Fatal(err)
	}
	if a.size() != 3 {
		t.Errorf("%d while the other process states 3", a.size())
	}
	w.pass(15*time.Second, a)
	if a.size() != 7 {
		t.Errorf("%d after the other is gone", a.size())
	}
	if did := a.do(Request{Kind: Close, Session: a.session(3)}, Request{Kind: Close, Session: a.session(3)}); did.Errs[0] != nil || did.Errs[1] != nil {
		t.Errorf("%+v", did)
	}
	w.alike()
}

func TestRulesRiseWhenAllKnowThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b, c := w.join(1), w.join(2), w.join(3)
	a.writer.least, a.writer.most = pool.LeastRules, pool.Rules+1
	b.writer.least, b.writer.most = pool.LeastRules, pool.Rules
	c.writer.least, c.writer.most = pool.Rules+1, pool.Rules+2
	for _, m := range []*member{b, a} {
		m.catchUp()
		if err := m.open(1, placesSpec(2)); err != nil {
			t.Fatal(err)
		}
	}
	if a.replica.Rules() != pool.Rules {
		t.Fatalf("rules %d", a.replica.Rules())
	}
	c.catchUp()
	if err := c.open(1, placesSpec(2)); !errors.Is(err, ErrRules) {
		t.Errorf("%v", err)
	} else if e := new(RulesError); !errors.As(err, &e) || !strings.Contains(e.Hint(), "upgrade the pool's other processes") {
		t.Errorf("%v", err)
	}
	b.catchUp()
	b.do(Request{Kind: Leave})
	if a.catchUp(); a.replica.Rules() != pool.Rules+1 || !errors.Is(a.replica.Broken(), ErrRules) {
		t.Errorf("rules %d, %v", a.replica.Rules(), a.replica.Broken()) // this release does not have them
	}
	if _, err := Restore(a.replica.AppendSnapshot(nil)); !errors.Is(err, ErrRules) {
		t.Errorf("%v", err)
	}
}

func TestGarbageIsPassedOver(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	body := func() []byte {
		a.catchUp()
		return a.write(Request{Session: a.session(1), Ops: []store.Op{{Kind: store.OpAcquire, Agent: "someone new", TTL: time.Hour}}})
	}
	for _, bad := range [][]byte{nil, {0}, []byte("nonsense"), body()[:9], append(body(), 255), {0x20, 1, 2, 3, 4}} {
		w.add(bad)
		if did := a.catchUp(); !errors.Is(did.Err, ErrUndecodable) && !errors.Is(did.Err, ErrNotMember) || len(did.Ops) > 0 {
			t.Errorf("%x: %+v", bad, did)
		}
	}
	w.add(body())
	if did := a.catchUp(); did.Err != nil || did.Ops[0].Agent != "someone new" {
		t.Errorf("%+v", did)
	}
	b.catchUp()
	w.alike()
}

// A panic leaves a replica that says so. One that is restored passes over the entry, as all do.
func TestAnEntryThatBreaksTheReplica(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	w.alike()
	snapshot := a.replica.AppendSnapshot(nil)
	w.add(b.write(Request{Session: b.session(1), Ops: []store.Op{{Kind: store.OpAcquire, Agent: "x", TTL: time.Hour}}}))
	broken := a.replica.Fork()
	broken.pool = new(pool.Pool) // nothing in it
	if did := broken.Apply(w.log[len(w.log)-1]); !errors.Is(did.Err, ErrPoisoned) || !errors.Is(broken.Broken(), ErrPoisoned) {
		t.Fatalf("%+v", did)
	}
	if did := broken.Apply(w.log[0]); !errors.Is(did.Err, ErrPoisoned) {
		t.Errorf("%+v", did)
	}
	for _, m := range w.processes {
		var err error
		if m.replica, err = Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		m.replica.Skip(w.log[len(w.log)-1])
		m.read = len(w.log)
	}
	if did := b.do(Request{Session: b.session(1), Ops: []store.Op{{Kind: store.OpAcquire, Agent: "x", TTL: time.Hour}}}); did.Err != nil || did.Ops[0].Result.State != store.Granted {
		t.Errorf("%+v", did)
	}
	w.alike()
}

func TestAReplicaThatDecidesOtherwiseIsNoticed(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	a.catchUp()
	b.catchUp()
	b.replica.hash++
	b.replica.conclude(w.offset, &Applied{})
	w.now += 2 * sec
	w.add(b.write())
	if did := a.replica.Apply(w.log[len(w.log)-1]); !did.Diverged {
		t.Errorf("%+v", did)
	}
}

// What a process says of its own replica is small, and names that are long or many come through.
func TestBooks(t *testing.T) {
	t.Parallel()
	w, a, b := pair(t)
	a.catchUp()
	for i := range 3000 {
		op := store.Op{Kind: store.OpAcquire, Agent: fmt.Sprint("agent with a name ", i), Model: fmt.Sprint("model", i%300), TTL: time.Hour, Spent: true}
		if i%50 == 0 {
			op.Agent = strings.Repeat("long ", 20) + op.Agent
			op.User = strings.Repeat("longer", 100) // no pool takes it
		}
		did := a.do(Request{Session: a.session(1), Ops: []store.Op{op}})
		got := did.Ops[0]
		if got.Agent != op.Agent || got.Model != op.Model || (got.Result.State == store.Refused) != (op.User != "") {
			t.Fatalf("%d: %+v", i, got)
		}
		if i%500 == 499 {
			b.catchUp()
			b.replica, _ = Restore(b.replica.AppendSnapshot(nil))
		}
	}
	w.alike()
}

// However far behind each is, and wherever it begins from a snapshot, all replicas become the same to the byte.
func TestReplicasStayAlike(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t)
		for range rapid.IntRange(2, 5).Draw(rt, "processes") {
			w.join(rapid.Uint64Range(1, 3).Draw(rt, "machine"))
		}
		every := rapid.IntRange(1, 7).Draw(rt, "restore every")
		var ids []store.ID
		for i := range rapid.IntRange(5, 60).Draw(rt, "entries") {
			m := w.processes[rapid.IntRange(0, len(w.processes)-1).Draw(rt, "process")]
			w.now += rapid.SampledFrom([]int64{1, 100 * ms, sec, 4 * sec, 12 * sec}).Draw(rt, "time")
			m.catchUp()
			session := m.session(uint64(rapid.IntRange(1, 2).Draw(rt, "session")))
			if _, ok := m.replica.Member(m.id); !ok || !m.replica.IsOpen(session) {
				spec := placesSpec(rapid.Int64Range(1, 3).Draw(rt, "size"))
				m.do(Request{Kind: Open, Session: session, Spec: &spec})
				continue
			}
			var requests []Request
			for range rapid.IntRange(0, 3).Draw(rt, "requests") {
				requests = append(requests, drawRequest(rt, session, ids))
			}
			if k := slices.IndexFunc(requests, func(q Request) bool { return q.Kind == Leave }); k >= 0 {
				requests = requests[:k+1]
			}
			for _, op := range m.do(requests...).Ops {
				if op.Kind == store.OpAcquire {
					ids = append(ids, op.Result.ID)
				}
			}
			if rapid.IntRange(0, 9).Draw(rt, "again") == 0 {
				w.add(w.log[rapid.IntRange(0, len(w.log)-1).Draw(rt, "copy")].Body)
			}
			if i%every == 0 {
				fork := m.replica.Fork()
				r, err := Restore(m.replica.AppendSnapshot(nil))
				if err != nil {
					rt.Fatal(err)
				}
				if m.replica = r; !bytes.Equal(fork.AppendSnapshot(nil), r.AppendSnapshot(nil)) {
					rt.Fatal("a fork and a restored replica differ")
				}
			}
		}
		w.alike()
	})
}

func drawRequest(rt *rapid.T, session uint64, ids []store.ID) Request {
	op := store.Op{TTL: time.Minute, Agent: rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "agent")}
	switch rapid.IntRange(0, 9).Draw(rt, "request") {
	case 0:
		return Request{Kind: Close, Session: session}
	case 1:
		return Request{Kind: Leave}
	case 2, 3:
		if len(ids) > 0 {
			op.Kind = rapid.SampledFrom([]store.OpKind{store.OpClose, store.OpPoll, store.OpAnswer, store.OpCancel}).Draw(rt, "kind")
			op.ID = rapid.SampledFrom(ids).Draw(rt, "ticket")
		}
		fallthrough
	default:
		op.Wait = rapid.SampledFrom([]time.Duration{-1, 0, time.Second, 1234567}).Draw(rt, "wait")
		op.Tie = store.Tie(rapid.IntRange(0, 2).Draw(rt, "tie"))
		op.Amounts = []store.Amount{{Limit: "places", N: 1}}
		return Request{Session: session, Ops: []store.Op{op}}
	}
}
