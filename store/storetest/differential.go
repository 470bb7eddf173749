package storetest

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/store"
)

// Differential runs the same random traces through two stores and compares every result, every wake-up and every
// snapshot. Their clocks must begin at the same time.
func Differential(t *testing.T, a, b func(t *testing.T) Harness) {
	rapid.Check(t, func(rt *rapid.T) { differ(t, rt, a, b) })
}

// DifferentialVirtual is Differential for stores that take their time from package time. Each trace is a bubble of
// testing/synctest.
func DifferentialVirtual(t *testing.T, a, b func(t *testing.T) Harness) {
	rapid.Check(t, func(rt *rapid.T) {
		var failure any
		synctest.Test(t, func(t *testing.T) {
			defer func() { failure = recover() }() // rapid panics where a trace fails, and catches it outside
			differ(t, rt, a, b)
		})
		if failure != nil {
			panic(failure)
		}
	})
}

// differ plays one trace.
func differ(t *testing.T, rt *rapid.T, a, b func(t *testing.T) Harness) {
	left, right := newTwin(t, a(t)), newTwin(t, b(t))
	defer left.close()
	defer right.close()
	tr := trace{T: rt, a: left, b: right, plain: rapid.Bool().Draw(rt, "plain requests")}
	sp := drawSpec(rt, tr.plain)
	tr.join(sp)
	tr.join(sp)
	for range rapid.IntRange(1, 60).Draw(rt, "steps") {
		if tr.chance(3, "redefine") { // other policies and classes for the same limits
			drawPolicy(rt, &sp)
			tr.join(sp)
		}
		tr.step()
	}
	tr.settle()
}

// twin is one of the two stores and the sessions on it.
type twin struct {
	t        *testing.T
	harness  Harness
	sessions []*member
	known    map[[2]uint64]bool // pairs of session and ticket that it was told of
}

func newTwin(t *testing.T, h Harness) *twin {
	return &twin{t: t, harness: h, known: map[[2]uint64]bool{}}
}

func (w *twin) close() { _ = w.harness.Store.Close() }

// trace drives both stores.
type trace struct {
	*rapid.T
	a, b *twin
	ids  []issued
	last uint64 // number of the last ticket, chosen here because stores would choose different ones
	spec store.Spec

	plain bool // most operations are minimal

	foreseen *store.Result // what a store foresees for the next operation
}

// issued is a ticket by session and number, which are the same for both stores.
type issued struct {
	session int
	n       uint64
}

func (tr *trace) join(sp store.Spec) {
	tr.spec = sp
	for _, w := range []*twin{tr.a, tr.b} {
		w.sessions = append(w.sessions, join(w.t, w.harness, sp))
	}
}

func (tr *trace) chance(percent int, label string) bool {
	return rapid.IntRange(0, 99).Draw(tr.T, label) < percent
}

// age draws how late a report is: in whole milliseconds, as the log keeps it.
func (tr *trace) age() time.Duration {
	return rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond, 150 * time.Millisecond, time.Hour}).Draw(tr.T, "age")
}

func (tr *trace) step() {
	if tr.chance(40, "time") {
		d := time.Duration(rapid.OneOf(
			rapid.Int64Range(0, 2_000_000), rapid.Int64Range(0, 90_000_000), rapid.Just[int64](100_000),
			rapid.Just[int64](600_000_000), rapid.Just[int64](3*86_400_000_000),
		).Draw(tr.T, "microseconds")) * time.Microsecond
		tr.a.harness.Advance(d)
		tr.b.harness.Advance(d)
	} else {
		session := rapid.IntRange(0, len(tr.a.sessions)-1).Draw(tr.T, "session")
		ops := make([]store.Op, rapid.IntRange(1, 4).Draw(tr.T, "batch"))
		for i := range ops {
			ops[i] = tr.drawOp(session)
		}
		if op := &ops[0]; len(ops) == 1 && op.Kind == store.OpAcquire && op.ID.N == 0 {
			op.Wait = 0
			tr.foresee(session, *op)
		}
		tr.apply(session, ops)
	}
	tr.compare()
}

