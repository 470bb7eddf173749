package logstore

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
)

// flight is the own entry that is under way.
type flight struct {
	batch    []*request
	entry    []byte
	sequence uint16
	again    int           // sessions that are opened again in front of the requests, see rejoin
	under    bool          // it is under way
	done     bool          // it was applied, and the requests are answered; or they were answered without it
	owes     bool          // it states what the log lacks, see repay
	void     bool          // they were answered without it, and its fate is unknown
	made     time.Duration // the uptime at which it was made
	err      error         // nobody carries it out
}

// exchange has requests carried out: it appends an entry with them, applies it together with what others have appended,
// and answers the requests. Without requests, or if nothing has to be appended, it only reads.
func (st *state) exchange(batch []*request) {
	unanswered, err := st.tryExchange(batch)
	if isLoss(err) {
		st.lose(err)
		err = errLost
	}
	for _, r := range unanswered {
		r.answer(err)
	}
	st.settle()
}

func (st *state) tryExchange(batch []*request) (unanswered []*request, err error) {
	if st.life.Err() != nil {
		return batch, store.ErrClosed
	}
	if !st.isUsable() {
		if err := st.persist(st.load); err != nil {
			return batch, err
		}
	}
	if slices.ContainsFunc(batch, func(r *request) bool { return !r.look }) {
		return st.append(batch)
	}
	return batch, st.persist(st.read)
}

// settle ends an exchange: it sets the timer, and tells whoever was decided.
func (st *state) settle() {
	st.mu.Lock()
	st.looked = st.store.clock.Uptime()
	st.arm()
	told := st.told
	st.told = nil
	notify := st.notified()
	hurry := st.hurried()
	var rung []uint64
	for process := range st.rung {
		rung = append(rung, process)
	}
	clear(st.rung)
	st.mu.Unlock()
	st.ring(rung)
	st.tell(told)
	hurry()
	notify()
	st.snapIfDue()
}

// ring wakes other processes, in the background.
func (st *state) ring(processes []uint64) {
	if len(processes) == 0 {
		return
	}
	st.running.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), st.patience()) // also if this process is leaving
		defer cancel()
		_ = st.log.Publish(ctx, processes...) // they look by themselves before long
	})
}

// persist makes a call to the log until it succeeds, or the log counts as out of reach. It does what the errors of the log
// ask for.
func (st *state) persist(call func(ctx context.Context) error) error {
	progress := st.follow()
	for mended := 0; ; {
		ctx, cancel := context.WithTimeout(st.life, st.patience()/2)
		err := call(ctx)
		cancel()
		if err == nil {
			return nil
		}
		if err = st.mend(err); err == nil {
			if mended++; mended == maxMended {
				return Unavailable(errRestless)
			}
			if err = progress.goesOn(st, nil); err != nil {
				return Unavailable(err)
			}
			continue
		}
		if errors.Is(err, sharedlog.ErrUnavailable) {
			late := err
			if err = progress.goesOn(st, late); err == nil && !sleep.For(st.life, again) {
				err = late
			}
		}
		if err != nil {
			return Unavailable(st.judged(err))
		}
	}
}

const (
	again     = 20 * time.Millisecond // before another attempt
	maxMended = 100                   // attempts that found the log changed
)

// errRestless is the error of an exchange that always found the log changed.
var errRestless = errors.New("the log changes faster than this process can follow it")

// mend does what an error of the log asks for. It returns nil if the call is worth another attempt at once.
func (st *state) mend(err error) error {
	switch {
	case errors.Is(err, sharedlog.ErrClosed), st.life.Err() != nil:
		return store.ErrClosed
	case errors.Is(err, sharedlog.ErrSegmentEnded):
		return st.persist(st.read)
	case errors.Is(err, sharedlog.ErrBehind), errors.Is(err, sharedlog.ErrIncarnationOver), errors.Is(err, errReload):
		return st.persist(st.load)
	case errors.Is(err, sharedlog.ErrLost), errors.Is(err, errMoved):
		return st.heal(err)
	case errors.Is(err, sharedlog.ErrFull) && st.at.Offset-st.at.Segment >= st.store.leastLog:
		if st.compactNow() == nil {
			return nil
		}
	}
	return err
}

