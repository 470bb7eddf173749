package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/redisstore/internal/outage"
)

// meta is the field v of a pool's hash.
type meta struct {
	version  int64 // counts changes of the limits
	sequence int64 // counts calls that changed the pool
	epoch    int64 // counts losses of data; the first epoch is 1
	expires  int64 // when the expiry of the key was last set
	ttl      int64 // how long the key outlives its last use, in microseconds
}

func (m meta) pack() string {
	return pool.Pack([]float64{float64(m.version), float64(m.sequence), float64(m.epoch), float64(m.expires), float64(m.ttl)})
}

func unpackMeta(s string) (m meta, ok bool) {
	if len(s) != 40 {
		return m, false
	}
	for i, p := range []*int64{&m.version, &m.sequence, &m.epoch, &m.expires, &m.ttl} {
		*p = int64(math.Float64frombits(binary.LittleEndian.Uint64([]byte(s[8*i:]))))
	}
	return m, true
}

// shortestTTL is how long a pool outlives its last use at least. Long windows extend it.
const shortestTTL = 24 * time.Hour

// ttlOf returns how long a pool is kept after its last use, in microseconds: twice its longest window or more, so that
// nothing still counts when it expires.
func ttlOf(spec *store.Spec) int64 {
	ttl := shortestTTL
	for _, l := range spec.Limits {
		ttl = max(ttl, 2*l.Window)
	}
	return ttl.Microseconds()
}

// maxTries bounds how often a step is retried after another process changed the pool first.
const maxTries = 50

// format names the layout of a pool's hash. Versions with another layout refuse the pool instead of corrupting it. Raise
// the number at the front for changes that the layout does not show.
var format = sync.OnceValue(func() string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%+v", layout)
	return fmt.Sprintf("11-%x", h.Sum64())
})

// errFormat reports a pool that another version of Sluice made in another layout.
var errFormat = errors.New("the pool was made by another version of Sluice, which keeps it in another way; " +
	"use the same version everywhere, or give this one a prefix of its own: ?prefix=NAME")

// errBusy reports that other processes changed the pool during each of maxTries attempts.
var errBusy = errors.New("the limits of the pool are being changed by others all the time")

// open opens a session with the limits of spec.
func (st *state) open(ctx context.Context, spec store.Spec) (*handle, error) {
	st.whole.Lock()
	defer st.whole.Unlock()
	if err := st.lossError(); err != nil {
		return nil, err
	}
	st.recall(&spec)
	if spec.ReadOnly || spec.OneShot {
		return st.opened(ctx, &spec)
	}
	// Publish first, then read the pool. A process that changes a limit's size at the same time then knows this statement,
	// or its change is visible here.
	st.setOpening(&spec)
	if err := st.publish(ctx); isLoss(faultOf(err)) {
		st.setOpening(nil)
		return nil, err
	}
	h, err := st.opened(ctx, &spec)
	st.setOpening(nil)
	if err != nil {
		_ = st.publish(ctx) // what this process stated before; the next renewal repeats it
		return nil, err
	}
	st.remember(false) // it may be killed before the first touches
	return h, nil
}

func (st *state) setOpening(spec *store.Spec) {
	st.mu.Lock()
	st.opening = spec
	st.mu.Unlock()
}

// opened is open after other processes can read what this one states. It retries tryOpen.
func (st *state) opened(ctx context.Context, spec *store.Spec) (*handle, error) {
	for range maxTries {
		done, err := st.tryOpen(ctx, spec)
		if err != nil {
			return nil, err
		}
		if done {
			return st.newHandle(*spec), nil
		}
		if !st.store.fixed {
			time.Sleep(rand.N(10 * time.Millisecond)) //nolint:gosec // it spreads, it guards nothing
		}
	}
	return nil, unavailable(errBusy)
}

// tryOpen reads the pool, creates it if it is missing, and changes its limits if they differ from spec. It returns false
// after any such change, or if another process changed the pool first: call it again.
func (st *state) tryOpen(ctx context.Context, spec *store.Spec) (bool, error) {
	v, err := st.look(ctx)
	if err != nil {
		return false, err
	}
	st.mu.Lock()
	first := st.known == nil
	st.outdated(v.now)
	st.mu.Unlock()
	if !v.exists && first {
		return false, st.make(ctx, spec, v)
	}
	if met, err := st.met(ctx, v, nil); !met || err != nil {
		return false, err
	}
	st.mu.Lock()
	known := st.known
	st.mu.Unlock()
	if spec.ReadOnly || !spec.Restate && known.Is(spec) {
		return true, nil
	}
	return st.reform(ctx, spec)
}