// foresee asks one of the stores what a try would get. The comparison with the other store, which is not asked, shows that
// asking changes nothing.
func (tr *trace) foresee(session int, op store.Op) {
	tr.foreseen = nil
	w := tr.b
	if tr.chance(50, "left foresees") {
		w = tr.a
	}
	f, ok := w.sessions[session].pool.(store.Foreseer)
	if !ok {
		return
	}
	var said [2]store.Result
	for i := range said {
		ops := []store.Op{op}
		if err := f.Foresee(context.Background(), ops, 0); err != nil {
			tr.Fatalf("foresee: %v", err)
		}
		said[i] = ops[0].Result
	}
	if said[0] != said[1] {
		tr.Fatalf("foreseen: %+v, then %+v", said[0], said[1])
	}
	tr.foreseen = &said[0]
}

// asForeseen compares what a try got with what was foreseen. Held is about waiting: a try never waits.
func (tr *trace) asForeseen(got store.Result) {
	f := tr.foreseen
	if f != nil && f.Reason.Code == store.CodePace && f.Reason.At == 0 {
		f.Reason.At = got.Reason.At // other requests decide when that ends
	}
	if f != nil && (f.State != got.State || f.Reason != got.Reason || f.Now != got.Now || f.GrantedAt != got.GrantedAt) {
		tr.Fatalf("foreseen: %+v\ngot:      %+v", *f, got)
	}
	tr.foreseen = nil
}

// apply gives the same ops to both stores. Each store names its sessions differently, so ids are translated.
func (tr *trace) apply(session int, ops []store.Op) {
	for i := range ops {
		if op := &ops[i]; op.Kind == store.OpAcquire && op.ID.N == 0 {
			tr.last += 1000 // far above the numbers that a store assigns
			op.ID.N = tr.last
		}
	}
	var results [2][]store.Result
	for i, w := range []*twin{tr.a, tr.b} {
		mine := make([]store.Op, len(ops))
		copy(mine, ops)
		if err := w.sessions[session].pool.Apply(context.Background(), mine); err != nil {
			tr.Fatalf("apply: %v", err)
		}
		for _, op := range mine {
			op.Result.ID.Session = 0
			results[i] = append(results[i], op.Result)
		}
	}
	for i, op := range ops {
		if results[0][i] != results[1][i] {
			tr.Fatalf("%+v\nleft:  %+v\nright: %+v", op, results[0][i], results[1][i])
		}
		tr.asForeseen(results[0][i])
		if n := results[0][i].ID.N; op.Kind == store.OpAcquire && n != 0 {
			tr.ids = append(tr.ids, issued{session, n})
		}
	}
}

func (tr *trace) compare() {
	for i := range tr.a.sessions {
		first := tr.a.harness.RemindsLate || tr.b.harness.RemindsLate
		l, r := tr.a.told(i, first), tr.b.told(i, first)
		if !reflect.DeepEqual(l, r) {
			tr.Fatalf("session %d was told of\nleft:  %v\nright: %v", i, l, r)
		}
	}
	l, r := tr.a.snapshot(tr.T), tr.b.snapshot(tr.T)
	if !reflect.DeepEqual(l, r) {
		tr.Fatalf("snapshots\nleft:  %+v\nright: %+v", l, r)
	}
	if l.InFlight < 0 {
		tr.Fatalf("%d in flight", l.InFlight)
	}
	for _, s := range l.Limits {
		if s.Used < 0 || s.Outstanding < 0 || s.Outside < 0 || s.Outside > s.Used {
			tr.Fatalf("limit %s of %q: used %d, outstanding %d, outside %d", s.Limit, s.Scope, s.Used, s.Outstanding, s.Outside)
		}
	}
	tr.compareHistory()
}

// compareHistory compares the histories of the two stores, if they have any.
func (tr *trace) compareHistory() {
	var all [2]store.History
	for i, w := range []*twin{tr.a, tr.b} {
		r, ok := w.sessions[0].pool.(store.Recorder)
		if !ok {
			return
		}
		h, err := r.History(context.Background(), 0)
		if err != nil {
			tr.Fatalf("history: %v", err)
		}
		all[i] = h
	}
	if !reflect.DeepEqual(all[0], all[1]) {
		tr.Fatalf("histories\nleft:  %+v\nright: %+v", all[0], all[1])
	}
	for _, p := range all[0].Periods {
		for _, a := range append([]int64{p.Sent, p.Retried, p.Throttled, p.Failed, int64(p.Waited)}, p.Amounts...) {
			if a < 0 || p.Sent > 1<<31 || p.Retried > p.Sent {
				tr.Fatalf("period %+v", p)
			}
		}
	}
}

