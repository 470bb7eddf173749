package logstore

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/store"
)

// A member's share is a part of every limit that the others leave alone once the member has been silent for a while (see
// OpTouch). What they took before that may still count, so the member uses its share of a limit only when a window and the
// slack are over. Of places it reuses its own. The pool in which it decides is the code that all decide by, with smaller
// limits.

const (
	touchEvery  = time.Second             // so often a member says that it lives
	touchWithin = 1500 * time.Millisecond // a touch that arrives later has no effect
	silentAfter = 3 * time.Second         // when the pool begins to withhold a silent member's share
)

// member is this process as a member with a share. st.mu guards it.
type member struct {
	share   int64      // it has 1/share of every limit; 0: none
	heard   store.Time // when the log may have heard of it last
	expires store.Time // when its lease ends
}

// share decides in an outage.
type share struct {
	pool       *pool.Pool
	limits     []store.Limit
	from       []store.Time // when the share of a limit can be used; 0: never
	start, end store.Time
	unshared   []string
	early      []store.Op        // requests that wait for a share that cannot be used yet, with their deadline in Until
	local      map[store.ID]bool // requests that were granted, or wait, here
	process    uint64
}

// newShare returns what this process may use at a time, or nil. The caller holds st.mu.
func (st *state) newShare(now store.Time) *share {
	m, core := &st.member, st.rep.Pool()
	if core == nil || m.share == 0 || st.memberOf() == 0 {
		return nil
	}
	spec := core.Stated()
	s := &share{limits: spec.Limits, start: m.heard.Add(silentAfter), end: m.expires, process: st.process, local: map[store.ID]bool{}}
	own := st.ownPlaces(now)
	spec.Limits = slices.Clone(spec.Limits)
	for i := range spec.Limits {
		l := &spec.Limits[i]
		from := s.shareOf(l, m.share, own)
		if s.from = append(s.from, from); from == 0 {
			s.unshared = append(s.unshared, l.Name)
			*l = s.limits[i] // it is not used
		}
	}
	s.limits = slices.Clone(spec.Limits)
	var err error
	if s.pool, err = pool.New(spec, now); err != nil {
		return nil
	}
	s.pool.Apply(now, own)
	return s
}

// begins returns when the share of the first limit can be used.
func (s *share) begins() store.Time {
	at := s.end
	for _, from := range s.from {
		if from != 0 {
			at = min(at, max(from, s.start))
		}
	}
	return at
}

// shareOf makes a limit that of a member, and returns when it can be used; 0: never.
func (s *share) shareOf(l *store.Limit, n int64, own []store.Op) store.Time {
	if l.Per&^store.Shared != 0 {
		return s.start // a limit of an agent's own
	}
	d, err := meter.Compile(meter.Kind(l.Kind), meter.Guard(l.Guard), l.Window, l.Slack)
	if err != nil || l.Size == 0 || l.Size/n == 0 {
		return 0
	}
	if l.Kind == store.Concurrency {
		held := int64(0)
		for i := range own {
			amount, _ := store.AmountOf(own[i].Amounts, l)
			held += amount
		}
		l.Size = min(held, l.Size/n)
		if l.Size == 0 {
			return 0
		}
		return s.start
	}
	span := l.Window
	if l.Kind == store.Bucket && l.Burst > l.Size {
		span *= time.Duration((l.Burst + l.Size - 1) / l.Size)
	}
	if span.Microseconds() > policy.IslandWithin || d.Guard == meter.Strict || l.Late {
		return 0
	}
	l.Size /= n
	if l.Kind == store.Bucket {
		l.Burst = max(l.Burst/n, 1)
	}
	return s.start.Add(span) + store.Time(d.Most)
}

// ownPlaces returns acquires by force of the places that requests of this process hold. The caller holds st.mu.
func (st *state) ownPlaces(now store.Time) []store.Op {
	core := st.rep.Pool()
	fresh, err := pool.New(core.Stated(), now)
	if err != nil {
		return nil
	}
	ops := fresh.Missing(core.View(), now, st.memberOf(), func(session uint64) bool { return replica.ProcessOf(session) == st.process })
	ops = slices.DeleteFunc(ops, func(op store.Op) bool { return op.Kind != store.OpAcquire || !op.Force || op.ID.N == 0 })
	limits := core.Stated().Limits
	for i := range ops {
		ops[i].Amounts = slices.DeleteFunc(ops[i].Amounts, func(a store.Amount) bool {
			k := slices.IndexFunc(limits, func(l store.Limit) bool { return l.Name == a.Limit })
			return k < 0 || limits[k].Kind != store.Concurrency
		})
	}
	return ops
}

// allowed returns when an acquire may be decided here; 0: not before the log is back. Places are given only to requests that
// are over when the lease ends, because the others have them from then on.
func (s *share) allowed(now store.Time, op *store.Op) store.Time {
	at := s.start
	for i := range s.limits {
		l := &s.limits[i]
		if n, _ := store.AmountOf(op.Amounts, l); n <= 0 {
			continue
		}
		if s.from[i] == 0 || l.Kind == store.Concurrency && l.Per&^store.Shared == 0 && now.Add(op.TTL) > s.end {
			return 0
		}
		at = max(at, s.from[i])
	}
	if max(at, now) >= s.end {
		return 0
	}
	return at
}

