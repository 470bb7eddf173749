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

const (
	// postWait is how long survivors wait for each other.
	postWait = 200 * time.Millisecond
	// reviveWait is how long they leave it to the first of them.
	reviveWait = 50 * time.Millisecond
	// maxRevives bounds the attempts of one call.
	maxRevives = 40
	// maxOwed is how many operations an entry has that states what the log lacks.
	maxOwed = 1000
)

// heal gets a lost log back. Then the replica is that of the new log.
func (st *state) heal() error {
	known, at := st.known()
	if at.Incarnation == 0 { // this process knows nothing: the survivors are about to do it
		if !sleep.For(st.life, reviveWait) {
			return store.ErrClosed
		}
		return nil
	}
	st.store.counts.losses.Add(1)
	st.alert(known)
	for range maxRevives {
		first, err := st.announce(at)
		if err != nil {
			return err
		}
		if first {
			_, err = call(st, func(ctx context.Context) (sharedlog.Position, error) {
				return st.log.Revive(ctx, at, known.AppendSnapshot(nil))
			})
			if err != nil && !errors.Is(err, sharedlog.ErrIncarnationOver) {
				return err
			}
		} else if !sleep.For(st.life, reviveWait) {
			return store.ErrClosed
		}
		_, err = call(st, func(ctx context.Context) (sharedlog.Entries, error) { return st.log.Read(ctx, at) })
		if errors.Is(err, sharedlog.ErrLost) {
			continue // a log that has lost only its end can be loaded, but that would forget what this process knows
		}
		if err := st.load(st.life); !errors.Is(err, sharedlog.ErrLost) {
			if first && err == nil && st.store.touch > 0 {
				st.keep() // the new keys have no end yet
			}
			return err
		}
	}
	return errRestless
}

// alert wakes the other processes, so that idle ones notice the loss too: one of them may know more than this one.
func (st *state) alert(known *replica.Replica) {
	var others []uint64
	known.EachMember(func(process uint64) bool {
		if process != st.process {
			others = append(others, process)
		}
		return true
	})
	st.ring(others)
}

// known returns what this process knows of the log, and where that ends.
func (st *state) known() (*replica.Replica, sharedlog.Position) {
	if st.before != nil { // the latest attempt to load it failed
		return st.before, st.was
	}
	return st.rep, st.at
}

// announce tells the other survivors how much this process knows, and reports whether it is the one that goes first. If the
// engine loses the posts meanwhile, all have to be told again.
func (st *state) announce(at sharedlog.Position) (first bool, err error) {
	for i := range maxRevives {
		all, err := call(st, func(ctx context.Context) ([]sharedlog.Survivor, error) { return st.log.Post(ctx, st.process, at) })
		if err != nil {
			return false, err
		}
		own := slices.IndexFunc(all, func(s sharedlog.Survivor) bool { return s.Process == st.process })
		if i > 0 && own >= 0 && !all[own].New {
			return own == 0, nil
		}
		if !sleep.For(st.life, postWait) {
			return false, store.ErrClosed
		}
	}
	return false, nil
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
	if was.Incarnation != st.at.Incarnation && st.more == nil {
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
	for st.more != nil || len(st.owed) > 0 {
		var ops []store.Op
		if _, ok := st.rep.Member(st.process); ok {
			st.owe()
			ops = st.owed[:min(len(st.owed), maxOwed)]
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