// told returns the tickets that a session was told of. With first, it returns only those it was not told of before.
func (w *twin) told(session int, first bool) []uint64 {
	w.harness.Advance(0)
	var list []uint64
	for _, id := range w.sessions[session].takeTold() {
		key := [2]uint64{uint64(session), id.N}
		if first && w.known[key] {
			continue
		}
		w.known[key] = true
		list = append(list, id.N)
	}
	return list
}

func (w *twin) snapshot(t *rapid.T) store.Snapshot {
	snap, err := w.sessions[0].pool.Snapshot(context.Background())
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	for i := range snap.Queue {
		snap.Queue[i].ID.Session = 0
	}
	for i := range snap.Members {
		snap.Members[i].Session = 0
	}
	slices.SortFunc(snap.Members, func(a, b store.Member) int { // without names, members of the same time have no order
		return cmp.Or(cmp.Compare(a.Touched, b.Touched), cmp.Compare(a.Expires, b.Expires), cmp.Compare(a.Share, b.Share))
	})
	return snap
}

// settle lets all tickets expire. Nothing may be left.
func (tr *trace) settle() {
	for _, w := range []*twin{tr.a, tr.b} {
		for _, s := range w.sessions[1:] {
			_ = s.pool.Close() // otherwise unbounded waits would stay
		}
		var ops []store.Op
		for _, id := range tr.ids {
			if id.session == 0 {
				ops = append(ops, store.Op{Kind: store.OpCancel, ID: store.ID{N: id.n}})
			}
		}
		if err := w.sessions[0].pool.Apply(context.Background(), ops); err != nil {
			tr.Fatalf("apply: %v", err)
		}
		w.harness.Advance(72 * time.Hour)
		snap := w.snapshot(tr.T)
		if snap.InFlight != 0 || len(snap.Queue) != 0 {
			tr.Fatalf("%d in flight and %d waiting when all is over", snap.InFlight, len(snap.Queue))
		}
		for _, l := range snap.Limits {
			drains := l.Size > 0 || tr.kindOf(l.Limit) != store.Bucket // without a known rate it does not drain
			if l.Used != 0 && drains || l.Outstanding != 0 {
				tr.Fatalf("limit %s of %q: used %d, outstanding %d when all is over", l.Limit, l.Scope, l.Used, l.Outstanding)
			}
		}
	}
}

// drawSpec draws a pool. A plain one has only shared limits, and is seldom full.
func drawSpec(t *rapid.T, plain bool) store.Spec {
	limits := make([]store.Limit, rapid.IntRange(0, 4).Draw(t, "limits"))
	for i := range limits {
		l := &limits[i]
		l.Kind = store.Kind(rapid.IntRange(0, 3).Draw(t, "kind"))
		l.Guard = store.Guard(rapid.IntRange(0, 2).Draw(t, "guard"))
		l.Per = rapid.SampledFrom([]store.Scope{
			0, 0, 0, store.PerAgent, store.PerModel, store.PerUser, store.PerTool, store.PerKey, store.PerAgent | store.PerModel,
		}).Draw(t, "per")
		l.Size = rapid.SampledFrom([]int64{0, 1, 3, 10, 1000}).Draw(t, "size")
		if plain {
			l.Per, l.Size = 0, rapid.SampledFrom([]int64{10, 30, 1000}).Draw(t, "plenty")
		}
		l.Estimated = rapid.Bool().Draw(t, "rough")
		l.Plan = l.Kind == store.Fixed && rapid.Bool().Draw(t, "plan")
		if l.Kind != store.Concurrency {
			l.Window = rapid.SampledFrom([]time.Duration{time.Second, 10 * time.Second, time.Minute, time.Hour}).Draw(t, "window")
			l.Late = rapid.Bool().Draw(t, "late")
		}
		if l.Kind == store.Bucket && l.Size > 0 {
			l.Burst = rapid.Int64Range(1, l.Size).Draw(t, "burst")
		}
		if l.Kind == store.Fixed && rapid.Bool().Draw(t, "phased") {
			l.Reset = Start
		}
	}
	sp := spec(limits...)
	sp.Order = store.Order(rapid.IntRange(0, 2).Draw(t, "order"))
	sp.MaxWaiting = rapid.SampledFrom([]int{0, 3, 100}).Draw(t, "most")
	drawPolicy(t, &sp)
	return sp
}