// apply decides an operation on a request of this process.
func (s *share) apply(now store.Time, op *store.Op) {
	early := slices.IndexFunc(s.early, func(e store.Op) bool { return e.ID == op.ID })
	switch {
	case op.Kind == store.OpAcquire && early < 0:
		s.local[op.ID] = true
		s.acquire(now, op)
	case early >= 0 && op.Kind == store.OpCancel:
		s.early = slices.Delete(s.early, early, early+1)
		op.Result.State = store.Ended
	case early >= 0:
		op.Result.State, op.Result.Reason = store.Waiting, store.Reason{Code: store.CodeStore, At: s.allowed(now, &s.early[early])}
	default:
		s.step(now, op)
	}
}

func (s *share) acquire(now store.Time, op *store.Op) {
	at := s.allowed(now, op)
	if at != 0 && at <= now {
		s.step(now, op)
		return
	}
	op.Result.Reason = store.Reason{Code: store.CodeStore, Behind: store.CodeStore, At: at}
	if op.Wait == 0 || op.Wait > 0 && at > now.Add(op.Wait) || len(s.early) >= maxKept {
		op.Result.State = store.Refused
		return
	}
	op.Result.State = store.Waiting
	e := op.Clone()
	if e.Until = 0; op.Wait > 0 {
		e.Until = now.Add(op.Wait)
	}
	s.early = append(s.early, e)
}

// step has the pool of the share decide an operation.
func (s *share) step(now store.Time, op *store.Op) {
	ops := []store.Op{op.Clone()}
	s.pool.Apply(now, ops)
	op.Result = ops[0].Result
	if r := &op.Result.Reason; op.Result.State == store.Refused && r.Code != store.CodeInvalid || op.Result.State == store.Waiting {
		*r = store.Reason{Code: store.CodeStore, Behind: r.Code, Limit: r.Limit, At: r.At}
	}
	if op.Result.State == store.Unknown {
		op.Result.State = store.Ended
	}
}

// serve decides what time allows. It returns the requests whose callers have to be told, and when to serve again; 0: time
// alone decides nothing.
func (s *share) serve(now store.Time) (told []store.ID, next store.Time) {
	note := func(at store.Time) {
		if at > now && (next == 0 || at < next) {
			next = at
		}
	}
	s.early = slices.DeleteFunc(s.early, func(e store.Op) bool {
		at := s.allowed(now, &e)
		switch {
		case e.Until != 0 && e.Until <= now:
			told = append(told, e.ID)
			return true
		case at == 0 || at > now:
			note(at)
			note(e.Until)
			return false
		}
		op := s.again(now, &e)
		if s.step(now, &op); op.Result.State != store.Waiting {
			told = append(told, e.ID)
		}
		return true
	})
	if now < s.end {
		s.pool.Serve(now)
		told = append(told, s.pool.Decided()...)
		note(s.pool.Wake())
	}
	return told, next
}

// again returns the acquire of a request that waits, with the time that it has left.
func (s *share) again(now store.Time, e *store.Op) store.Op {
	op := e.Clone()
	if op.Until = 0; e.Until != 0 {
		op.Wait = max(e.Until.Sub(now), time.Microsecond)
	}
	return op
}

// granted returns operations that tell the log what was granted here, and what waits.
func (s *share) granted(now store.Time, by uint64) []store.Op {
	spec := s.pool.Stated()
	fresh, err := pool.New(spec, now)
	if err != nil {
		return nil
	}
	ops := fresh.Missing(s.pool.View(), now, by, func(session uint64) bool { return replica.ProcessOf(session) == s.process })
	for i := range s.early {
		ops = append(ops, s.again(now, &s.early[i]))
	}
	return ops
}

// waits returns the requests that wait here.
func (s *share) waits() []store.ID {
	ids := s.pool.Pending(func(session uint64) bool { return replica.ProcessOf(session) == s.process })
	for i := range s.early {
		ids = append(ids, s.early[i].ID)
	}
	return ids
}

// touch says that this process lives, as a member with a share.
func (st *state) touch() {
	st.mu.Lock()
	session := st.memberOf()
	if session == 0 || st.out != nil {
		if session == 0 {
			st.member = member{}
		}
		st.mu.Unlock()
		return
	}
	now := st.nowAt(st.store.clock.Uptime())
	op := store.Op{Kind: store.OpTouch, ID: store.ID{Session: session}, Share: st.member.share, Until: now.Add(touchWithin)}
	st.member.heard = max(st.member.heard, op.Until) // should its answer be lost, it may have been heard until then
	st.mu.Unlock()
	ops := []store.Op{op}
	if st.doOps(st.life, session, ops) != nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	r := &ops[0].Result
	if r.State != store.Granted {
		return
	}
	lease := st.rep.Pool().Stated().Lease
	if lease <= 0 {
		lease = store.DefaultLease
	}
	st.member = member{share: r.Share, heard: r.Now, expires: r.Now.Add(lease)}
}
