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

// The size of a limit is the smallest that a living process states. Each process that stays writes what it states to a
// second key beside the pool, and renews it. The pool itself holds only the smallest size, in the same form as ever. So
// versions that write no statements can share the pool; while one of them is in touch, limits do not grow. A one-shot
// command counts as such a process while it waits or has a ticket.

const (
	// statedEvery is how often a process renews its statement, in touches.
	statedEvery = 5
	// statedLife is how long a statement counts. A process may miss two renewals.
	statedLife = 15 * time.Second
	// statedKept is how long the second key outlives its last use.
	statedKept = 10 * time.Minute
	// strangeAgain is how long sizes stay as they are after finding a process whose statement is unknown.
	strangeAgain = 10 * time.Second
	// statedForm is the first byte of a statement and names its format.
	statedForm = "1"
	// settleTries bounds how often settle retries after another process changed the pool first.
	settleTries = 5
)

// statedKeys returns the pool's key and the key with the statements.
func (st *state) statedKeys() []string { return []string{st.key, st.key + ":stated"} }

// stating returns what this process states, including the spec that open is about to add. The caller holds st.mu.
func (st *state) stating() []store.Spec {
	if st.opening != nil {
		return st.said.With(st.opening)
	}
	return st.said.Specs()
}

// publish writes what this process states to the second key.
func (st *state) publish(ctx context.Context) error {
	if err := st.publishing.LockContext(ctx); err != nil {
		return unavailable(err)
	}
	defer st.publishing.Unlock()
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

// stated is the statement of a process.
type stated struct {
	process uint64
	at      store.Time // of the last renewal
	text    string
}

// spec decodes the statement.
func (s *stated) spec() (store.Spec, error) {
	if len(s.text) == 0 || s.text[:1] != statedForm {
		return store.Spec{}, errFormat
	}
	return oplog.DecodeSpec([]byte(s.text[1:]))
}

// statements reads the statements of all processes, or of one if of is not empty. The revision changes with every change
// of a statement.
func (st *state) statements(ctx context.Context, of string) (now store.Time, revision string, list []stated, err error) {
	reply, err := st.runWith(ctx, st.statedKeys(), "stated", of)
	if err != nil {
		return 0, "", nil, err
	}
	now, revision, list, ok := readStatements(reply)
	if !ok {
		return 0, "", nil, unavailable(errGarbled)
	}
	return now, revision, list, nil
}

// readStatements reads the answer with what processes state.
func readStatements(reply string) (now store.Time, revision string, list []stated, ok bool) {
	in := reader{b: []byte(reply)}
	n := in.array()
	now, revision = store.Time(in.int()), in.text()
	for range (n - 2) / 2 {
		process, err := strconv.ParseUint(in.text(), 10, 64)
		value := in.text()
		if err != nil || len(value) < 8 { // the field with the revision
			continue
		}
		at := math.Float64frombits(binary.LittleEndian.Uint64([]byte(value)))
		list = append(list, stated{process, store.Time(at), value[8:]})
	}
	return now, revision, list, !in.bad
}

// runWith calls lua/open.lua on keys. It may make the call twice; the script tolerates that.
func (st *state) runWith(ctx context.Context, keys []string, what string, args ...string) (string, error) {
	s := st.store
	return s.again(ctx, func(ctx context.Context) (string, error) {
		reply, err := s.redis.RunKeys(ctx, s.manage, keys, s.withClock(append([]string{what}, args...))...)
		return reply, st.trouble(err)
	})
}

// living returns the statements of all living processes, with mine for this one, and their revision. core was read before.
// sure is false if there may be a process whose statement is unknown. The list then includes the sizes in force, so that
// no limit grows.
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

// settleOn gives the limits of core the smallest size that a living process states. The result holds for the returned
// revision of the statements. An empty revision means that it could not read them and changed nothing.
func (st *state) settleOn(ctx context.Context, core *pool.Pool, mine []store.Spec) (revision string, changed bool, err error) {
	living, revision, sure, err := st.living(ctx, core, mine)
	if err != nil {
		return "", false, nil //nolint:nilerr // sizes stay as they are until the next attempt
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

// unsettled reports whether a limit has another size than this process states.
func (st *state) unsettled() bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.known == nil || st.lost != nil || st.nowLocked() < st.strange {
		return false
	}
	_, due := st.known.Due(st.said.Specs())
	return due
}

// uphold renews the statement of this process, and settles limits whose sizes differ from it: a process that stated a
// smaller size may be gone, or state a larger one now.
func (st *state) uphold(renew bool) {
	if !st.resident.Load() || st.isLost.Load() || !renew && !st.unsettled() || !st.upholding.CompareAndSwap(false, true) {
		return
	}
	st.running.Go(func() { // in the background: touches must not wait for it
		defer st.upholding.Store(false)
		ctx, cancel := context.WithTimeout(st.life, 2*st.store.whole)
		defer cancel()
		if st.publish(ctx) == nil && st.unsettled() {
			st.settle(ctx)
		}
	})
}

// settle gives limits the sizes that they should have. If it fails, a later uphold tries again.
func (st *state) settle(ctx context.Context) {
	if !st.whole.TryLock() { // another goroutine opens or heals the pool
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

// mayChange reports whether sizes would change if processes without a recent statement are gone. It reads only the
// statements, which is cheap.
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
	return held == "" || st.mayChange(ctx) // that process no longer holds the size down: look at all statements
}

// trySettle is one attempt of settle. It returns false if another process changed the pool first.
func (st *state) trySettle(ctx context.Context) (done bool, err error) {
	was, err := st.read(ctx)
	if err != nil || was == nil {
		return false, err
	}
	core, now := was.core, was.now
	core.Serve(now)
	decided := slices.Clone(core.Decided())
	st.mu.Lock()
	mine := st.said.Specs()
	st.mu.Unlock()
	revision, changed, err := st.settleOn(ctx, core, mine)
	if err != nil {
		return false, err
	}
	if !changed {
		st.mu.Lock()
		same := was.epoch == st.epoch
		st.mu.Unlock()
		if same { // another process may have changed the sizes
			err = st.learn(view{meta: was.meta, text: was.fields["s"], once: was.fields["once"]})
		}
		return true, err
	}
	core.Serve(now)
	decided = append(decided, core.Decided()...)
	next := was.meta
	next.sequence++
	done, err = st.write(ctx, was, next, decided, revision)
	if done {
		st.arm(now, core.Wake())
	}
	return done, err
}

// takeBack publishes that a session no longer states its limits. If that fails, the statement expires by itself.
func (st *state) takeBack(ctx context.Context) {
	if !st.isLost.Load() && st.publish(ctx) == nil && st.unsettled() {
		st.settle(ctx)
	}
}
