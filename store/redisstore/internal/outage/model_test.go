package outage_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

// world is a store, processes that are cut off from it now and then, and what they send. Its store is the real state machine.
type world struct {
	*rand.Rand
	pool  *pool.Pool
	spec  store.Spec
	now   store.Time
	procs []*proc
	sent  []store.Time // moments of grants
	open  int          // requests that are under way
	most  int          // of them at once
	ttl   time.Duration

	early, back int // what was granted of the store's queue, and what went on there after an outage
}

// proc is a process with callers.
type proc struct {
	*outage.Process
	world   *world
	session *outage.Session
	cut     bool       // nothing passes
	lost    bool       // it knows
	serveAt store.Time // 0: time alone makes no room
	waiting map[store.ID]*caller
	held    map[store.ID]store.Time // until when
	void    []store.Op              // of a call whose answer was lost
}

// caller is one whose request waits.
type caller struct {
	told  bool
	there bool // it waited in the store when that was lost
}

func newWorld(t *testing.T, seed uint64) *world {
	t.Helper()
	w := &world{Rand: rand.New(rand.NewPCG(seed, 5)), now: start, ttl: time.Hour}
	limit := perMinute(2 + w.Int64N(9))
	limit.Guard, limit.Window = store.GuardOff, time.Duration(4+w.IntN(8))*time.Second
	limits := []store.Limit{limit}
	if w.IntN(2) == 0 {
		limits = append(limits, store.Limit{Name: "slots", Kind: store.Concurrency, Unit: "slots", Size: 2 + w.Int64N(4)})
		w.ttl = 20 * time.Second // places are granted for no longer than the lease
	}
	w.spec = store.Spec{
		Name: "x", Limits: limits, Classes: []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}}, MaxWaiting: 100, OnFailure: store.FailShare,
		Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}, Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	}
	var err error
	if w.pool, err = pool.New(w.spec, w.now); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(2 + w.IntN(2)) {
		p := &proc{Process: outage.New(i + 1), world: w, waiting: map[store.ID]*caller{}, held: map[store.ID]store.Time{}}
		p.Learn(w.spec)
		p.session = &outage.Session{ID: (i+1)<<16 | 1, Spec: w.spec, Member: true}
		p.Join(p.session)
		w.procs = append(w.procs, p)
	}
	return w
}

// apply has the store carry operations out, and tells those who hear it what it has decided.
func (w *world) apply(ops []store.Op) {
	w.pool.Apply(w.now, ops)
	for _, id := range w.pool.Decided() {
		if p := w.procs[outage.Of(id.Session)-1]; !p.cut && w.IntN(5) > 0 { // messages get lost
			p.tell(id)
		}
	}
}

func (p *proc) tell(ids ...store.ID) {
	for _, id := range ids {
		if c := p.waiting[id]; c != nil {
			c.told = true
		}
	}
}

// call asks the store. It reports false if there is no answer.
func (p *proc) call(ops []store.Op) bool {
	w := p.world
	if !p.cut {
		w.apply(ops)
		return true
	}
	if !p.lost {
		if w.IntN(2) == 0 { // only the answer is lost
			w.apply(ops)
			p.void = append(p.void, ops...)
		}
		p.lost = true
		for id, c := range p.waiting {
			c.there = slices.Contains(p.Queued(), id)
		}
		p.Begin(w.now, 0)
		p.serve()
	}
	return false
}

func (p *proc) serve() {
	if p.lost {
		told, next := p.Serve(p.world.now)
		p.tell(told...)
		p.serveAt = next
	}
}

// do carries out an operation of a caller.
func (p *proc) do(op store.Op) (store.Result, bool) {
	if !p.lost {
		ops := []store.Op{op}
		if p.call(ops) {
			p.post(p.Note(p.session, ops, false))
			return ops[0].Result, true
		}
	}
	ops := []store.Op{op}
	ok := p.Decide(p.session, ops, p.world.now)
	p.serve()
	return ops[0].Result, ok
}

