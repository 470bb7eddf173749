package proof_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// world plays one trace in virtual time: callers, the pool, the network and the
// provider, with no goroutines. The pool is told the time only by the operations
// of callers and by its own Wake.
type world struct {
	*trace
	pool    *pool.Pool
	now     store.Time
	events  queue
	steps   int
	calls   []call // by plan
	byN     []int  // plan of each ticket number
	judges  map[scope]*judge
	headers headers
	tally   tally
	failure error
	grants  []store.Time     // of every grant that was collected
	order   []int            // and to which plan
	bounds  []store.Time     // from the grant to the answer
	log     *strings.Builder // nil: not wanted
}

// tally is what happened in a trace.
type tally struct {
	sent, refused, renewed, granted, slow int
	lost                                  bool // the trace left its premise
}

// call is a plan being carried out.
type call struct {
	id      store.ID
	granted store.Time // as the store said
	held    store.Time // when the ticket was collected: its time to live counts from here
	arrives store.Time
	ends    store.Time // of the provider's work
	seen    []store.Observed
	renews  int
	asks    int
	written bool
	over    bool // the caller wants nothing more
}

type scope struct {
	limit int
	of    int // agent or model
}

type kind uint8

const (
	evAsk kind = iota
	evKeep
	evCollect
	evHold
	evWrite
	evSpend
	evArrive
	evMake
	evAnswer
	evFinish
	evClose
)

var kindNames = [...]string{"ask", "keep", "collect", "hold", "write", "spend", "arrive", "make", "answer", "finish", "close"}

// maxSteps is far beyond what a request needs of events: a trace that gets there spins.
const maxSteps = 1000

func play(tr *trace, log *strings.Builder) *world {
	w := &world{trace: tr, now: sim.Epoch, calls: make([]call, len(tr.plans)), judges: map[scope]*judge{}, log: log, byN: []int{-1}}
	w.headers.bar = store.Time(2 * tr.slack().Microseconds())
	p, err := pool.New(tr.spec, w.now)
	if err != nil {
		w.failure = err
		return w
	}
	w.pool = p
	for i := range tr.plans {
		w.after(tr.plans[i].at, evAsk, i)
	}
	w.run()
	if w.failure == nil {
		w.settled()
	}
	return w
}

func (w *world) fail(format string, args ...any) {
	if w.failure == nil {
		w.failure = fmt.Errorf("at %v: %s", since(w.now), fmt.Sprintf(format, args...))
	}
}

func (w *world) logf(format string, args ...any) {
	if w.log != nil {
		fmt.Fprintf(w.log, "%14v  %s\n", since(w.now), fmt.Sprintf(format, args...))
	}
}

func (w *world) after(d store.Time, k kind, i int) {
	w.events.push(event{at: w.now + d, kind: k, plan: int32(i)})
}

func (w *world) run() {
	for w.failure == nil {
		wake := w.pool.Wake()
		if w.events.len() == 0 && wake == 0 {
			return
		}
		if w.steps++; w.steps > maxSteps*(1+len(w.plans)) {
			w.fail("the trace does not end: %d wait, wake at %v", w.waiting(), since(wake))
			return
		}
		if w.events.len() == 0 || wake != 0 && wake < w.events.first().at {
			w.now = max(wake, w.now)
			w.apply()
			continue
		}
		e := w.events.pop()
		w.now = e.at
		w.handle(e)
	}
}

func (w *world) handle(e event) {
	i := int(e.plan)
	c, p := &w.calls[i], &w.plans[i]
	if e.kind != evKeep {
		w.logf("%-7s #%d", kindNames[e.kind], i)
	}
	switch e.kind {
	case evAsk:
		w.ask(i)
	case evKeep:
		if !c.over && c.granted == 0 {
			w.result(i, w.apply(store.Op{Kind: store.OpPoll, ID: c.id}))
		}
	case evCollect:
		if c.granted == 0 {
			w.result(i, w.apply(store.Op{Kind: store.OpPoll, ID: c.id}))
		}
	case evHold:
		w.hold(i)
	case evWrite:
		w.write(i)
	case evSpend:
		w.apply(store.Op{Kind: store.OpClose, ID: c.id, Spent: true})
	case evArrive:
		w.arrive(i)
	case evMake:
		c.seen = w.statement(i)
		w.after(p.back, evAnswer, i)
	case evAnswer:
		w.answer(i)
	case evFinish:
		w.finish(i)
	case evClose:
		w.close(i)
	}
}

// apply carries out ops and starts those who were let in by them.
func (w *world) apply(ops ...store.Op) store.Result {
	w.pool.Apply(w.now, ops)
	for _, id := range w.pool.Decided() {
		i := w.byN[id.N]
		w.logf("        #%d decided", i)
		if p := &w.plans[i]; p.fate != diesWaiting && p.fate != neverCollects {
			w.after(p.collect, evCollect, i)
		}
	}
	if len(ops) == 0 {
		return store.Result{}
	}
	return ops[0].Result
}

func (w *world) op(i int) store.Op {
	p := &w.plans[i]
	op := store.Op{
		Kind: store.OpAcquire, ID: store.ID{Session: 1}, Agent: agentNames[p.agent], Model: modelNames[p.model], Class: uint8(p.class),
		Wait: p.wait, Alive: p.alive, TTL: w.ttl,
	}
	for l := range w.spec.Limits {
		op.Amounts = append(op.Amounts, store.Amount{Limit: w.spec.Limits[l].Name, N: p.cost[l]})
	}
	return op
}

