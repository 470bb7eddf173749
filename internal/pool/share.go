package pool

import (
	"cmp"
	"math"
	"slices"

	"github.com/sluicehq/sluice/internal/meter"
	"github.com/sluicehq/sluice/store"
)

// Share is the pool of a member that is cut off. It decides within the member's part of every limit by the code that all
// pools decide by, so that all members together keep every limit, whatever the others do.
//
// Two times make it safe, both at the earliest that the log's clock can show them. From the start on the others leave the
// member's part alone, see member. Nothing is granted before. At the end its lease is over, and nothing is granted any more.
//
// Until the start the others may have taken all that was free, and their requests may be in flight for the longest slack
// after it. To the share that is one more request: it takes the part of every limit at the start, and arrives when the
// slack is over. What the member had charged itself and the log does not give back before the start, nobody else can have
// taken. So that request is smaller by this amount, and the member uses its own charges again as they come back.
//
//   - Until the others' charges have come back, they have at most all but what the member had at the start, and it has at
//     most that. If they charge anything after the start, they leave the whole part alone.
//   - Then the others have at most all but the part, and the member the part.
//
// It is as safe to forget some of the own charges: they count as those of others.
//
// Places come back only when their requests are over, and so do charges of which only the end of a request tells that it has
// arrived. There the member only uses its own again, for requests that are over by the end. A window that ends at a reset,
// and a bucket, are full when the slack is over. Of limits above shareWithin it has nothing.
type Share struct {
	pool       *Pool // decides
	known      *Pool // the same, but only with what the log knows
	mine       func(session uint64) bool
	start, end int64
	begun      bool
	parts      []part // by limit
	theirs     []store.Op
	arrivals   []arrival
	early      []store.Op            // requests that wait for a time, see from
	queued     map[store.ID]store.Op // requests that wait in the pool
	due        int64                 // when time next concerns one of these
	local      map[store.ID]bool     // requests that the log does not know
	told       []store.ID
}

// part is the member's part of a limit.
type part struct {
	of      int64              // of its capacity; 0: none
	bounded bool               // only for requests that are over by the end
	from    int64              // when the first of it can be used
	full    int64              // when all of it is the member's
	scopes  map[meterName]bool // of its meters as the log has them; nil: it has but one
}

// arrival is when a made-up request has arrived.
type arrival struct {
	id store.ID
	at int64
}

// elsewhere is the session of made-up requests.
const elsewhere = 1 << 63

// CutOff says how a member was cut off.
type CutOff struct {
	Share  int64      // it has 1/Share of every limit
	Heard  store.Time // the latest time at which the log can have heard of it
	End    store.Time // of its lease
	Mine   func(session uint64) bool
	Unsure map[store.ID]bool // requests that may be over or not: an operation on them may or may not have reached the log
}

