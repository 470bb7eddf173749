package replica

import (
	"fmt"
	"slices"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// process is a member: it has joined, and has neither left nor been declared gone.
type process struct {
	number  uint64 // in entries; never used again
	id      uint64
	machine uint64
	least   int // rules that it knows
	most    int
	oneShot bool

	seq     uint16     // of its latest entry
	reading int64      // of its machine's monotonic clock there, in microseconds
	heard   store.Time // pool time there

	names    book[string]
	shapes   book[*shape]
	spec     string // that it last opened a session with, encoded
	current  uint32 // number of the session that its latest entry was last about
	shares   uint32 // number of the session that is a member with a share; 0: none
	sessions []*session
	byNumber map[uint32]*session
}

// clone returns an independent copy.
func (p *process) clone() *process {
	c := *p
	c.names.list, c.shapes.list = slices.Clone(p.names.list), slices.Clone(p.shapes.list)
	c.sessions, c.byNumber = nil, make(map[uint32]*session, len(p.sessions))
	for _, s := range p.sessions {
		copied := *s
		c.sessions = append(c.sessions, &copied)
		c.byNumber[s.number] = &copied
	}
	return &c
}

// madeBy returns the latest time at which an entry can have been made of which the machine's clock has this reading, as far
// as the process's previous entry tells. It is exact enough for clocks that are 1.5% apart.
func (p *process) madeBy(reading int64) store.Time {
	d := max(reading-p.reading, 0)
	return p.heard + store.Time(d+d/slower+1)
}

const slower = 64

// base returns the ticket number that entries count from.
func (p *process) base(session uint32) uint64 {
	if s := p.byNumber[session]; s != nil {
		return s.base
	}
	return 0
}

// departed is a process that has left or was declared gone. It is remembered for a while, so that a late copy of its
// first entry does not make it join again.
type departed struct {
	id  uint64
	seq uint16
	at  store.Time
}

const (
	sessionLife = int64(store.SessionLife / 1000)
	// mostSilence is the longest time without any entry that proves something about processes. After a longer one the
	// engine may have been out of reach, and all get their full time again.
	mostSilence = store.Time(6_000_000)
	// departedKept is how long a process that left is remembered. A copy of an entry is not later than that.
	departedKept = store.Time(60_000_000)
	maxDeparted  = 1 << 14
)

// of returns the member with a number in entries.
func (r *Replica) of(number uint64) *process {
	i, to := 0, len(r.processes)
	for i < to {
		if mid := (i + to) / 2; r.processes[mid].number < number {
			i = mid + 1
		} else {
			to = mid
		}
	}
	if i == len(r.processes) || r.processes[i].number != number {
		return nil
	}
	return r.processes[i]
}

// process returns the member with an id.
func (r *Replica) process(id uint64) *process { return r.byID[id] }

// mayJoin returns why a process cannot join, or nil.
func (r *Replica) mayJoin(h *head) error {
	id := h.member.process
	if r.process(id) != nil {
		return ErrDuplicate
	}
	if i := slices.IndexFunc(r.departed, func(d departed) bool { return d.id == id }); i >= 0 && h.seq != r.departed[i].seq+1 {
		return ErrDuplicate
	}
	if len(r.processes) >= store.MaxMembers {
		return crowdedError(len(r.processes))
	}
	if least, most := h.member.least, h.member.most; most < r.rules || least > r.rulesWith(most) {
		return &RulesError{r.rules, least, most}
	}
	return nil
}

// RulesError is an [ErrRules]: a pool decides by rules that a process does not know.
type RulesError struct{ Rules, Least, Most int }

func (e *RulesError) Error() string {
	known := fmt.Sprint("rules ", e.Least)
	if e.Most > e.Least {
		known += fmt.Sprint(" to ", e.Most)
	}
	return fmt.Sprintf("%v: the pool has rules %d, and this process knows %s", ErrRules, e.Rules, known)
}

// Unwrap returns ErrRules.
func (e *RulesError) Unwrap() error { return ErrRules }

// Hint says what to upgrade.
func (e *RulesError) Hint() string {
	if e.Least > e.Rules {
		return "upgrade the pool's other processes first, one release after the other; sluice doctor there names them"
	}
	return "this release is too old: install the release that the pool's other processes run"
}

// crowdedError is an [ErrCrowded] of a pool with so many processes.
type crowdedError int

func (e crowdedError) Error() string { return fmt.Sprintf("%v: there are %d", ErrCrowded, int(e)) }
func (e crowdedError) Unwrap() error { return ErrCrowded }

// Hint says how more processes can use the pool.
func (e crowdedError) Hint() string {
	return "let processes use the store of a daemon: --store http://DAEMON"
}

// newProcess returns the process that an entry is the first of.
func newProcess(h *head) *process {
	m := &h.member
	return &process{
		id: m.process, machine: m.machine, least: m.least, most: m.most, oneShot: m.oneShot,
		byNumber: map[uint32]*session{},
	}
}

// join makes a process a member.
func (r *Replica) join(p *process) {
	r.numbers++
	p.number = r.numbers
	r.departed = slices.DeleteFunc(r.departed, func(d departed) bool { return d.id == p.id })
	r.add(p)
	r.settleRules()
}

func (r *Replica) add(p *process) {
	if r.byID == nil {
		r.byID = map[uint64]*process{}
	}
	r.byID[p.id] = p
	r.processes = append(r.processes, p)
}

// drop ends the membership of a process that has no sessions any more.
func (r *Replica) drop(p *process) {
	delete(r.byID, p.id)
	r.processes = slices.DeleteFunc(r.processes, func(q *process) bool { return q == p })
	now := r.Now()
	r.departed = slices.DeleteFunc(r.departed, func(d departed) bool { return d.at+departedKept <= now })
	if len(r.departed) >= maxDeparted {
		r.departed = slices.Delete(r.departed, 0, 1)
	}
	r.departed = append(r.departed, departed{p.id, p.seq, now})
	r.settleRules()
}

// rulesWith returns the rules that the pool can have with the members and one more that knows rules up to most.
func (r *Replica) rulesWith(most int) int {
	for _, p := range r.processes {
		most = min(most, p.most)
	}
	return max(most, r.rules)
}

// settleRules raises the rules of the pool to the highest that all members know.
func (r *Replica) settleRules() {
	if len(r.processes) == 0 {
		return
	}
	r.setRules(r.rulesWith(r.processes[0].most))
}

// setRules makes the pool decide by other rules, if this release has them.
func (r *Replica) setRules(rules int) {
	r.rules = rules
	if rules < pool.LeastRules || rules > pool.Rules {
		r.broken = &RulesError{rules, pool.LeastRules, pool.Rules}
		return
	}
	if r.pool != nil {
		if err := r.pool.SetRules(rules); err != nil {
			r.broken = fmt.Errorf("%w: %w", ErrRules, err)
		}
	}
}

// deadline returns when a process counts as gone if it stays silent.
func (r *Replica) deadline(p *process) store.Time {
	return max(p.heard, r.awake) + store.Time(sessionLife)
}

// firstGone returns the member, other than but, that is gone first, and when; nil if there is no other. Before due there is
// none to look for.
func (r *Replica) firstGone(but *process, now store.Time) (p *process, at, due store.Time) {
	due = now + store.Time(sessionLife)
	for _, q := range r.processes {
		d := r.deadline(q)
		if q != but && (p == nil || d < at) {
			p, at = q, d
		}
		due = min(due, d)
	}
	return p, at, due
}

// declareGone ends a process that was silent for too long: its waiting requests are cancelled, its tied tickets bounded,
// and its limits no longer stated.
func (r *Replica) declareGone(p *process, at store.Time) {
	if r.pool != nil {
		ops := []store.Op{{Kind: store.OpGone, Tie: store.TieBeat, ID: store.ID{Session: p.id, N: MaxSession + 1}}}
		var waiting []uint64
		r.pool.EachWaiting(func(session uint64) bool {
			if ProcessOf(session) == p.id {
				waiting = append(waiting, session)
			}
			return true
		})
		for _, session := range waiting {
			ops = r.cancels(ops, session)
		}
		r.step(at, ops)
		p.sessions, p.byNumber = nil, nil
		r.settle(at)
	}
	r.drop(p)
}