// append has requests carried out by the next entry, or by several if they do not fit into one.
func (st *state) append(batch []*request) (unanswered []*request, err error) {
	f := &st.flight
	for {
		if err := st.repay(); err != nil {
			return batch, err
		}
		rest, err := st.encode(batch)
		if err == nil {
			err = st.fly()
		}
		switch {
		case err != nil:
			return batch, err
		case f.err == nil && rest == nil:
			return nil, nil
		case f.err == nil:
			batch = rest
		case errors.Is(f.err, replica.ErrPoisoned) && len(batch) > 1:
			return st.appendEach(batch)
		case !anew(f.err):
			return batch, Unavailable(f.err)
		}
	}
}

// appendEach has requests carried out by an entry each, since one of them makes replicas fail, and the others must not fail with
// it.
func (st *state) appendEach(batch []*request) (unanswered []*request, err error) {
	batch = slices.Clone(batch)
	for i := range batch {
		failed, err := st.append(batch[i : i+1])
		if !errors.Is(err, replica.ErrPoisoned) && err != nil {
			return append(failed, batch[i+1:]...), err
		}
		for _, r := range failed {
			r.answer(err)
		}
	}
	return nil, nil
}

// fly appends the entry of the flight and applies it. Without an error it was carried out, or f.err says why nobody carries
// it out. With one its fate is unknown.
func (st *state) fly() error {
	f := &st.flight
	f.under = true
	err := st.persist(st.send)
	f.under = false
	if f.done || err == nil {
		return nil // what failed after it was applied fails again in the next exchange
	}
	f.done, f.void = true, true // should the entry be in the log after all, nobody waits for it any more
	return err
}

// anew reports whether an entry that was not carried out can be made anew.
func anew(err error) bool {
	return errors.Is(err, replica.ErrNotMember) || // it was declared gone meanwhile
		errors.Is(err, replica.ErrDuplicate) || // an entry came first that seemed to be lost
		errors.Is(err, errAnew)
}

// encode makes an entry of requests whose callers are still there. It returns those for which the entry has no room.
func (st *state) encode(batch []*request) (rest []*request, err error) {
	f := &st.flight
	f.batch, f.owes = f.batch[:0], false
	for _, r := range batch {
		if r.move(encoding, waiting, leads, sent) {
			f.batch = append(f.batch, r)
		}
	}
	for {
		err = st.write(func(parts []replica.Request) []replica.Request {
			for _, r := range f.batch {
				if !r.look && !r.tick {
					parts = append(parts, r.Request)
				}
			}
			return parts
		})
		if !errors.Is(err, sharedlog.ErrTooBig) || len(f.batch) == 1 {
			break
		}
		half := len(f.batch) / 2
		rest = append(slices.Clone(f.batch[half:]), rest...)
		f.batch = f.batch[:half]
	}
	for _, r := range f.batch {
		r.stage.Store(sent)
	}
	for _, r := range rest {
		r.stage.Store(sent)
	}
	return rest, err
}

// write makes the entry of the flight.
func (st *state) write(add func([]replica.Request) []replica.Request) (err error) {
	f := &st.flight
	f.done, f.err = false, nil
	st.parts = st.rejoin(st.parts[:0])
	f.again = len(st.parts)
	st.parts = add(st.parts)
	st.mu.Lock()
	st.writer.Alive = st.out == nil && !st.store.passive // what happened in an outage is stated first
	st.mu.Unlock()
	f.made = st.store.clock.Uptime()
	f.entry, err = st.writer.Append(f.entry[:0], st.rep, f.made, st.parts)
	f.sequence = st.writer.Sequence()
	return err
}