// ask asks for a ticket; all who ask in this moment do so in one batch.
func (w *world) ask(i int) {
	batch := []int{i}
	for w.batch && w.events.len() > 0 && w.events.first().at == w.now && w.events.first().kind == evAsk {
		batch = append(batch, int(w.events.pop().plan))
	}
	ops := make([]store.Op, len(batch))
	for k, i := range batch {
		ops[k] = w.op(i)
		id := store.ID{Session: 1, N: uint64(len(w.byN))}
		if w.numbers {
			ops[k].ID = id
		}
		w.calls[i].id = id // the store counts the same way
		w.byN = append(w.byN, i)
	}
	w.apply(ops...)
	for k, i := range batch {
		w.calls[i].asks++
		if ops[k].Result.ID != w.calls[i].id {
			w.fail("#%d is ticket %v, want %v", i, ops[k].Result.ID, w.calls[i].id)
		}
		w.result(i, ops[k].Result)
		if w.plans[i].twice {
			again := ops[k]
			w.apply(again)
		}
	}
}

// result acts on what became of a caller's request for a ticket.
func (w *world) result(i int, r store.Result) {
	c, p := &w.calls[i], &w.plans[i]
	if r.State != store.Waiting {
		w.logf("        #%d %v %v", i, r.State, r.Reason.Code)
	}
	switch r.State {
	case store.Granted:
		c.granted, c.held = r.GrantedAt, r.Now
		w.tally.granted++
		w.grants, w.order = append(w.grants, r.GrantedAt), append(w.order, i)
		if waited := r.GrantedAt - sim.Epoch - p.at; waited > w.longest {
			w.fail("#%d was granted only %v after it asked", i, waited.Sub(0))
		}
		w.after(p.reply, evHold, i)
	case store.Waiting:
		c.granted = 0
		if p.alive > 0 && p.fate != diesWaiting {
			w.after(store.Time(p.alive.Microseconds()/2), evKeep, i)
		}
	case store.Refused:
		c.over = true
		if r.Reason.Code != store.CodeDeadline && (p.wait != 0 || r.Reason.Code == store.CodeCapacity) {
			w.fail("#%d was refused: %v", i, r.Reason.Code)
		}
	case store.Ended:
		c.over = true
		if p.wait >= 0 {
			return // its time was over
		}
		if p.collect < 900_000 {
			w.fail("#%d waited and was dropped", i)
		} else if c.asks < 3 {
			c.over = false // too slow to collect: asks anew
			w.after(0, evAsk, i)
		}
	default:
		w.fail("#%d: the store does not know its ticket", i)
	}
}

func (w *world) hold(i int) {
	c, p := &w.calls[i], &w.plans[i]
	switch p.fate {
	case diesHolding:
		c.over = true
	default:
		think := p.think
		if c.renews > 0 {
			think = min(think, 1000)
		}
		w.after(think, evWrite, i)
	}
}

// write begins to send, or renews a ticket that has become stale.
func (w *world) write(i int) {
	c, p := &w.calls[i], &w.plans[i]
	if p.fate == cancels {
		c.over = true
		w.apply(store.Op{Kind: store.OpCancel, ID: c.id})
		if p.twice {
			w.apply(store.Op{Kind: store.OpCancel, ID: c.id})
		}
		return
	}
	last := c.held.Add(w.ttl)
	stale := w.now > last
	if w.premise != withinTTL {
		slack := w.slackOf(p)
		last = min(last, c.granted.Add(slack))
		stale = stale || 2*w.now.Sub(c.granted) > slack
		if p.fate == spends {
			last = min(last, (w.now + p.spend).Add(w.briefOf(p)))
		}
	}
	if stale {
		if c.renews++; c.renews > 5 {
			c.over = true
			w.apply(store.Op{Kind: store.OpCancel, ID: c.id})
			return
		}
		w.tally.renewed++
		op := w.op(i)
		op.Kind, op.ID = store.OpRenew, c.id
		r := w.apply(op)
		if r.State == store.Ended { // its time to live was over
			c.over = true
			return
		}
		w.result(i, r)
		return
	}
	c.written = true
	w.tally.sent++
	switch {
	case w.premise == untruncated:
		c.arrives = w.now + p.request
	case p.atLast:
		c.arrives = last
	default:
		c.arrives = min(w.now+p.request, last)
	}
	w.events.push(event{at: c.arrives, kind: evArrive, plan: int32(i)})
	if p.fate == spends {
		w.after(p.spend, evSpend, i)
	}
}

// settled checks, when all is over, that nothing is left of it.
func (w *world) settled() {
	if n := w.waiting(); n > 0 {
		w.fail("%d wait and nothing will wake them", n)
	}
	w.now = w.now.Add(w.ttl + time.Second)
	w.apply()
	w.now += 1e12
	w.apply()
	s := w.pool.Snapshot(w.now)
	if s.InFlight != 0 {
		w.fail("%d are in flight for ever", s.InFlight)
	}
	for _, l := range s.Limits {
		if l.Used != 0 || l.Outstanding != 0 || l.Outside != 0 {
			w.fail("limit %s %s leaks: %d used, %d outstanding, %d outside", l.Limit, l.Scope, l.Used, l.Outstanding, l.Outside)
		}
	}
	for _, j := range w.judges {
		if err := j.broken(); err != nil && w.judging && j.refused == 0 {
			w.fail("limit %s: the model admitted what the rule forbids: %v", j.limit.Name, err)
		}
	}
}

func (w *world) waiting() (n int) {
	for _, k := range w.pool.Snapshot(w.now).Waiting {
		n += k
	}
	return n
}
