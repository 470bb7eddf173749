package storetest

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

// member is one session on a pool that behaves like a caller: it collects the tickets it is told of.
type member struct {
	*testing.T
	harness Harness
	pool    store.Pool
	limits  []store.Limit // that it states
	began   store.Time
	streams map[store.ID]*stream
	grants  []store.Result // collected, in the order in which they were told
	flowed  int            // of them that flow has answered
	gone    []store.ID     // told, but not granted

	mu   sync.Mutex
	told []store.ID
}

func (m *member) tell(ids []store.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.told = append(m.told, ids...)
}

func (m *member) takeTold() []store.ID {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := m.told
	m.told = nil
	return ids
}

// request is an acquire under construction.
type request struct{ op store.Op }

// want asks for amounts of the first limits, as class p1, and waits without a timeout.
func want(agent string, amounts ...int64) request {
	return request{store.Op{Kind: store.OpAcquire, Agent: agent, Class: 1, Wait: -1, TTL: 10 * time.Minute, Amounts: inOrder(amounts)}}
}

// inOrder states amounts of a member's first limits. Negative ones are not stated.
func inOrder(amounts []int64) (list []store.Amount) {
	for i, n := range amounts {
		if n >= 0 {
			list = append(list, store.Amount{Limit: place(i), N: n})
		}
	}
	return list
}

// place stands for the name of a member's limit with a number, until the member applies the operation.
func place(limit int) string { return "#" + strconv.Itoa(limit) }

// name returns the name of one of the member's limits.
func (m *member) name(limit int) string { return m.named(place(limit)) }

func (m *member) named(limit string) string {
	for i := range m.limits {
		if limit == place(i) {
			return m.limits[i].Name
		}
	}
	return limit
}

func (r request) class(c uint8) request         { r.op.Class = c; return r }
func (r request) model(s string) request        { r.op.Model = s; return r }
func (r request) user(s string) request         { r.op.User = s; return r }
func (r request) tool(s string) request         { r.op.Tool = s; return r }
func (r request) key(s string) request          { r.op.Key = s; return r }
func (r request) try() request                  { r.op.Wait = 0; return r }
func (r request) wait(d time.Duration) request  { r.op.Wait = d; return r }
func (r request) ttl(d time.Duration) request   { r.op.TTL = d; return r }
func (r request) alive(d time.Duration) request { r.op.Alive = d; return r }
func (r request) number(n uint64) request       { r.op.ID.N = n; return r }
func (r request) again() request                { r.op.Retry = true; return r }
func (r request) costs(limit int, a int64) request {
	return r.amount(store.Amount{Limit: place(limit), N: a})
}

// unit states an amount of all limits of a unit.
func (r request) unit(unit string, n int64) request { return r.amount(store.Amount{Unit: unit, N: n}) }

func (r request) amount(a store.Amount) request {
	r.op.Amounts = append(slices.Clip(r.op.Amounts), a)
	return r
}

// apply applies ops as one batch.
func (m *member) apply(ops ...store.Op) []store.Result {
	m.Helper()
	for i := range ops {
		op := ops[i].Clone()
		for k := range op.Amounts {
			op.Amounts[k].Limit = m.named(op.Amounts[k].Limit)
		}
		for k := range op.Observed {
			op.Observed[k].Limit = m.named(op.Observed[k].Limit)
		}
		ops[i] = op
	}
	if err := m.pool.Apply(context.Background(), ops); err != nil {
		m.Fatalf("apply: %v", err)
	}
	results := make([]store.Result, len(ops))
	for i := range ops {
		results[i] = ops[i].Result
	}
	return results
}

func (m *member) do(op store.Op) store.Result {
	m.Helper()
	return m.apply(op)[0]
}

// take asks and must be granted at once.
func (m *member) take(r request) store.ID {
	m.Helper()
	res := m.do(r.op)
	if res.State != store.Granted {
		m.Fatalf("%s was %v (%+v), want granted", r.op.Agent, res.State, res.Reason)
	}
	return res.ID
}

// queue asks and must be left waiting.
func (m *member) queue(r request) store.ID {
	m.Helper()
	res := m.do(r.op)
	if res.State != store.Waiting {
		m.Fatalf("%s was %v (%+v), want waiting", r.op.Agent, res.State, res.Reason)
	}
	return res.ID
}

// refused asks and must be refused for this reason.
func (m *member) refused(r request, code store.Code) store.Result {
	m.Helper()
	res := m.do(r.op)
	if res.State != store.Refused || res.Reason.Code != code {
		m.Fatalf("%s was %v (%v), want refused (%v)", r.op.Agent, res.State, res.Reason.Code, code)
	}
	return res
}

func (m *member) poll(id store.ID) store.Result {
	m.Helper()
	return m.do(store.Op{Kind: store.OpPoll, ID: id})
}

func (m *member) cancel(id store.ID) {
	m.Helper()
	m.ends(store.Op{Kind: store.OpCancel, ID: id})
}

// close ends a ticket. used is what was used, if it is known.
func (m *member) close(id store.ID, used ...int64) {
	m.Helper()
	m.ends(store.Op{Kind: store.OpClose, ID: id, Amounts: inOrder(used)})
}

func (m *member) spend(id store.ID) {
	m.Helper()
	m.ends(store.Op{Kind: store.OpClose, ID: id, Spent: true})
}

func (m *member) ends(op store.Op) {
	m.Helper()
	if res := m.do(op); res.State != store.Ended {
		m.Fatalf("operation %d on %v: %v, want ended", op.Kind, op.ID, res.State)
	}
}

