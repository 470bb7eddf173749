package redisstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// meta is what is known of a pool as a whole: the field v.
type meta struct {
	version  int64 // of its limits
	sequence int64 // of batches
	epoch    int64 // how often it has lost its memory
	expires  int64 // when its expiry was last set
	ttl      int64 // how long it outlives its last use, in microseconds
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

// longestTTL is how long a pool outlives its last use at least; its windows may make it more.
const shortestTTL = 24 * time.Hour

// ttlOf is how long nothing of a pool can matter any more.
func ttlOf(spec *store.Spec) int64 {
	ttl := shortestTTL
	for _, l := range spec.Limits {
		ttl = max(ttl, 2*l.Window)
	}
	return ttl.Microseconds()
}

// maxTries bounds how often a step is tried that others get in the way of.
const maxTries = 50

// errBusy tells that others have changed a pool all the time.
var errBusy = errors.New("the limits of the pool are being changed by others all the time")

// open makes a session whose limits are those of spec.
func (st *state) open(ctx context.Context, spec store.Spec) (*handle, error) {
	for range maxTries {
		done, err := st.tryOpen(ctx, &spec)
		if err != nil {
			return nil, err
		}
		if done {
			return st.newHandle(spec), nil
		}
		if !st.store.fixed {
			time.Sleep(rand.N(10 * time.Millisecond)) //nolint:gosec // it spreads, it guards nothing
		}
	}
	return nil, unavailable(errBusy)
}

// tryOpen looks at the pool, and makes it or changes its limits if it has to. It reports false
// if somebody else came first.
func (st *state) tryOpen(ctx context.Context, spec *store.Spec) (bool, error) {
	reply, err := st.run(ctx, "look")
	if err != nil {
		return false, err
	}
	in := reader{b: []byte(reply)}
	in.array()
	now, head, text := in.int(), in.text(), in.text()
	m, exists := unpackMeta(head)
	if in.bad || head != "" && !exists {
		return false, unavailable(errGarbled)
	}
	if !exists {
		return st.make(ctx, spec, store.Time(now))
	}
	known, err := st.learn(m, text)
	if err != nil {
		return false, err
	}
	if spec.Look || known.Is(spec) {
		return true, nil
	}
	return st.reform(ctx, spec)
}

// make makes the pool.
func (st *state) make(ctx context.Context, spec *store.Spec, now store.Time) (bool, error) {
	core, err := pool.New(*spec, now)
	if err != nil {
		return false, err
	}
	m := meta{version: 1, epoch: st.nextEpoch(), sequence: st.seen(), expires: int64(now), ttl: ttlOf(spec)}
	list := appendString(appendString(nil, "v"), m.pack())
	fields := core.Fields(&layout)
	for f, v := range fields {
		list = appendString(appendString(list, f), v)
	}
	reply, err := st.run(ctx, "make", string(append(appendArray(nil, 2*len(fields)+2), list...)), fmt.Sprint(m.ttl/1000))
	if err != nil || reply != "ok" {
		return false, err
	}
	return false, nil // and it is looked at as any other
}

// learn takes in which limits a pool has.
func (st *state) learn(m meta, spec string) (*pool.Pool, error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.known == nil || st.version != m.version || st.epoch != m.epoch {
		known, err := pool.FromFields(&layout, map[string]string{"s": spec})
		if err != nil {
			return nil, unavailable(err)
		}
		st.known = known
	}
	st.version, st.epoch = m.version, m.epoch
	st.sequence = max(st.sequence, m.sequence)
	for _, h := range st.sessions {
		h.place()
	}
	return st.known, nil
}

// reform makes the limits of a member the pool's. It reports false if somebody got in the way.
func (st *state) reform(ctx context.Context, spec *store.Spec) (bool, error) {
	m, now, fields, err := st.fields(ctx)
	if err != nil || fields == nil {
		return false, err
	}
	core, err := pool.FromFields(&layout, fields)
	if err != nil {
		return false, unavailable(err)
	}
	core.Serve(now)
	decided := slices.Clone(core.Decided())
	retired := core.Retired()
	if err := core.Reform(*spec, st.isAlone(core)); err != nil {
		return false, err
	}
	core.Serve(now)
	decided = append(decided, core.Decided()...)
	var set, del []byte
	sets, dels := 0, 0
	after := core.Fields(&layout)
	if after["s"] == fields["s"] && core.Retired() == retired {
		_, err := st.learn(m, after["s"])
		return err == nil, err // others state smaller sizes, which hold
	}
	for f, v := range after {
		if fields[f] != v {
			set = appendString(appendString(set, f), v)
			sets += 2
		}
	}
	for f := range fields {
		if _, stays := after[f]; !stays && f != "v" {
			del = appendString(del, f)
			dels++
		}
	}
	reply, err := st.run(ctx, "reform", fmt.Sprint(m.version), fmt.Sprint(m.sequence), fmt.Sprint(m.epoch),
		string(append(appendArray(nil, sets), set...)), string(append(appendArray(nil, dels), del...)), fmt.Sprint(ttlOf(spec)), string(appendArray(nil, 0)), fmt.Sprint(m.sequence+1), fmt.Sprint(m.epoch))
	if err != nil || reply != "ok" {
		return false, err
	}
	st.arm(now, core.Wake())
	st.tell(decided)
	m.version++
	m.sequence++
	_, err = st.learn(m, after["s"])
	return err == nil, err
}

// fields reads the whole pool, nil if there is none.
func (st *state) fields(ctx context.Context) (m meta, now store.Time, fields map[string]string, err error) {
	reply, err := st.readAll(ctx)
	if err != nil {
		return m, 0, nil, err
	}
	in := reader{b: []byte(reply)}
	n := in.array()
	now = store.Time(in.int())
	fields = make(map[string]string, n/2)
	for range n / 2 {
		f := in.text()
		fields[f] = in.text()
	}
	if in.bad {
		return m, 0, nil, unavailable(errGarbled)
	}
	m, ok := unpackMeta(fields["v"])
	if !ok {
		return m, now, nil, nil
	}
	return m, now, fields, nil
}

// run runs the script for what is done to the pool as a whole.
func (st *state) run(ctx context.Context, what string, args ...string) (string, error) {
	s := st.store
	reply, err := s.link.RunKeys(ctx, s.manage, []string{st.key, st.key + ":j"}, s.withClock(append([]string{what}, args...))...)
	return reply, unavailable(err)
}
