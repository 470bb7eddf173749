package logstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
)

// A log can be lost, or its end: by a FLUSHALL, a restart without persistence, a failover. Every process that was there has
// the state. They post how much they know, wait a moment for each other, and the one that knows most begins a new
// incarnation of the log with its snapshot. The others load it, and state what it lacks of what they knew: their requests, by
// force, and what was charged. Mostly that is nothing; one that was stopped meanwhile may know more.
//
// A process that had not read the end does not miss it. It learns of the loss by errMoved: a log loses its end only when
// its engine was restarted, or another one took over. Then nobody acts on what is left, and all that use the log heal
// it in the same way, whether it lacks something or not.

const (
	// postWait is how long survivors wait for each other at least, and rollCall how long for the members that they know. A
	// member that does not post until then was stopped, or is gone.
	postWait = 200 * time.Millisecond
	rollCall = time.Second
	// reviveWait is how long they leave it to the first of them.
	reviveWait = 50 * time.Millisecond
	// maxRevives bounds the attempts of one call.
	maxRevives = 40
	// maxOwed is how many operations an entry has that states what the log lacks.
	maxOwed = 1000
)

// errMoved means that the engine was restarted, or another one took over: the log may lack its end.
var errMoved = errors.New("the log may lack its end")

// heal gets a lost log back. Then the replica is that of the new log.
func (st *state) heal(why error) error {
	if st.before != nil { // the latest attempt to load the log failed
		st.rewind()
	}
	at := st.at
	if st.stood.Incarnation != 0 {
		at = st.stood
	}
	if at.Incarnation == 0 || st.rep.Broken() != nil { // this process knows nothing: the survivors are about to do it
		if !sleep.For(st.life, reviveWait) {
			return store.ErrClosed
		}
		return nil
	}
	st.noteLost(at, why)
	began := time.Duration(-1)
	for range maxRevives {
		first, err := st.announce(at, &began)
		if err != nil {
			return err
		}
		if first {
			if err := st.readRest(); err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(st.life, loadWithin*st.patience()) // meanwhile its post ends, and another one may go first
			_, err = st.log.Revive(ctx, st.at, st.rep.AppendSnapshot(nil))
			cancel()
			if err != nil && !errors.Is(err, sharedlog.ErrIncarnationOver) {
				return err
			}
		} else if !sleep.For(st.life, reviveWait) {
			return store.ErrClosed
		}
		got, err := call(st, func(ctx context.Context) (sharedlog.Entries, error) { return st.log.Read(ctx, st.at) })
		if errors.Is(err, sharedlog.ErrLost) || err == nil && got.Moved {
			continue // what is left can be loaded, but that would forget what this process knows
		}
		if err := st.load(st.life); !errors.Is(err, sharedlog.ErrLost) && !errors.Is(err, errMoved) {
			if first && err == nil && st.store.touch > 0 {
				st.keep() // the new keys have no end yet
			}
			return err
		}
	}
	return errRestless
}

// rewind goes back to what was known before an attempt to load the log.
func (st *state) rewind() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.before.Broken() == nil {
		st.rep, st.at = st.before, st.was
	}
	st.newCalm()
	st.before, st.loaded = nil, true
}

// readRest reads what is left after all that this process knows, of those who are gone. What it asked for itself there was
// decided without what is missing, so that does not count.
func (st *state) readRest() error {
	if f := &st.flight; f.under && !f.done {
		f.done, f.void, f.err = true, true, errAnew
	}
	_, err := call(st, func(ctx context.Context) (struct{}, error) { return struct{}{}, st.readOn(ctx, true) })
	if errors.Is(err, sharedlog.ErrUnavailable) || errors.Is(err, errReload) {
		return err
	}
	return nil // the log ends before what this process knows
}