// drawPolicy draws policies. Half of the specs have none.
func drawPolicy(t *rapid.T, sp *store.Spec) {
	sp.Classes = sp.Classes[:rapid.SampledFrom([]int{3, 3, 3, 2, 1}).Draw(t, "classes")]
	sp.Light, sp.Breaker, sp.Reserve = store.Light{}, store.Breaker{}, 0
	sp.Shares, sp.Pace, sp.Lease = false, false, 0
	if rapid.Bool().Draw(t, "plain") {
		return
	}
	sp.Light = rapid.SampledFrom([]store.Light{{}, {Green: 200, Red: 50}, {Green: 500, Red: 500}, {Green: 999}}).Draw(t, "light")
	if sp.Light.Green > 0 {
		sp.Light.Static, sp.Light.All = rapid.Bool().Draw(t, "static"), rapid.Bool().Draw(t, "all")
	}
	if rapid.Bool().Draw(t, "breaker") {
		sp.Breaker = store.Breaker{
			Within:  rapid.SampledFrom([]time.Duration{time.Second, 2 * time.Minute, time.Hour}).Draw(t, "within"),
			Samples: rapid.SampledFrom([]int{3, 10, store.MaxSamples}).Draw(t, "samples"), Open: rapid.Bool().Draw(t, "open"),
		}
	}
	sp.Reserve = rapid.SampledFrom([]int64{0, 0, 100, 999}).Draw(t, "reserve")
	sp.Shares, sp.Pace = rapid.Bool().Draw(t, "shares"), rapid.Bool().Draw(t, "pace")
	sp.Lease = rapid.SampledFrom([]time.Duration{0, 0, time.Second, 30 * time.Second, -1}).Draw(t, "lease")
}

// own returns the tickets of a session.
func (tr *trace) own(session int) (own []issued) {
	for _, id := range tr.ids {
		if id.session == session {
			own = append(own, id)
		}
	}
	return own
}

// drawPlain draws a typical operation: a minimal acquire, an answer, or a close.
func (tr *trace) drawPlain(own []issued) (op store.Op) {
	op.Kind = rapid.SampledFrom([]store.OpKind{
		store.OpAcquire, store.OpAcquire, store.OpAcquire, store.OpClose, store.OpClose, store.OpClose, store.OpAnswer, store.OpPoll, store.OpCancel,
	}).Draw(tr.T, "kind")
	if op.Kind != store.OpAcquire && len(own) > 0 {
		op.ID.N = rapid.SampledFrom(own).Draw(tr.T, "ticket").n
	}
	switch op.Kind {
	case store.OpAcquire:
		op.Agent = fmt.Sprint("agent", rapid.IntRange(0, 1).Draw(tr.T, "agent"))
		op.Class = uint8(rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(tr.T, "class"))
		op.Wait = rapid.SampledFrom([]time.Duration{-1, 0, time.Second}).Draw(tr.T, "wait")
		op.TTL = rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(tr.T, "ttl")
		op.Tie = store.Tie(rapid.SampledFrom([]int{0, 1, 1, 1, 2}).Draw(tr.T, "tie"))
		tr.drawAmounts(&op, 0)
	case store.OpAnswer:
		op.Verdict = store.VerdictOK
	}
	return op
}