// rejoin returns requests that open this process's sessions again, if the log does not know the process any more: it was
// silent for so long that the others took it for dead.
func (st *state) rejoin(parts []replica.Request) []replica.Request {
	if _, ok := st.rep.Member(st.process); ok {
		return parts
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for session, h := range st.sessions {
		parts = append(parts, replica.Request{Kind: replica.Open, Session: session, Spec: &h.spec})
	}
	slices.SortFunc(parts, func(a, b replica.Request) int { return int(int64(a.Session) - int64(b.Session)) })
	return parts
}

// send appends the entry, unless an earlier attempt has done so, and applies what the log has up to it.
func (st *state) send(ctx context.Context) error {
	f := &st.flight
	if f.done || f.err != nil {
		return nil
	}
	got, err := st.log.Append(ctx, st.at, f.entry)
	if err != nil {
		return err
	}
	if got.Moved {
		return errMoved
	}
	if err := st.take(got); err != nil {
		return err
	}
	if !got.Own {
		return st.read(ctx)
	}
	return st.apply(sharedlog.Entry{Body: f.entry, Stamp: got.Stamp, At: got.At})
}

// read reads to the end of the log.
func (st *state) read(ctx context.Context) error { return st.readOn(ctx, false) }

// readOn is read. moved says that the end may be missing, and that this process knows.
func (st *state) readOn(ctx context.Context, moved bool) error {
	for {
		got, err := st.log.Read(ctx, st.at)
		if err != nil {
			return err
		}
		if got.Moved && !moved {
			return errMoved
		}
		if err := st.take(got); err != nil {
			return err
		}
		if !got.More {
			return nil
		}
	}
}

// take applies the entries that the log returned, without an own one at their end.
func (st *state) take(got sharedlog.Entries) error {
	for e, err := range got.All() {
		if err != nil {
			return err
		}
		if err := st.apply(e); err != nil {
			return err
		}
	}
	if !got.Own {
		st.mu.Lock()
		st.at = got.At
		st.mu.Unlock()
	}
	return nil
}

// errReload means that the replica has to be loaded anew.
var errReload = errors.New("the replica was dropped")

// apply carries out one entry.
func (st *state) apply(e sharedlog.Entry) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.poison[placeOf(e.At)] {
		st.rep.Skip(e)
		st.at = e.At
		return nil
	}
	due, keeper := st.wakeAt, st.keeper
	did := st.rep.Apply(e)
	st.at = e.At
	st.noteLate(due, keeper)
	f := &st.flight
	mine := did.Process == st.process
	flies := !f.done && (mine || did.Process == 0) && bytes.Equal(e.Body, f.entry)
	switch {
	case flies && did.Err == nil:
		st.answer(&did)
	case flies:
		f.err = did.Err
	case mine && did.Err == nil && f.void && did.Sequence == f.sequence: // it seemed to be lost, and its callers have gone on without it
		f.void = false
		if !f.owes {
			st.abandon(did.Ops)
		}
	}
	if core := st.rep.Pool(); core != nil && !st.store.passive {
		core.Remember(st.mine)
	}
	st.noteCalm(&did, mine)
	if st.loaded { // otherwise old entries are read again, and load compares what waits
		st.noteDecided(did.Decided, mine)
		st.noteWake(mine)
	}
	switch broken := st.rep.Broken(); {
	case errors.Is(broken, replica.ErrPoisoned):
		if _, known := st.poison[placeOf(e.At)]; !known {
			st.note(store.Notice{Kind: store.NoticePoisoned, Process: did.Process, Why: broken.Error()})
		}
		st.poison[placeOf(e.At)] = true
		return errReload
	case broken != nil:
		return broken
	case did.Diverged:
		return st.diverged(did.Process)
	}
	return nil
}

// place names an entry, whatever segment it is in.
type place struct {
	incarnation uint64
	offset      int64
}