// post sends what no caller waits for.
func (p *proc) post(ops []store.Op) {
	if len(ops) > 0 && (p.lost || !p.call(ops)) {
		p.Put(p.world.now, ops...)
	}
}

func (p *proc) ask() {
	w := p.world
	op := store.Op{Kind: store.OpAcquire, ID: store.ID{Session: p.session.ID}, Agent: "a", Class: uint8(w.IntN(2)), TTL: w.ttl, Alive: outage.WaitersLive, Wait: -1}
	if w.IntN(3) == 0 {
		op.Wait = time.Duration(1+w.IntN(30)) * time.Second
	}
	op.Amounts = []store.Amount{{Unit: "requests", N: 1}, {Unit: "slots", N: 1}}
	switch r, ok := p.do(op); {
	case !ok:
	case r.State == store.Granted:
		p.send(&r)
	case r.State == store.Waiting:
		p.waiting[r.ID] = &caller{}
	}
}

func (p *proc) send(r *store.Result) {
	w := p.world
	w.sent = append(w.sent, r.GrantedAt)
	w.open++
	w.most = max(w.most, w.open)
	p.held[r.ID] = r.GrantedAt.Add(w.ttl)
}

// collect asks what became of a ticket that waits.
func (p *proc) collect(id store.ID, c *caller) {
	c.told = false
	r, ok := p.do(poll(id))
	if !ok || r.State == store.Waiting {
		return
	}
	delete(p.waiting, id)
	if r.State != store.Granted {
		return
	}
	if p.send(&r); c.there && r.ID != id {
		p.world.early++
	} else if c.there {
		p.world.back++
	}
}

func (p *proc) close(id store.ID) {
	p.world.open--
	delete(p.held, id)
	p.do(store.Op{Kind: store.OpAnswer, ID: id, Verdict: store.VerdictOK})
	p.do(store.Op{Kind: store.OpClose, ID: id})
}

// tryBack comes back to the store, unless that fails on the way.
func (p *proc) tryBack() {
	w := p.world
	for i := range p.void {
		if op := &p.void[i]; op.Kind == store.OpAcquire && (op.Result.State == store.Granted || op.Result.State == store.Waiting) {
			p.Put(w.now, store.Op{Kind: store.OpCancel, ID: op.Result.ID})
		}
	}
	p.void = nil
	back := p.Return(w.now)
	for at := 0; at < len(back.Ops); at += 4 {
		if w.IntN(20) == 0 {
			p.Stay(at > 0, w.now, 0)
			p.serve()
			return
		}
		w.apply(back.Ops[at:min(at+4, len(back.Ops))])
		p.anything() // callers go on meanwhile
	}
	p.lost = false
	told, later := p.End(back)
	p.tell(told...)
	p.post(later)
	p.askAfter()
}

// askAfter finds out what messages did not say.
func (p *proc) askAfter() {
	var ops []store.Op
	for _, id := range p.Queued() {
		ops = append(ops, poll(id))
	}
	if p.lost || !p.call(ops) {
		return
	}
	over, undo := p.AskedAfter(ops, time.Duration(p.world.now)*time.Microsecond)
	p.tell(over...)
	p.post(undo)
}

// anything is what a caller does.
func (p *proc) anything() {
	w := p.world
	switch w.IntN(24) {
	case 0, 1, 2, 3, 4, 5:
		if len(p.waiting) < 12 {
			p.ask()
		}
	case 6:
		for id := range sorted(p.waiting) {
			delete(p.waiting, id)
			p.do(store.Op{Kind: store.OpCancel, ID: id})
			break
		}
	case 7, 8, 9:
		for id := range sorted(p.held) {
			p.close(id)
			break
		}
	default:
		for id, c := range sorted(p.waiting) {
			if c.told {
				p.collect(id, c)
				break
			}
		}
	}
}