func (tr *trace) drawOp(session int) store.Op {
	if tr.plain && !tr.chance(5, "odd") {
		return tr.drawPlain(tr.own(session))
	}
	name := func(label string) string {
		return rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(tr.T, label)
	}
	kind := rapid.SampledFrom([]store.OpKind{
		store.OpAcquire, store.OpAcquire, store.OpAcquire, store.OpAcquire, store.OpAcquire, store.OpPoll, store.OpPoll,
		store.OpAnswer, store.OpAnswer, store.OpClose, store.OpClose, store.OpCancel, store.OpRenew,
		store.OpObserve, store.OpObserve, store.OpPause, store.OpResume,
		store.OpHeartbeat, store.OpHeartbeat, store.OpLeave, store.OpLaunch,
		store.OpTouch, store.OpTouch, store.OpTouch, store.OpForget, store.OpGone,
	}).Draw(tr.T, "kind")
	op := store.Op{Kind: kind}
	own := tr.own(session)
	if kind != store.OpAcquire && kind != store.OpObserve && len(own) > 0 {
		op.ID.N = rapid.SampledFrom(own).Draw(tr.T, "ticket").n
	}
	switch kind {
	case store.OpGone:
		op.ID.N = rapid.Uint64Range(0, 1).Draw(tr.T, "sessions") // sessions have different numbers on each store
	case store.OpPoll:
		if tr.chance(30, "keep") {
			op.ID.N, op.Alive = 0, rapid.SampledFrom([]time.Duration{time.Second, 5 * time.Second, store.MaxTTL + 1}).Draw(tr.T, "keeps")
		}
	case store.OpAcquire:
		if len(own) > 0 && tr.chance(10, "again") {
			op.ID.N = rapid.SampledFrom(own).Draw(tr.T, "ticket").n
		}
		op.Agent = fmt.Sprint("agent", rapid.IntRange(0, 3).Draw(tr.T, "agent"))
		op.Spent, op.Force = tr.chance(10, "spent"), tr.chance(5, "force")
		op.User, op.Model, op.Tool, op.Key = name("user"), name("model"), name("tool"), name("key")
		op.Class = uint8(rapid.IntRange(0, 2).Draw(tr.T, "class"))
		op.Emergency = op.Class == 0 && tr.chance(20, "emergency")
		op.Retry = rapid.Bool().Draw(tr.T, "retry")
		op.Wait = rapid.SampledFrom([]time.Duration{-1, -1, 0, time.Second, time.Minute}).Draw(tr.T, "wait")
		op.Alive = rapid.SampledFrom([]time.Duration{0, 0, 3 * time.Second}).Draw(tr.T, "alive")
		op.TTL = rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(tr.T, "ttl")
		op.Tie = store.Tie(rapid.IntRange(0, 2).Draw(tr.T, "tie"))
		tr.drawAmounts(&op, 0)
	case store.OpClose:
		op.Spent = tr.chance(20, "spent")
		op.Age = tr.age()
		if tr.chance(50, "usage") {
			tr.drawAmounts(&op, -1)
		}
	case store.OpRenew:
		op.Wait = rapid.SampledFrom([]time.Duration{-1, 0, time.Second}).Draw(tr.T, "wait")
	case store.OpAnswer, store.OpObserve:
		op.Model, op.Key = name("model"), name("key")
		op.Verdict = rapid.SampledFrom([]store.Verdict{
			store.VerdictNone, store.VerdictOK, store.VerdictOK, store.VerdictOK, store.VerdictThrottled,
			store.VerdictOverloaded, store.VerdictExhausted, store.VerdictError, store.VerdictUnreachable,
		}).Draw(tr.T, "verdict")
		op.Scope = rapid.SampledFrom([]store.Scope{0, store.PerModel, store.PerKey}).Draw(tr.T, "scope")
		op.RetryAfter = rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Minute, time.Hour, 20 * time.Hour, 2 * store.MaxHint}).Draw(tr.T, "hint")
		op.Force = tr.chance(10, "force")
		if tr.chance(30, "cause") {
			op.Cause = rapid.SampledFrom([]string{"status 502", "connection refused"}).Draw(tr.T, "why")
		}
		if tr.chance(20, "rejected") {
			op.Rejected = rapid.SampledFrom([]int{400, 404, 404}).Draw(tr.T, "status")
		}
		tr.drawObserved(&op)
		op.Age = tr.age()
	case store.OpHeartbeat, store.OpLeave:
		op.Agent = fmt.Sprint("agent", rapid.IntRange(0, 3).Draw(tr.T, "agent"))
		op.User, op.Machine = name("user"), name("machine")
		op.Class = uint8(rapid.IntRange(0, 2).Draw(tr.T, "class"))
		op.TTL = rapid.SampledFrom([]time.Duration{0, 0, time.Second, time.Hour}).Draw(tr.T, "lease")
		if tr.chance(30, "slots") {
			op.Slots = store.Slots{Max: rapid.IntRange(1, 2).Draw(tr.T, "max"), TTL: rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(tr.T, "slot")}
		}
		if tr.chance(30, "waits") {
			op.WaitsFor = []string{"agent0", name("for")}
		}
	case store.OpTouch:
		op.TTL = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, time.Hour}).Draw(tr.T, "lease")
		op.Spent, op.Share = tr.chance(10, "leaves"), rapid.Int64Range(0, 4).Draw(tr.T, "share")
		op.Until = rapid.SampledFrom([]store.Time{0, 0, 0, Start, 2 * Start}).Draw(tr.T, "until")
	case store.OpLaunch:
		op.Wait = rapid.SampledFrom([]time.Duration{-1, 0, time.Second, time.Hour}).Draw(tr.T, "over")
	case store.OpPause:
		op.RetryAfter = rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(tr.T, "pause")
		op.Scope, op.Model = rapid.SampledFrom([]store.Scope{0, store.PerModel}).Draw(tr.T, "scope"), name("model")
	}
	return op
}