func placeOf(at sharedlog.Position) place { return place{at.Incarnation, at.Offset} }

// divergedAgain is how long a replica is used after it was loaded because another process had decided otherwise. If the two
// still differ, this is not the one that is wrong.
const divergedAgain = time.Minute

// diverged has the replica loaded anew: another process has decided otherwise.
func (st *state) diverged(process uint64) error {
	up := st.store.clock.Uptime()
	if st.reloaded != 0 && up-st.reloaded < divergedAgain {
		st.note(store.Notice{Kind: store.NoticeDiverged, Process: process, Why: "it was loaded less than a minute ago, and is kept"})
		return nil
	}
	st.note(store.Notice{Kind: store.NoticeDiverged, Process: process})
	st.reloaded = up
	for at := range st.poison { // perhaps these fail here alone
		st.poison[at] = false
	}
	return errReload
}

// answer gives the requests of the own entry their results.
func (st *state) answer(did *replica.Applied) {
	f := &st.flight
	f.done, f.void = true, false
	st.heard = st.out == nil
	st.ahead.took(st.rep.Now())
	ops, errs := did.Ops, did.Errs[f.again:]
	if len(f.batch) == 0 {
		st.noteWaiting(ops)
	}
	for _, r := range f.batch {
		if r.look || r.tick {
			r.answer(nil)
			continue
		}
		if r.Kind != replica.Ops {
			r.answer(errs[0])
			errs = errs[1:]
			continue
		}
		n := len(r.Ops)
		st.noteWaiting(ops[:n])
		if !r.own {
			st.asked(ops[:n])
		}
		if r.move(answering, sent) {
			for i := range r.Ops {
				op := &r.Ops[i]
				op.Result = ops[i].Result
				if op.Kind == store.OpAcquire {
					op.ID = op.Result.ID
				}
			}
			r.turn <- false
		} else {
			st.abandon(ops[:n])
		}
		ops = ops[n:]
	}
}

// abandon has given back what a caller got that has left. Only the leader calls it.
func (st *state) abandon(ops []store.Op) {
	for i := range ops {
		op := &ops[i]
		if op.Kind == store.OpAcquire && (op.Result.State == store.Granted || op.Result.State == store.Waiting) {
			st.owed = append(st.owed, store.Op{Kind: store.OpCancel, ID: op.Result.ID})
		}
	}
}

// doOps applies operations for a session. It returns errLost if the log is out of reach.
func (st *state) doOps(ctx context.Context, session uint64, ops []store.Op) error {
	r := st.newRequest()
	r.Request = replica.Request{Kind: replica.Ops, Session: session, Ops: ops}
	err := st.do(ctx, r)
	if err == nil {
		st.free(r)
	}
	return err
}

// lossError returns the error for callers that cannot go on without the log.
func (st *state) lossError(err error) error {
	if !errors.Is(err, errLost) {
		return err
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.out != nil {
		return Unavailable(st.out.why)
	}
	return Unavailable(err)
}

// noteWaiting keeps the set of requests that wait up to date, by the results of operations.
func (st *state) noteWaiting(ops []store.Op) {
	for i := range ops {
		op := &ops[i]
		if op.Result.State == store.Waiting && replica.ProcessOf(op.Result.ID.Session) == st.process {
			st.waiting[op.Result.ID] = op.Spent || st.waiting[op.Result.ID]
		} else if len(st.waiting) > 0 {
			delete(st.waiting, op.ID)
		}
	}
}

// noteDecided notes who has to be told of decisions. Those of other processes are told by the process whose entry made
// them.
func (st *state) noteDecided(ids []store.ID, mine bool) {
	for _, id := range ids {
		switch process := replica.ProcessOf(id.Session); {
		case process == st.process:
			delete(st.waiting, id)
			if _, collects := st.collected[id]; !collects { // its caller is told when the grant is here
				st.told = append(st.told, id)
			}
		case mine:
			st.rung[process] = struct{}{}
		}
	}
}
