package redisstore

import (
	"context"
	"slices"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/store"
)

// A pool has lost its memory if it is gone, if its sequence is below what was seen of it, or if it does not know of a call that
// it answered: a restart without persistence, a FLUSHALL, a failover to a replica that had not heard all. So has, for those
// who count on time, one whose clock was put forward. Whoever notices makes a new epoch of it, and
// says in the same step that what was charged before is not known. Everybody who sees a new
// epoch says first what it holds; calls for an old one are not made.

// catchUp takes in that the pool is not what this process thinks it is: a batch was answered so.
func (st *state) catchUp(r *reply, b *call) error {
	st.whole.Lock()
	defer st.whole.Unlock()
	if r.what == "jump" {
		st.mu.Lock()
		healed := st.epoch != b.at.epoch
		late := r.now <= st.clock.latest(uptime(), 4*st.patience())
		st.mu.Unlock()
		if healed || late { // the call was under way for so long
			return nil
		}
		return st.meet(&b.at)
	}
	if r.what == "behind" {
		return st.meet(&b.at) // what was lost is not known, whatever the sequence is by now
	}
	return st.meet(nil)
}

// view is a pool as it is found.
type view struct {
	meta
	now    store.Time
	clock  estimate // by this
	exists bool
	lost   int64  // what was there was moved away in this epoch; 0: nothing was
	text   string // the spec
	once   string // what there is one of: which limits are in use is among it
	asked  stand  // what was known of it before
}

// look looks at the pool as a whole.
func (st *state) look(ctx context.Context) (v view, err error) {
	// Calls on other connections may be answered meanwhile: what they tell is later than what is found here.
	st.mu.Lock()
	v.asked = stand{st.version, st.epoch, st.sequence}
	st.mu.Unlock()
	sent := uptime()
	reply, err := st.run(ctx, "look")
	if err != nil {
		return v, err
	}
	in := reader{b: []byte(reply)}
	in.array()
	v.now = store.Time(in.int())
	head := in.text()
	v.text = in.text()
	made, kept := in.int(), in.text()
	v.once = in.text()
	flaw := in.text()
	v.lost = in.int()
	if flaw != "" {
		return v, st.damaged(flaw, errDamaged)
	}
	if v.meta, v.exists = unpackMeta(head); in.bad || head != "" && !v.exists {
		return v, st.damaged(errGarbled.Error(), errGarbled)
	}
	if v.exists && kept != format {
		return v, st.damaged(errFormat.Error(), errFormat)
	}
	v.sequence = made
	up := uptime()
	v.clock = estimate{at: v.now, of: up, rtt: up - sent}
	st.mu.Lock()
	if st.clock.at == 0 {
		st.clock = v.clock
	}
	st.mu.Unlock()
	return v, nil
}

// meet finds out what the pool is by now, and heals it if it has to. jumped tells when its clock was put
// forward. The pool as a whole is ours.
func (st *state) meet(jumped *stand) error {
	ctx, cancel := context.WithTimeout(st.life, 2*st.store.whole)
	defer cancel()
	for range maxTries {
		v, err := st.look(ctx)
		if err != nil {
			return err
		}
		met, err := st.met(ctx, v, jumped)
		if met || err != nil {
			return err
		}
	}
	return unavailable(errBusy)
}

// met is one attempt. It reports false if the pool has to be looked at again.
func (st *state) met(ctx context.Context, v view, jumped *stand) (bool, error) {
	st.mu.Lock()
	epoch, sequence, spec := v.asked.epoch, v.asked.sequence, *st.proc.Spec()
	stale := st.epoch != epoch
	st.mu.Unlock()
	switch {
	case stale:
		return false, nil
	case !v.exists:
		spec.Limits = st.distinct(spec.Limits)
		return false, st.make(ctx, &spec, v)
	case v.epoch > epoch:
		if said, err := st.assert(v); !said || err != nil {
			return false, err
		}
	case v.epoch < epoch || v.sequence < sequence || jumped != nil && jumped.epoch == v.epoch:
		return false, st.heal(ctx)
	}
	_, err := st.learn(v)
	return err == nil, err
}

// distinct leaves of limits one of each name: those that members of this process have.
func (st *state) distinct(limits []store.Limit) []store.Limit {
	st.mu.Lock()
	defer st.mu.Unlock()
	var out []store.Limit
	for _, l := range limits {
		i := slices.IndexFunc(out, func(o store.Limit) bool { return o.Name == l.Name })
		switch {
		case i < 0:
			out = append(out, l)
		case st.has(&l):
			out[i] = l
		}
	}
	return out
}

// has reports whether a session of this process has a limit as it is. The state is locked.
func (st *state) has(l *store.Limit) bool {
	for _, h := range st.sessions {
		for i := range h.Spec.Limits {
			m := &h.Spec.Limits[i]
			if m.Name == l.Name && m.Kind == l.Kind && m.Window == l.Window && m.Per == l.Per && m.Guard == l.Guard && m.Late == l.Late && m.Unit == l.Unit {
				return true
			}
		}
	}
	return false
}

// heal makes a new epoch of the pool. Somebody else may have come first.
func (st *state) heal(ctx context.Context) error {
	m, now, fields, err := st.fields(ctx)
	if err != nil || fields == nil {
		return err
	}
	core, err := pool.FromFields(&layout, fields)
	if err != nil {
		return st.damaged(err.Error(), err)
	}
	core.Apply(now, []store.Op{{Kind: store.OpForget}})
	st.mu.Lock()
	next := m
	next.epoch = max(st.epoch, m.epoch) + 1
	next.sequence = max(st.sequence, m.sequence) + 1
	st.mu.Unlock()
	_, err = st.write(ctx, m, next, fields, core, slices.Clone(core.Decided()), "")
	return err
}

// assert says in a new epoch what this process holds and who of it waits, before anything else is said.
// The pool as a whole is ours.
func (st *state) assert(v view) (said bool, err error) {
	st.mu.Lock()
	if st.known == nil { // nothing yet
		st.mu.Unlock()
		return true, nil
	}
	st.clock = v.clock // also if it was put forward
	if err := st.readSpec(v.text); err != nil {
		st.mu.Unlock()
		return false, st.damaged(err.Error(), err)
	}
	ops := st.proc.Restate(st.nowLocked())
	at := stand{v.version, v.epoch, v.sequence}
	st.mu.Unlock()
	for n := 0; n < len(ops); n += maxTogether {
		part := ops[n:min(n+maxTogether, len(ops))]
		st.control.seq++
		b := &call{pipe: st.control}
		b.write(part)
		text, _, err := st.sendTwice(b.pipe, b.blob, at, 0)
		if err != nil {
			return false, st.trouble(err) // if it was made, that does no harm: all of it has ids
		}
		r, err := b.read(text)
		if err != nil {
			return false, unavailable(err)
		}
		if r.what != "ok" {
			return false, nil // it has changed again
		}
		at.sequence = r.sequence
		st.tell(r.decided)
	}
	st.mu.Lock()
	over := st.proc.Restated(ops)
	st.mu.Unlock()
	st.tell(over)
	return true, nil
}
