package logstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/sleep"
)

// loadWithin bounds loading the log in a multiple of the patience, because snapshots can be large.
const loadWithin = 10

// isUsable reports whether there is a replica that can go on. One that failed cannot, until it was loaded anew.
func (st *state) isUsable() bool { return st.loaded && st.rep.Broken() == nil }

// load makes a replica from the latest snapshot and the entries after it.
func (st *state) load(context.Context) error {
	ctx, cancel := context.WithTimeout(st.life, loadWithin*st.patience())
	defer cancel()
	known := st.at
	if st.before != nil { // the latest attempt failed
		known = st.was
	}
	got, err := st.log.Load(ctx, known)
	if err != nil {
		return err
	}
	rep := replica.New()
	if len(got.Snapshot) > 0 {
		rep, err = replica.Restore(got.Snapshot)
		switch {
		case errors.Is(err, replica.ErrRules):
			return err
		case err != nil:
			return fmt.Errorf("%w: its snapshot: %w", sharedlog.ErrDamaged, err)
		}
	}
	st.mu.Lock()
	if st.loaded {
		st.before, st.was, st.loaded = st.rep, st.at, false
	}
	st.rep, st.at, st.shot = rep, got.From, int64(len(got.Snapshot))
	st.newCalm()
	maps.DeleteFunc(st.poison, func(p place, _ bool) bool { return p.incarnation != st.at.Incarnation || p.offset <= st.at.Offset })
	st.mu.Unlock()
	if err := st.take(got.Entries); err != nil {
		return err
	}
	if got.More {
		if err := st.readOn(ctx, got.Moved); err != nil {
			return err
		}
	}
	if st.before != nil && st.before.Broken() == nil && st.at.Compare(st.was) < 0 {
		st.rewind()
		return errMoved
	}
	if got.Moved {
		return st.stand()
	}
	st.loaded, st.stood = true, sharedlog.Position{}
	st.compare()
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.found.Now == 0 {
		st.found = sharedlog.Loaded{Origin: got.Origin, Created: got.Created, Now: got.Now}
		st.found.At = st.at
	}
	if st.loadedAt == 0 {
		st.loadedAt, st.loadedUp = st.rep.Now()+max(got.Now-st.at.Stamp, 0), st.store.clock.Uptime()
	}
	core := st.rep.Pool()
	for id := range st.waiting {
		if core == nil || !core.Waits(id) { // it was decided meanwhile
			st.told = append(st.told, id)
		}
	}
	return nil
}

// stand makes a log that may lack its end what this process knows, until it is healed.
func (st *state) stand() error {
	st.stood = sharedlog.Position{Incarnation: st.at.Incarnation} // a newcomer has acted on nothing
	if st.before != nil && st.was.Incarnation == st.at.Incarnation {
		st.stood = st.was
	}
	st.loaded = true
	st.compare()
	return errMoved
}

const (
	// leastLog is how long the log after a snapshot becomes at least before another one is written.
	leastLog = 256 << 10
	// claimWithin is how long other processes leave a snapshot to the one that has claimed it.
	claimWithin = 5 * time.Second
	// maxPoisoned is how many entries at which replicas fail are left in the log: whoever loads it begins anew at each.
	maxPoisoned = 8
)

// snapIfDue has a snapshot written if the log since the latest one is longer than that. Only the leader calls it.
func (st *state) snapIfDue() {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.loaded || st.shooting || st.closed || st.store.clock.Uptime() < st.rests || st.at.Offset-st.at.Segment < max(st.store.leastLog, st.shot) && st.poisoned() < maxPoisoned {
		return
	}
	st.shooting = true
	at := st.at
	st.running.Go(func() { st.shoot(at) })
}

// poisoned counts the entries after the latest snapshot at which replicas fail. The caller holds st.mu.
func (st *state) poisoned() (n int) {
	for p := range st.poison {
		if p.incarnation == st.at.Incarnation && p.offset > st.at.Segment {
			n++
		}
	}
	return n
}

// shoot writes a snapshot, unless another process does. It keeps others from it if it fails: then one of them tries again
// after a while.
func (st *state) shoot(at sharedlog.Position) {
	began := st.store.clock.Uptime()
	err := st.compact(at)
	up := st.store.clock.Uptime()
	st.mu.Lock()
	defer st.mu.Unlock()
	switch st.shooting = false; {
	case err == nil:
		st.counts.snapshots++
	case up-began >= claimWithin: // the connection is too slow for it
		st.rests = up + restFor
	}
}

var errClaimed = errors.New("another process writes the snapshot")

func (st *state) compact(at sharedlog.Position) error {
	ctx, cancel := context.WithTimeout(st.life, claimWithin)
	defer cancel()
	mine, err := st.log.Claim(ctx, at, claimWithin)
	switch {
	case err != nil:
		return err
	case !mine:
		sleep.For(st.life, claimWithin/5) // so that this process does not ask again at each entry
		return errClaimed
	}
	snapshot, at := st.snapshot()
	return st.log.Compact(ctx, at, snapshot)
}

// compactNow makes room in a log that is full. Only the leader calls it.
func (st *state) compactNow() error {
	ctx, cancel := context.WithTimeout(st.life, loadWithin*st.patience())
	defer cancel()
	snapshot, at := st.snapshot()
	return st.log.Compact(ctx, at, snapshot)
}

// snapshot returns the replica as bytes, and its place in the log. Calls go on meanwhile: they stand still only until the
// replica is copied, which takes a fraction of the time.
func (st *state) snapshot() ([]byte, sharedlog.Position) {
	st.mu.Lock()
	copied, at := st.rep.Fork(), st.at
	st.mu.Unlock()
	return copied.AppendSnapshot(nil), at
}