// answer reports the verdict of the provider's response.
func (m *member) answer(id store.ID, v store.Verdict) {
	m.Helper()
	m.answered(store.Op{ID: id, Verdict: v})
}

func (m *member) answered(op store.Op) {
	m.Helper()
	op.Kind = store.OpAnswer
	if res := m.do(op); res.State != store.Granted {
		m.Fatalf("answer to %v: %v, want granted", op.ID, res.State)
	}
}

// state checks the state of a ticket with a poll.
func (m *member) state(id store.ID, want store.State) {
	m.Helper()
	if got := m.poll(id).State; got != want {
		m.Fatalf("%v after the start: ticket %v is %v, want %v", m.elapsed(), id, got, want)
	}
}

func (m *member) now() store.Time        { return m.pool.Now() }
func (m *member) elapsed() time.Duration { return m.now().Sub(m.began) }

// step is how often members check what they were told. It is well within the second that a grant waits for them.
const step = 100 * time.Millisecond

// pass lets time pass and collects what is granted.
func (m *member) pass(d time.Duration) {
	m.Helper()
	m.collect()
	for d > 0 {
		s := min(d, step)
		m.harness.Advance(s)
		m.collect()
		d -= s
	}
}

// sleep lets time pass and collects nothing.
func (m *member) sleep(d time.Duration) { m.harness.Advance(d) }

// collect polls every ticket that the store has reported.
func (m *member) collect() {
	m.Helper()
	for m.harness.Advance(0); ; m.harness.Advance(0) {
		ids := m.takeTold()
		if len(ids) == 0 {
			return
		}
		ops := make([]store.Op, len(ids))
		for i, id := range ids {
			ops[i] = store.Op{Kind: store.OpPoll, ID: id}
		}
		for _, res := range m.apply(ops...) {
			switch res.State {
			case store.Granted:
				m.grants = append(m.grants, res)
				m.flowOn(res)
			case store.Ended:
				m.gone = append(m.gone, res.ID)
				delete(m.streams, res.ID)
			default:
				m.Fatalf("told of %v, which is %v", res.ID, res.State)
			}
		}
	}
}

// grantedAt returns when a collected ticket was granted, and fails if it was not.
func (m *member) grantedAt(id store.ID) store.Time {
	m.Helper()
	for _, g := range m.grants {
		if g.ID == id {
			return g.GrantedAt
		}
	}
	m.Fatalf("%v after the start: ticket %v was not granted", m.elapsed(), id)
	return 0
}

func (m *member) wasGranted(id store.ID) bool {
	for _, g := range m.grants {
		if g.ID == id {
			return true
		}
	}
	return false
}

// exactly checks that a collected ticket was granted d after the start of the test.
func (m *member) exactly(id store.ID, d time.Duration) {
	m.Helper()
	m.between(id, d, d)
}

func (m *member) between(id store.ID, from, to time.Duration) {
	m.Helper()
	if at := m.grantedAt(id).Sub(m.began); at < from || at > to {
		m.Errorf("granted %v after the start, want between %v and %v", at, from, to)
	}
}

func (m *member) snapshot() store.Snapshot {
	m.Helper()
	s, err := m.pool.Snapshot(context.Background())
	if err != nil {
		m.Fatalf("snapshot: %v", err)
	}
	return s
}

// limit returns the state of a limit that has only one meter.
func (m *member) limit(i int) store.LimitState {
	m.Helper()
	var found []store.LimitState
	for _, l := range m.snapshot().Limits {
		if l.Limit == m.name(i) {
			found = append(found, l)
		}
	}
	if len(found) != 1 {
		m.Fatalf("limit %d has %d meters, want 1: %+v", i, len(found), found)
	}
	return found[0]
}

func (m *member) used(i int, want int64) {
	m.Helper()
	if got := m.limit(i).Used; got != want {
		m.Errorf("%v after the start: %d used of limit %d, want %d", m.elapsed(), got, i, want)
	}
}

// stream is a caller that always wants more: each time a request is granted, it ends it and asks again.
type stream struct {
	req     request
	granted int
	used    []int64       // what it reports as used when it ends a request; nil: nothing
	answers store.Verdict // none: it only closes
	last    store.Time
	gap     time.Duration // longest time without a grant
}

// stream starts a caller that keeps n requests waiting.
func (m *member) stream(r request, n int) *stream {
	m.Helper()
	s := &stream{req: r, last: m.now()}
	for range n {
		m.feed(s)
	}
	return s
}

func (m *member) feed(s *stream) {
	m.Helper()
	for {
		res := m.do(s.req.op)
		switch res.State {
		case store.Waiting:
			m.streams[res.ID] = s
			return
		case store.Granted:
			m.finish(s, res)
		default:
			m.Fatalf("%s was %v (%v), want granted or waiting", s.req.op.Agent, res.State, res.Reason.Code)
		}
	}
}

func (m *member) finish(s *stream, res store.Result) {
	m.Helper()
	s.granted++
	s.gap = max(s.gap, res.GrantedAt.Sub(s.last))
	s.last = res.GrantedAt
	if s.answers != store.VerdictNone {
		m.answer(res.ID, s.answers)
	}
	m.close(res.ID, s.used...)
}

// flowOn continues the stream that a collected grant belongs to.
func (m *member) flowOn(res store.Result) {
	m.Helper()
	if s := m.streams[res.ID]; s != nil {
		delete(m.streams, res.ID)
		m.finish(s, res)
		m.feed(s)
	}
}

// about checks a measured amount against the expected one, to within 5%.
func (m *member) about(what string, got, want float64) {
	m.Helper()
	if got < want*0.95 || got > want*1.05 {
		m.Errorf("%s: %.1f, want %.1f within 5%%", what, got, want)
	}
}