// CutOff returns the share of a member that was cut off by now. The pool is that of the log as the member knows it, and
// remembers the member's charges, see Remember.
func (p *Pool) CutOff(now store.Time, c *CutOff) (*Share, error) {
	s := &Share{mine: c.Mine, start: int64(c.Heard) + silentAfter, end: int64(c.End), due: meter.Never, queued: map[store.ID]store.Op{}, local: map[store.ID]bool{}}
	own := p.ownCharges(s.start, c)
	spec := p.Stated()
	for i := range spec.Limits {
		s.parts = append(s.parts, p.cut(s, &spec.Limits[i], c.Share, own.stood))
	}
	began := int64(now)
	if len(own.past) > 0 {
		began = min(began, own.past[0].at)
	}
	var err error
	if s.pool, err = New(spec, store.Time(began)); err != nil {
		return nil, err
	}
	for i := range own.past {
		m := &own.past[i]
		if m.at > int64(now) { // it may not have arrived yet
			s.arrivals = append(s.arrivals, arrival{m.ops[0].ID, m.at})
			m.at, m.ops = int64(now), m.ops[:1]
		}
		s.pool.renumber(m.ops[0].ID, 0)
		s.pool.Apply(store.Time(m.at), m.ops)
	}
	for i := range own.past {
		id := own.past[i].ops[0].ID
		s.pool.renumber(id, id.N)
	}
	slices.SortStableFunc(s.arrivals, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	s.known = s.pool.Fork()
	return s, nil
}

// renumber sets the number of a session's latest request to number, if that is lower than the request's, or to a higher one.
func (p *Pool) renumber(id store.ID, number uint64) {
	if i := p.findSession(id.Session); i != 0 {
		s := p.sessions.At(i)
		if number == 0 {
			s.high = min(s.high, id.N-1) // requests are not granted in the order of their numbers
		}
		s.high = max(s.high, number)
	}
}

// owned is what a member has charged that still counts.
type owned struct {
	stood map[meterName]int64 // what the log does not give back before the start
	past  []moment            // in order
}

// moment is when something happened to requests.
type moment struct {
	at  int64
	ops []store.Op
}

// ownCharges returns what a member has charged, but for buckets.
func (p *Pool) ownCharges(start int64, c *CutOff) *owned {
	own := &owned{stood: map[meterName]int64{}}
	for i := int32(1); i < p.tickets.End(); i++ {
		tk := p.tickets.At(i)
		if tk.state == stateHeld && !tk.lost && c.Mine(tk.id.Session) && !c.Unsure[tk.id] {
			p.ownTicket(own, start, tk)
		}
	}
	for i := int32(1); i < p.insts.End(); i++ {
		in := p.insts.At(i)
		if !in.used || p.isRetired(int(in.limit)) {
			continue
		}
		name := p.meterName(in)
		p.own.each(i, name.limit, func(u standing) {
			if u.granted+p.defOf(in).Window > start {
				own.stood[name] += u.amount
			}
			op := madeUp(name, u.amount, uint64(len(own.past)+1))
			own.past = append(own.past, moment{u.bound, append([]store.Op{op}, arrives(op.ID)...)})
		})
	}
	slices.SortStableFunc(own.past, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	return own
}

// ownTicket adds the charges of a ticket that is open.
func (p *Pool) ownTicket(own *owned, start int64, tk *ticket) {
	op, answered := p.again(tk), tk.granted
	op.TTL, op.Tie, op.Amounts = micros(tk.ends-tk.granted), store.TieNone, nil
	for k := range tk.n {
		c := &tk.charges[k]
		in, l := p.insts.At(c.inst), &p.spec.Limits[c.limit]
		holds := l.Kind == store.Concurrency
		if p.isRetired(int(c.limit)) || l.Kind == store.Bucket || !holds && p.shared&(1<<c.limit) == 0 {
			continue
		}
		op.Amounts = append(op.Amounts, store.Amount{Limit: l.Name, N: c.Amount})
		if holds && tk.ends > start || !holds && tk.granted+p.defOf(in).Window > start {
			own.stood[p.meterName(in)] += c.Amount
		}
		if !holds && c.Mode == meter.Bound {
			answered = max(answered, c.Mark)
		}
	}
	if len(op.Amounts) == 0 {
		return
	}
	own.past = append(own.past, moment{tk.granted, []store.Op{op}})
	if tk.answered {
		own.past = append(own.past, moment{answered, []store.Op{{Kind: store.OpAnswer, ID: op.ID}}})
	}
}

// madeUp returns the acquire of a made-up request that charges one meter.
func madeUp(name meterName, amount int64, n uint64) store.Op {
	return store.Op{
		Kind: store.OpAcquire, ID: store.ID{Session: elsewhere, N: n}, Agent: cmp.Or(name.agent, otherName), User: name.user, Model: name.model, Tool: name.tool,
		Key: name.key, Force: true, TTL: store.MaxTTL, Amounts: []store.Amount{{Limit: name.limit, N: min(amount, store.MaxAmount)}},
	}
}

// arrives returns operations that say that a made-up request has arrived.
func arrives(id store.ID) []store.Op {
	return []store.Op{{Kind: store.OpAnswer, ID: id}, {Kind: store.OpClose, ID: id}}
}

// cut makes a limit the part of a member, and notes what others may take of it until the start.
func (p *Pool) cut(s *Share, l *store.Limit, n int64, stood map[meterName]int64) part {
	limit := p.Index(l.Name)
	if p.shared&(1<<limit) == 0 {
		return part{of: math.MaxInt64, from: s.start}
	}
	whole := *l
	var meters []*inst
	window := l.Window.Microseconds()
	for i := int32(1); i < p.insts.End(); i++ {
		if in := p.insts.At(i); in.used && int(in.limit) == limit {
			meters = append(meters, in)
			window = max(window, p.defOf(in).Window) // responses may have shown a longer one
		}
	}
	if l.Per == 0 && l.Kind != store.Bucket && meters[0].Cap > 0 && (l.Size == 0 || meters[0].Cap < l.Size) {
		l.Size = meters[0].Cap
	}
	l.Window = micros(window)
	d, err := compile(l)
	capacity, span := l.Size, window
	if l.Kind == store.Bucket {
		if capacity = cmp.Or(l.Burst, l.Size); capacity > l.Size && l.Size > 0 {
			span = min((capacity+l.Size-1)/l.Size, meter.MaxAmount/window+1) * window
		}
	}
	awaits := d.Guard == meter.Strict || d.Late
	mine := part{of: capacity / n, bounded: l.Kind == store.Concurrency || awaits, full: s.start + d.Most + span}
	if err != nil || l.Size == 0 || mine.of == 0 || span > shareWithin || l.Kind == store.Bucket && awaits {
		*l = whole // it is not used
		return part{}
	}
	arrive := s.start + d.Most
	if mine.bounded {
		mine.full, arrive = meter.Never, meter.Never
	}
	if mine.from = mine.full; l.Kind == store.Bucket {
		mine.from = arrive
		l.Window, l.Slack, l.Burst = micros(window*n), micros(d.Slack), mine.of
	} else {
		l.Size = mine.of
	}
	if l.Kind == store.Fixed && l.Guard != store.GuardOff {
		l.Reset = knownReset(meters, l.Per)
	}
	if l.Per != 0 {
		mine.scopes = map[meterName]bool{}
	}
	for _, in := range meters {
		name, size, reused := p.meterName(in), mine.of, int64(0)
		if in.Cap > 0 && l.Kind != store.Bucket {
			size = min(size, in.Capacity(p.ring(in))/n)
		}
		if l.Kind != store.Bucket && !in.IsStock(p.defOf(in)) {
			reused = min(stood[name], size)
		}
		if reused > 0 {
			mine.from = s.start
		}
		s.take(name, mine.of-size, meter.Never)
		s.take(name, size-reused, arrive)
		if l.Per != 0 {
			mine.scopes[name] = true
		}
	}
	return mine
}

// knownReset returns the reset of a fixed window; 0 if it is not known so exactly as a pool takes it that is told.
func knownReset(meters []*inst, per store.Scope) store.Time {
	const exactly = 2_400_000
	if in := meters[0]; per == 0 && in.Hi != 0 && in.Hi-in.Last <= exactly {
		return store.Time(in.Last + (in.Hi-in.Last)/2)
	}
	return 0
}

// take notes that a made-up request takes an amount at the start, and when it arrives.
func (s *Share) take(name meterName, amount, at int64) {
	if amount <= 0 {
		return
	}
	op := madeUp(name, amount, 1<<32+uint64(len(s.theirs)))
	s.theirs = append(s.theirs, op)
	if at != meter.Never {
		s.arrivals = append(s.arrivals, arrival{op.ID, at})
	}
}

// from returns when an acquire may be decided here: from then on the pool sees to it; 0: not before the log is back.
func (s *Share) from(now int64, op *store.Op) int64 {
	at := s.start
	for i := range s.parts {
		l, mine := &s.pool.spec.Limits[i], &s.parts[i]
		n, _ := store.AmountOf(op.Amounts, l)
		switch {
		case n <= 0:
			continue
		case n > mine.of, mine.bounded && max(now, s.start)+op.TTL.Microseconds() > s.end:
			return 0
		case mine.scopes != nil && !mine.scopes[nameOf(l, op)]: // others may have charged it since
			at = max(at, mine.full)
		}
	}
	if max(at, now) >= s.end {
		return 0
	}
	return at
}

// nameOf returns the meter of a limit that an acquire charges.
func nameOf(l *store.Limit, op *store.Op) (name meterName) {
	name.limit = l.Name
	if l.Per&store.PerModel != 0 {
		name.model = op.Model
	}
	if l.Per&store.PerKey != 0 {
		name.key = op.Key
	}
	return name
}

// Has reports whether a request was asked for here.
func (s *Share) Has(id store.ID) bool { return s.local[id] }

// Do decides an operation on a request that was asked for here, or an acquire.
func (s *Share) Do(now store.Time, op *store.Op) {
	s.advance(int64(now))
	i := slices.IndexFunc(s.early, func(e store.Op) bool { return e.ID == op.ID })
	r := &op.Result
	switch {
	case op.Kind == store.OpAcquire && !s.local[op.ID]:
		s.local[op.ID] = true
		s.acquire(int64(now), op)
	case i >= 0 && (op.Kind == store.OpCancel || op.Kind == store.OpClose):
		s.early = slices.Delete(s.early, i, i+1)
		r.State = store.Ended
	case i >= 0:
		r.State, r.Reason = store.Waiting, store.Reason{Code: store.CodeStore, At: store.Time(s.from(int64(now), &s.early[i]))}
	default:
		s.step(int64(now), op)
	}
}

// maxEarly bounds the requests that wait outside the pool.
const maxEarly = 4096

func (s *Share) acquire(now int64, op *store.Op) {
	at := s.from(now, op)
	if at != 0 && at <= now {
		s.step(now, op)
		return
	}
	r := &op.Result
	r.Reason = store.Reason{Code: store.CodeStore, Behind: store.CodeStore, At: store.Time(at)}
	if op.Wait == 0 || op.Wait > 0 && at > now+op.Wait.Microseconds() || len(s.early) >= maxEarly {
		r.State = store.Refused
		return
	}
	r.State = store.Waiting
	s.postpone(now, dated(now, op))
}

// postpone lets a request wait outside the pool.
func (s *Share) postpone(now int64, e store.Op) {
	s.early = append(s.early, e)
	if e.Until != 0 {
		s.due = min(s.due, int64(e.Until))
	}
	if at := s.from(now, &e); at > now {
		s.due = min(s.due, at)
	}
}

// dated returns an acquire with its deadline in Until.
func dated(now int64, op *store.Op) store.Op {
	e := op.Clone()
	if e.Until = 0; op.Wait > 0 {
		e.Until = store.Time(now + op.Wait.Microseconds())
	}
	return e
}

// undated returns an acquire with the time that it has left.
func undated(now int64, e *store.Op) store.Op {
	op := e.Clone()
	if op.Until = 0; e.Until != 0 {
		op.Wait = max(micros(int64(e.Until)-now), micros(1))
	}
	return op
}

// step has the pool decide an operation. What responses say of the provider's limits does not concern the share.
func (s *Share) step(now int64, op *store.Op) {
	ops := []store.Op{op.Clone()}
	ops[0].Observed = nil
	s.pool.Apply(store.Time(now), ops)
	s.note()
	op.Result = ops[0].Result
	switch r := &op.Result; {
	case r.State == store.Unknown:
		r.State = store.Ended
	case r.State == store.Waiting || r.State == store.Refused && r.Reason.Code != store.CodeInvalid:
		r.Reason = store.Reason{Code: store.CodeStore, Behind: r.Reason.Code, Limit: r.Reason.Limit, At: r.Reason.At}
	}
	if op.Result.State != store.Waiting {
		delete(s.queued, op.ID)
	} else if op.Kind == store.OpAcquire {
		s.queued[op.ID] = dated(now, op)
		s.due = min(s.due, s.until(op)+1)
	}
}

// note notes the requests that the latest step has decided.
func (s *Share) note() {
	for _, id := range s.pool.Decided() {
		delete(s.queued, id)
		s.told = append(s.told, id)
	}
}

// Know carries out an operation on a request that the log knows, and will be told.
func (s *Share) Know(now store.Time, op *store.Op) {
	s.advance(int64(now))
	known := op.Clone()
	known.Observed = nil
	s.both(int64(now), []store.Op{known})
}

// both carries out what the log knows, or will be told.
func (s *Share) both(now int64, ops []store.Op) {
	s.known.Apply(store.Time(now), slices.Clone(ops))
	s.pool.Apply(store.Time(now), ops)
	s.note()
}

// Serve decides what time allows. It returns the requests whose callers have to be told, and when to serve again; 0: time
// alone decides nothing.
func (s *Share) Serve(now store.Time) (told []store.ID, next store.Time) {
	s.advance(int64(now))
	told, s.told = s.told, nil
	if len(s.early)+len(s.queued) == 0 {
		return told, 0
	}
	soonest := s.due
	if len(s.arrivals) > 0 {
		soonest = min(soonest, s.arrivals[0].at)
	}
	if wake := int64(s.pool.Wake()); wake > int64(now) {
		soonest = min(soonest, wake)
	}
	if !s.begun {
		soonest = min(soonest, s.start)
	}
	if soonest == meter.Never {
		return told, 0
	}
	return told, max(store.Time(soonest), now+1)
}

// until returns the latest time at which a request may still be granted.
func (s *Share) until(op *store.Op) int64 {
	at := s.end - 1
	for i := range s.parts {
		if n, _ := store.AmountOf(op.Amounts, &s.pool.spec.Limits[i]); n > 0 && s.parts[i].bounded {
			at = min(at, s.end-op.TTL.Microseconds())
		}
	}
	return at
}

// advance lets happen what time brings.
func (s *Share) advance(now int64) {
	if !s.begun && now >= s.start {
		s.begun = true
		s.both(s.start, s.theirs)
	}
	for len(s.arrivals) > 0 && s.arrivals[0].at <= now && (s.begun || s.arrivals[0].at < s.start) {
		s.both(s.arrivals[0].at, arrives(s.arrivals[0].id))
		s.arrivals = s.arrivals[1:]
	}
	if now >= s.due {
		s.sort(now)
	}
	if wake := int64(s.pool.Wake()); wake != 0 && wake <= now {
		s.pool.Serve(store.Time(now))
		s.note()
	}
}

// sort has the pool decide requests whose time has come, and takes out those that it must not grant any more.
func (s *Share) sort(now int64) {
	waits := s.early
	s.early, s.due = nil, meter.Never
	for id, e := range s.queued {
		if now > s.until(&e) { // it waits for the log
			s.pool.Apply(store.Time(now), []store.Op{{Kind: store.OpCancel, ID: id}})
			delete(s.queued, id)
			s.note()
			waits = append(waits, e)
		} else {
			s.due = min(s.due, s.until(&e)+1)
		}
	}
	for _, e := range waits {
		switch at := s.from(now, &e); {
		case e.Until != 0 && int64(e.Until) <= now:
		case at == 0 || at > now:
			s.postpone(now, e)
			continue
		default:
			op := undated(now, &e)
			if s.step(now, &op); op.Result.State == store.Waiting {
				continue
			}
		}
		s.told = append(s.told, e.ID)
	}
}

// Missing returns operations that tell the log what was granted here, and what waits, in the name of the session by.
func (s *Share) Missing(now store.Time, by uint64) []store.Op {
	ops := s.known.Fork().Missing(s.pool.Fork(), now, by, s.mine)
	for i := range s.early {
		ops = append(ops, undated(int64(now), &s.early[i]))
	}
	return ops
}

// Pending returns the requests that wait here.
func (s *Share) Pending() []store.ID {
	ids := s.pool.Pending(s.mine)
	for i := range s.early {
		ids = append(ids, s.early[i].ID)
	}
	return ids
}

// Begins returns when the first part of a limit can be used, the end if none can, and the limits of which there is none.
func (s *Share) Begins() (at store.Time, without []string) {
	begins := s.end
	for i := range s.parts {
		if s.parts[i].of == 0 {
			without = append(without, s.pool.spec.Limits[i].Name)
		} else {
			begins = min(begins, s.parts[i].from)
		}
	}
	return store.Time(begins), without
}
