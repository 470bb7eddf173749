package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

// The size of a limit is the smallest that a living process states. Each process that stays writes down what it states in a
// second key beside the pool, and renews that. The pool itself has only the smallest size, in the same form as ever. So versions
// that do not write down what they state can share it; while one is in touch, limits do not grow. A one-shot command counts
// as one of these, as long as it waits or has a ticket.

const (
	// statedEvery is how often a process renews what it states, in touches.
	statedEvery = 5
	// statedLife is how long that counts: as long as it takes to miss two renewals.
	statedLife = 15 * time.Second
	// statedKept is how long the key outlives its last use.
	statedKept = 10 * time.Minute
	// strangeAgain is how long a process waits that finds another one of which nothing is known.
	strangeAgain = 10 * time.Second
	// statedForm begins what a process states. Another one is another form.
	statedForm = "1"
	// settleTries bounds how often limits are settled that others get in the way of.
	settleTries = 5
)

// statedKeys are the pool's key and the one with what processes state.
func (st *state) statedKeys() []string { return []string{st.key, st.key + ":stated"} }

// stating returns what this process states: open has something to add that may be refused yet. The state is locked.
func (st *state) stating() []store.Spec {
	if st.opening != nil {
		return st.said.With(st.opening)
	}
	return st.said.Specs()
}

// publish lets others know what this process states.
func (st *state) publish(ctx context.Context) error {
	if err := st.card.LockContext(ctx); err != nil {
		return unavailable(err)
	}
	defer st.card.Unlock()
	st.mu.Lock()
	specs := st.stating()
	st.mu.Unlock()
	text := ""
	if len(specs) > 0 {
		all := pool.Merged(specs)
		text = statedForm + string(oplog.AppendSpec(nil, &all))
	}
	_, err := st.runWith(ctx, st.statedKeys(), "state", fmt.Sprint(st.store.process), text, fmt.Sprint(statedKept.Milliseconds()))
	return err
}

// stated is what a process states.
type stated struct {
	process uint64
	at      store.Time // when it last said so
	text    string
}

// spec reads what the process states.
func (s *stated) spec() (store.Spec, error) {
	if len(s.text) == 0 || s.text[:1] != statedForm {
		return store.Spec{}, errFormat
	}
	return oplog.DecodeSpec([]byte(s.text[1:]))
}

// statements reads what processes state, or one of them. The revision changes with each of them.
func (st *state) statements(ctx context.Context, of string) (now store.Time, revision string, list []stated, err error) {
	reply, err := st.runWith(ctx, st.statedKeys(), "stated", of)
	if err != nil {
		return 0, "", nil, err
	}
	in := reader{b: []byte(reply)}
	n := in.array()
	now, revision = store.Time(in.int()), in.text()
	for range (n - 2) / 2 {
		process, err := strconv.ParseUint(in.text(), 10, 64)
		value := in.text()
		if err != nil || len(value) < 8 { // the revision
			continue
		}
		at := math.Float64frombits(binary.LittleEndian.Uint64([]byte(value)))
		list = append(list, stated{process, store.Time(at), value[8:]})
	}
	if in.bad {
		return 0, "", nil, unavailable(errGarbled)
	}
	return now, revision, list, nil
}

// runWith runs the script for what is done to the pool as a whole, on some keys.
func (st *state) runWith(ctx context.Context, keys []string, what string, args ...string) (string, error) {
	s := st.store
	return s.again(ctx, func(ctx context.Context) (string, error) {
		reply, err := s.redis.RunKeys(ctx, s.manage, keys, s.withClock(append([]string{what}, args...))...)
		return reply, st.trouble(err)
	})
}

// living returns what the processes state that share the pool now, this one among them, and the revision that this is. The pool
// was read before. If a process may be there of which nothing is known, limits may not become larger than they are.
func (st *state) living(ctx context.Context, core *pool.Pool, mine []store.Spec) (all []store.Spec, revision string, sure bool, err error) {
	now, revision, list, err := st.statements(ctx, "")
	if err != nil {
		return nil, "", false, err
	}
	all, sure = slices.Clone(mine), true
	known := map[uint64]bool{st.store.process: true}
	for i := range list {
		s := &list[i]
		if known[s.process] {
			continue
		}
		known[s.process] = true
		if now >= max(s.at, core.Awake()).Add(statedLife) && !core.Lives(now, func(session uint64) bool { return outage.Of(session) == s.process }) {
			continue
		}
		spec, err := s.spec()
		if err != nil {
			sure = false
		}
		all = append(all, spec)
	}
	if !sure || core.Lives(now, func(session uint64) bool { return !known[outage.Of(session)] }) {
		all, sure = append(all, core.Stated()), false
	}
	return all, revision, sure, nil
}