// make creates the pool. If an earlier pool is lost, the new one begins a new epoch and records that charges are unknown.
func (st *state) make(ctx context.Context, spec *store.Spec, v view) error {
	now := v.now
	core, err := pool.New(*spec, now)
	if err != nil {
		return err
	}
	st.mu.Lock()
	before := max(st.epoch, v.lost)
	if v.used > 0 && !spec.OneShot { // a one-shot command makes one request, and the others notice soon
		before = max(before, 1)
	}
	m := meta{version: 1, epoch: before + 1, sequence: st.sequence + 1, expires: int64(now), ttl: ttlOf(spec)}
	st.mu.Unlock()
	if m.epoch > 1 {
		core.Apply(now, []store.Op{{Kind: store.OpForget}})
	}
	list := appendString(appendString(nil, "v"), m.pack())
	list = appendString(appendString(list, "f"), format())
	list = appendString(appendString(list, "q"), pool.Pack([]float64{float64(m.sequence), float64(now)}))
	fields := core.Fields(&layout)
	for f, v := range fields {
		list = appendString(appendString(list, f), v)
	}
	_, err = st.run(ctx, "make", st.users(), st.user(), string(append(appendArray(nil, 2*len(fields)+6), list...)), fmt.Sprint(m.ttl/1000))
	return err // another process may have created it first: the caller reads the pool again
}

// learn records the limits, version, epoch and sequence that v shows.
func (st *state) learn(v view) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.known == nil || st.version != v.version || st.epoch != v.epoch {
		known, err := st.readLimits(v)
		if err != nil {
			return err
		}
		st.known = known
	}
	if st.sequence = max(st.sequence, v.sequence); st.epoch != v.epoch {
		st.sequence = v.sequence
	}
	st.version, st.epoch = v.version, v.epoch
	return nil
}

// readLimits returns a pool with the limits that v shows, and tells the outage decider. The caller holds st.mu.
func (st *state) readLimits(v view) (*pool.Pool, error) {
	known, err := pool.FromSpec(v.text, v.once)
	if err != nil {
		return nil, st.damaged(err.Error(), err)
	}
	st.proc.Learn(known.Stated())
	return known, nil
}

// reform gives the pool the limits of spec. It returns true if the pool has them already; otherwise the caller reads the
// pool again, because reform or another process has changed it.
func (st *state) reform(ctx context.Context, spec *store.Spec) (bool, error) {
	was, err := st.read(ctx)
	if err != nil || was == nil {
		return false, err
	}
	core, now := was.core, was.now
	core.Serve(now)
	decided := slices.Clone(core.Decided())
	retired := core.Retired()
	if err := core.Reform(*spec, st.isAlone(core, now, spec.Restate)); err != nil {
		return false, err
	}
	st.mu.Lock()
	mine := st.said.With(spec)
	st.mu.Unlock()
	revision, _, err := st.settleOn(ctx, core, mine)
	if err != nil {
		return false, err
	}
	core.Serve(now)
	decided = append(decided, core.Decided()...)
	if after := core.Fields(&layout); after["s"] == was.fields["s"] && core.Retired() == retired {
		err := st.learn(view{meta: was.meta, text: after["s"], once: after["once"]})
		return err == nil, err // other processes state smaller sizes, which stay in force
	}
	next := was.meta
	next.sequence++
	next.ttl = ttlOf(spec)
	_, err = st.write(ctx, was, next, decided, revision)
	if err == nil {
		st.arm(now, core.Wake())
	}
	return false, err // the caller reads the pool again
}

// isAlone reports whether no other process uses the pool: none touches it and none has tickets. Other sessions of this
// process count too, unless restate is set.
func (st *state) isAlone(core *pool.Pool, now store.Time, restate bool) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	if len(st.sessions) > 0 && !restate {
		return false
	}
	return !core.Used(now, func(session uint64) bool { return outage.Of(session) != st.store.process })
}