func (tr *trace) kindOf(limit string) store.Kind {
	return tr.spec.Limits[slices.IndexFunc(tr.spec.Limits, func(l store.Limit) bool { return l.Name == limit })].Kind
}

// drawAmounts states amounts of units, of single limits, and of what the pool does not have.
func (tr *trace) drawAmounts(op *store.Op, least int64) {
	amount := func() int64 { return rapid.SampledFrom([]int64{least, 0, 1, 1, 2, 7}).Draw(tr.T, "amount") }
	for i := range tr.spec.Limits {
		l := &tr.spec.Limits[i]
		switch rapid.IntRange(0, 9).Draw(tr.T, "states") {
		case 0:
			op.Amounts = append(op.Amounts, store.Amount{Unit: l.Unit, N: amount()})
		case 1:
			op.Amounts = append(op.Amounts, store.Amount{Unit: "other", Limit: l.Name, N: amount()})
		case 2:
			op.Amounts = append(op.Amounts, store.Amount{Unit: l.Unit, Limit: "other", N: amount()})
		case 3:
		default:
			op.Amounts = append(op.Amounts, store.Amount{Limit: l.Name, N: amount()})
		}
	}
}

func (tr *trace) drawObserved(op *store.Op) {
	if len(tr.spec.Limits) == 0 || !tr.chance(40, "observed") {
		return
	}
	op.Observed = []store.Observed{{
		Limit:     tr.spec.Limits[rapid.IntRange(0, len(tr.spec.Limits)-1).Draw(tr.T, "limit")].Name,
		Size:      rapid.SampledFrom([]int64{-1, 5, 20, 500}).Draw(tr.T, "stated"),
		Remaining: rapid.OneOf(rapid.SampledFrom([]int64{-1, 0, 3, 15}), rapid.Int64Range(0, 500)).Draw(tr.T, "remaining"),
		ResetIn:   rapid.SampledFrom([]time.Duration{-1, 0, time.Second, 30 * time.Second, 10 * time.Minute}).Draw(tr.T, "reset"),
		Slop:      rapid.SampledFrom([]time.Duration{0, 0, time.Millisecond}).Draw(tr.T, "slop"),
		Whole:     rapid.SampledFrom([]int64{0, 0, 0, 25}).Draw(tr.T, "whole"),
	}}
}

// Stepped is a store whose views first apply an empty batch. A store that does not move for a view decides some things at
// other moments than one that does, such as which lapsed record goes first. Compare it with the others through Stepped.
type Stepped struct{ store.Store }

// Pool implements [store.Store].
func (s Stepped) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.Store.Pool(ctx, spec)
	if err != nil {
		return nil, err
	}
	can := store.Can(p)
	return steppedPool{p, can.Recorder, can.Foreseer}, nil
}

type steppedPool struct {
	store.Pool
	store.Recorder
	store.Foreseer
}

// Snapshot implements [store.Pool].
func (p steppedPool) Snapshot(ctx context.Context) (store.Snapshot, error) {
	if err := p.Apply(ctx, nil); err != nil {
		return store.Snapshot{}, err
	}
	return p.Pool.Snapshot(ctx)
}