// settleOn gives limits of a pool the smallest size that a living process states. It relies on a revision of what they state; empty:
// on nothing, because it has changed nothing.
func (st *state) settleOn(ctx context.Context, core *pool.Pool, mine []store.Spec) (revision string, changed bool, err error) {
	living, revision, sure, err := st.living(ctx, core, mine)
	if err != nil {
		return "", false, nil //nolint:nilerr // limits stay as they are until the next attempt
	}
	if _, changed = core.Due(living); changed {
		return revision, true, core.Settle(living)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.strange = 0
	if !sure {
		st.strange = st.nowLocked().Add(strangeAgain)
	}
	return revision, false, nil
}

// unsettled reports that a limit does not have the size that this process states.
func (st *state) unsettled() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.known == nil || st.lost != nil || st.nowLocked() < st.strange {
		return false
	}
	_, due := st.known.Due(st.said.Specs())
	return due
}

// uphold renews what this process states, and looks whether limits have the size that they should: those who made one smaller may be
// gone, or state more.
func (st *state) uphold(renew bool) {
	if !st.resident.Load() || st.isLost.Load() || !renew && !st.unsettled() || !st.upholding.CompareAndSwap(false, true) {
		return
	}
	st.running.Go(func() { // touches must not wait for it
		defer st.upholding.Store(false)
		ctx, cancel := context.WithTimeout(st.life, 2*st.store.whole)
		defer cancel()
		if st.publish(ctx) == nil && st.unsettled() {
			st.settle(ctx)
		}
	})
}

// settle gives limits the size that they should have. What cannot be done is tried again later.
func (st *state) settle(ctx context.Context) {
	if !st.whole.TryLock() { // somebody opens the pool or heals it
		return
	}
	defer st.whole.Unlock()
	for range settleTries {
		if !st.mayChange(ctx) || ctx.Err() != nil {
			return
		}
		if done, err := st.trySettle(ctx); done || err != nil {
			return
		}
	}
}

// mayChange looks at what processes state alone, which is cheap: it reports whether limits would change if those who were not heard of are gone.
func (st *state) mayChange(ctx context.Context) bool {
	st.mu.Lock()
	known, living, held := st.known, st.said.Specs(), st.heldBy
	st.mu.Unlock()
	now, _, list, err := st.statements(ctx, held)
	if err != nil {
		return false
	}
	holds := ""
	for i := range list {
		s := &list[i]
		spec, err := s.spec()
		if err != nil || s.process == st.store.process || now >= s.at.Add(statedLife) {
			continue
		}
		living = append(living, spec)
		if _, due := known.Due(living); !due && holds == "" {
			holds = fmt.Sprint(s.process)
		}
	}
	st.mu.Lock()
	st.heldBy = holds
	st.mu.Unlock()
	if _, due := known.Due(living); !due {
		return false
	}
	return held == "" || st.mayChange(ctx) // the one that held it does so no more: who else does?
}

// trySettle is one attempt. It reports false if somebody got in the way.
func (st *state) trySettle(ctx context.Context) (done bool, err error) {
	m, now, fields, err := st.fields(ctx)
	if err != nil || fields == nil {
		return false, err
	}
	core, err := pool.FromFields(&layout, fields)
	if err != nil {
		return false, err
	}
	core.Serve(now)
	decided := slices.Clone(core.Decided())
	st.mu.Lock()
	mine := st.said.Specs()
	st.mu.Unlock()
	revision, changed, err := st.settleOn(ctx, core, mine)
	if err != nil {
		return false, err
	}
	st.mu.Lock()
	same := m.epoch == st.epoch
	st.mu.Unlock()
	if !changed && same { // somebody else may have done it
		_, err = st.learn(view{meta: m, text: fields["s"], once: fields["once"]})
	}
	if !changed {
		return true, err
	}
	core.Serve(now)
	decided = append(decided, core.Decided()...)
	next := m
	next.sequence++
	done, err = st.write(ctx, m, next, fields, core, decided, revision)
	if done {
		st.arm(now, core.Wake())
	}
	return done, err
}

// takeBack lets others know that a session states nothing any more. If they do not hear of it, it is over by itself before long.
func (st *state) takeBack(ctx context.Context) {
	if !st.isLost.Load() && st.publish(ctx) == nil && st.unsettled() {
		st.settle(ctx)
	}
}