// replyField is the prefix of the fields that hold replies.
const replyField = "r:"

// write replaces the pool with was.core, and publishes the tickets that were decided. It returns false if the pool has
// changed since it was read, or, with a revision, if what processes state has changed.
func (st *state) write(ctx context.Context, was *contents, next meta, decided []store.ID, revision string) (bool, error) {
	var set, del []byte
	sets, dels := 0, 0
	after := was.core.Fields(&layout)
	for f, v := range after {
		if was.fields[f] != v {
			set = appendString(appendString(set, f), v)
			sets += 2
		}
	}
	for f := range was.fields {
		if _, stays := after[f]; !stays && f != "v" && f != "q" && f != "f" && !strings.HasPrefix(f, replyField) {
			del = appendString(del, f)
			dels++
		}
	}
	messages, mine := st.messages(decided)
	reply, err := st.runWith(ctx, st.statedKeys(), "reform", fmt.Sprint(was.version), fmt.Sprint(was.sequence), fmt.Sprint(was.epoch),
		string(append(appendArray(nil, sets), set...)), string(append(appendArray(nil, dels), del...)), fmt.Sprint(next.ttl),
		messages, fmt.Sprint(next.sequence), fmt.Sprint(next.epoch), revision)
	if err != nil || reply != "ok" {
		return false, err
	}
	st.tell(mine)
	return true, nil
}

// contents is a pool as read found it.
type contents struct {
	meta
	now    store.Time
	fields map[string]string // nil in a copy that is kept
	size   int               // number of fields of such a copy

	mu   sync.Mutex // guards core where callers share a reading
	core *pool.Pool
}

// read makes the script write all of the pool to its hash, and reads it. It returns nil if there is no pool.
func (st *state) read(ctx context.Context) (*contents, error) {
	reply, err := st.store.again(ctx, func(ctx context.Context) (string, error) {
		reply, err := st.store.redis.RunKeys(ctx, st.store.apply, st.keys(), st.args(pipe{}, position{}, 0, "", "write")...)
		return reply, st.trouble(err)
	})
	if err != nil {
		return nil, err
	}
	c := &contents{}
	var ok bool
	if c.now, c.fields, ok = readFields(reply); !ok {
		return nil, st.damaged(errGarbled.Error(), errGarbled)
	}
	var exists bool
	if c.meta, exists = unpackMeta(c.fields["v"]); !exists {
		return nil, nil
	}
	if flaw := pool.FlawOf(&layout, c.fields); flaw != "" {
		return nil, st.damaged(flaw, errDamaged)
	}
	if c.core, err = pool.FromFields(&layout, c.fields); err != nil {
		return nil, st.damaged(err.Error(), err)
	}
	return c, nil
}

// readFields reads the answer with all fields of a pool.
func readFields(reply string) (now store.Time, fields map[string]string, ok bool) {
	in := reader{b: []byte(reply)}
	n := in.array()
	now = store.Time(in.int())
	fields = make(map[string]string, n/2)
	for range n / 2 {
		f := in.text()
		fields[f] = in.text()
	}
	return now, fields, !in.bad
}

// run calls lua/open.lua on the pool's key. It may make the call twice; the script tolerates that.
func (st *state) run(ctx context.Context, what string, args ...string) (string, error) {
	return st.runWith(ctx, st.keys(), what, args...)
}

// again makes a call, and repeats it once if the server cannot be reached. Making the call twice must do no harm.
func (s *Store) again(ctx context.Context, call func(context.Context) (string, error)) (string, error) {
	for tries := 0; ; tries++ {
		within, cancel := context.WithTimeout(ctx, s.whole)
		reply, err := call(within)
		cancel()
		if !isLoss(faultOf(err)) || tries == 1 || ctx.Err() != nil {
			return reply, err
		}
		time.Sleep(againAfter/4 + rand.N(againAfter)) //nolint:gosec // it spreads, it guards nothing
	}
}

// wholeWithin bounds a call that reads or writes a whole pool, which may be large. Two tries take as long as the timeout
// of the URL, and at least a second each.
func wholeWithin(timeout time.Duration) time.Duration { return max(timeout/2, time.Second) }