// sorted visits a map in an order that is the same in every run.
func sorted[V any](m map[store.ID]V) func(func(store.ID, V) bool) {
	ids := make([]store.ID, 0, len(m))
	for id := range m {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b store.ID) int { return int(a.N) - int(b.N) })
	return func(yield func(store.ID, V) bool) {
		for _, id := range ids {
			if !yield(id, m[id]) {
				return
			}
		}
	}
}

// step lets a little time pass.
func (w *world) step(cuts bool) {
	before := w.now
	w.now = w.now.Add(time.Duration(1+w.IntN(200)) * time.Millisecond)
	second := before/1_000_000 != w.now/1_000_000
	w.apply(nil)
	for _, p := range w.procs {
		if cuts && w.IntN(200) == 0 {
			p.cut = !p.cut
		}
		for id, due := range sorted(p.held) {
			if due.Sub(w.now) < time.Second { // it would be for nothing that the place is free
				p.close(id)
			}
		}
		if second && !p.lost {
			op, _ := p.Touch(w.now)
			if ops := []store.Op{op}; p.call(ops) {
				p.Touched(&ops[0])
			}
		}
		if second && !p.lost && w.now/1_000_000%3 == 0 {
			alive, _, gone := p.KeepWaiting(0)
			p.post(append(alive, gone...))
			p.askAfter()
		}
		if p.lost && p.serveAt != 0 && p.serveAt <= w.now {
			p.serve()
		}
		if p.lost && !p.cut && w.IntN(5) == 0 {
			p.tryBack()
		}
		for range w.IntN(3) {
			p.anything()
		}
	}
}

// check reports what must never be.
func (w *world) check() error {
	limit := w.spec.Limits[0]
	slices.Sort(w.sent)
	for i := range w.sent {
		n := 0
		for _, t := range w.sent[i:] {
			if t.Sub(w.sent[i]) < limit.Window {
				n++
			}
		}
		if n > int(limit.Size) {
			return fmt.Errorf("%d were sent in %v from %v on, of %d", n, limit.Window, w.sent[i].Sub(start), limit.Size)
		}
	}
	if len(w.spec.Limits) > 1 && w.most > int(w.spec.Limits[1].Size) {
		return fmt.Errorf("%d were under way at once, of %d", w.most, w.spec.Limits[1].Size)
	}
	return nil
}

// settle has everybody come back and everything end.
func (w *world) settle() error {
	for range 200 {
		for _, p := range w.procs {
			p.cut = false
			for id := range sorted(p.held) {
				p.close(id)
			}
			for id := range sorted(p.waiting) {
				delete(p.waiting, id)
				p.do(store.Op{Kind: store.OpCancel, ID: id})
			}
		}
		w.now = w.now.Add(10 * time.Millisecond)
		w.apply(nil)
		for _, p := range w.procs {
			if p.lost {
				p.tryBack()
			}
		}
	}
	w.now = w.now.Add(2 * time.Second)
	w.apply(nil)
	s := w.pool.Snapshot(w.now)
	if s.InFlight != 0 || s.Waiting[0]+s.Waiting[1] != 0 {
		return fmt.Errorf("%d are in flight and %v wait after all have ended", s.InFlight, s.Waiting)
	}
	for _, p := range w.procs {
		if open, waiting := p.Notes(); open+waiting != 0 {
			return fmt.Errorf("%d are noted as open and %d as waiting after all have ended", open, waiting)
		}
	}
	return nil
}

// Processes that are cut off while their requests wait in the store keep to the limits together with all others, and leave
// nothing behind.
func TestQueuesThatAreCutOffStayWithinTheLimits(t *testing.T) {
	t.Parallel()
	early, back := 0, 0
	for seed := range uint64(25) {
		w := newWorld(t, seed)
		for range 2500 {
			w.step(true)
		}
		err := w.check()
		if err == nil {
			err = w.settle()
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		early, back = early+w.early, back+w.back
	}
	t.Logf("%d of the store's queue were granted without it, %d by it after an outage", early, back)
	if early < 30 || back < 10 {
		t.Errorf("only %d of the store's queue were granted without it, and %d by it after an outage", early, back)
	}
}