// announce tells the other survivors how much this process knows, and reports whether it is the one that goes first. It waits
// for all members, and wakes them, because one that is idle may know more. If the posts are gone meanwhile, another process may have
// revived the log; if not, all have to be told again. began is when they were told, and negative before.
func (st *state) announce(at sharedlog.Position, began *time.Duration) (first bool, err error) {
	up := st.store.clock.Uptime
	for i := range maxRevives {
		all, err := call(st, func(ctx context.Context) ([]sharedlog.Survivor, error) { return st.log.Post(ctx, st.process, at) })
		if err != nil {
			return false, err
		}
		own := slices.IndexFunc(all, func(s sharedlog.Survivor) bool { return s.Process == st.process })
		missing := st.missing(all)
		if told := *began >= 0; !told || own < 0 || all[own].New {
			if *began = up(); told {
				return false, nil
			}
		} else if waited := up() - *began; waited >= rollCall || waited >= postWait && len(missing) == 0 {
			return own == 0, nil
		}
		if i%4 == 0 { // wake-ups can be lost
			st.ring(missing)
		}
		if !sleep.For(st.life, postWait/4) {
			return false, store.ErrClosed
		}
	}
	return false, nil
}

// missing returns the other members that are not among the survivors.
func (st *state) missing(survivors []sharedlog.Survivor) (all []uint64) {
	st.rep.EachMember(func(process uint64) bool {
		if process != st.process && !slices.ContainsFunc(survivors, func(s sharedlog.Survivor) bool { return s.Process == process }) {
			all = append(all, process)
		}
		return true
	})
	return all
}

// call makes a call to the log that may take as long as an exchange.
func call[T any](st *state, do func(ctx context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(st.life, st.patience())
	defer cancel()
	return do(ctx)
}

// compare notes what the replica that was loaded may lack of what this process knew before, and what has become of the entry
// under way.
func (st *state) compare() {
	before, was := st.before, st.was
	st.before = nil
	if before == nil {
		return
	}
	if was.Incarnation != st.at.Incarnation && st.more == nil && before.Broken() == nil {
		st.more = before // also if it seems to know less: after a lost end, others may have gone on where this process had not been
	}
	f := &st.flight
	if f.under && !f.done && f.err == nil {
		f.err = errAnew
	} else if !f.void {
		return
	}
	if m, ok := st.rep.Member(st.process); !ok || m.Sequence != f.sequence {
		return
	}
	f.void = false
	if f.owes {
		return // it is stated again
	}
	st.mu.Lock() // it was carried out, but its results are lost
	defer st.mu.Unlock()
	for session := range st.sessions {
		for n := before.Numbered(session) + 1; n <= st.rep.Numbered(session); n++ {
			st.owed = append(st.owed, store.Op{Kind: store.OpCancel, ID: store.ID{Session: session, N: n}})
		}
	}
}

// errAnew means that the entry under way has to be made anew, for another replica.
var errAnew = errors.New("the replica was loaded anew")

// repay states what the log lacks, before anything else goes into it.
func (st *state) repay() error {
	st.mu.Lock()
	st.owed = append(st.owed, st.posted...)
	st.posted = nil
	st.mu.Unlock()
	for most := maxOwed; st.more != nil || len(st.owed) > 0; {
		var ops []store.Op
		if _, ok := st.rep.Member(st.process); ok {
			st.owe()
			ops = st.owed[:min(len(st.owed), most)]
		} // otherwise the first entry only opens the sessions again
		err := st.write(func(parts []replica.Request) []replica.Request {
			if len(ops) == 0 {
				return parts
			}
			return append(parts, replica.Request{Kind: replica.Ops, Session: ops[0].ID.Session, Ops: ops})
		})
		st.flight.batch, st.flight.owes = st.flight.batch[:0], true
		if err == nil {
			err = st.fly()
		}
		switch {
		case err != nil:
			return err
		case st.flight.err == nil:
			st.owed = st.owed[len(ops):]
		case errors.Is(st.flight.err, replica.ErrPoisoned) && len(ops) > 0:
			if len(ops) == 1 {
				st.owed = st.owed[1:] // nobody can carry it out
			}
			most = 1
		case !anew(st.flight.err):
			return Unavailable(st.flight.err)
		}
	}
	return nil
}

// owe adds what the replica lacks of what this process knew.
func (st *state) owe() {
	more := st.more
	st.more = nil
	if more == nil || more.Pool() == nil || st.rep.Pool() == nil {
		return
	}
	st.mu.Lock()
	now, by := st.nowAt(st.store.clock.Uptime()), replica.SessionOf(st.process, max(st.lastSess, 1))
	st.mu.Unlock()
	st.owed = append(st.owed, st.rep.Pool().View().Missing(more.Pool().View(), now, by, st.mine)...)
}
