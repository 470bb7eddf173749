package redisstore

import (
	"context"
	"slices"

	"github.com/sluicehq/sluice/store"
)

// A pool has lost data if it is gone, if its sequence is below one that was seen, or if it does not know a call that it
// answered. Causes are a restart without persistence, a FLUSHALL, or a failover to a replica that was behind. A server
// clock that was put forward is treated the same way: charges would expire too early.
//
// A process that starts knows only what its machine has recorded (seen.go). So every process that stays listens on a channel
// of the pool (wake.go). A process that finds listeners and no pool knows that it was lost; the listeners are told of the
// new pool, and look soon.
//
// The first process to notice begins a new epoch, and records in the same step that earlier charges are unknown. Every
// process that sees a new epoch first states what it holds. The script refuses calls that name an old epoch.

// catchUp finds out what the pool is after the script refused a call. The reply says why it refused.
func (st *state) catchUp(r *reply, b *call) error {
	st.whole.Lock()
	defer st.whole.Unlock()
	if r.what == "jump" {
		st.mu.Lock()
		healed := st.epoch != b.at.epoch
		late := r.now <= st.clock.latest(uptime(), 4*st.patience())
		st.mu.Unlock()
		if healed || late { // not a jump: the call itself took this long
			return nil
		}
		return st.meet(&b.at)
	}
	if r.what == "behind" {
		return st.meet(&b.at) // data was lost, even if the sequence is high again by now
	}
	return st.meet(nil)
}

// view is what look found.
type view struct {
	meta
	now    store.Time
	clock  estimate // of the server's clock, from this call
	exists bool
	lost   int64    // the epoch in which a repair moved the pool away; 0: none did
	used   int64    // how many other processes use the pool although it does not exist
	text   string   // the spec
	once   string   // the field of the records that a pool has one of; it tells which limits are in use
	asked  position // what this process knew of the pool before it looked
}

// look reads what a process has to know of the pool before it uses it.
func (st *state) look(ctx context.Context) (v view, err error) {
	// Replies to calls on other connections may arrive meanwhile. They are later than what look finds, so the comparison
	// has to use what was known before.
	st.mu.Lock()
	v.asked = position{st.version, st.epoch, st.sequence}
	st.mu.Unlock()
	sent := uptime()
	reply, err := st.run(ctx, "look", st.users(), st.user())
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
	v.used = in.int()
	if flaw != "" {
		return v, st.damaged(flaw, errDamaged)
	}
	if v.meta, v.exists = unpackMeta(head); in.bad || head != "" && !v.exists {
		return v, st.damaged(errGarbled.Error(), errGarbled)
	}
	if v.exists && kept != format() {
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

// meet reads the pool, heals it if it has lost data, and states what this process holds in a new epoch. jumped is where
// the pool stood when its clock jumped or it lost a call; nil: neither. The caller holds st.whole.
func (st *state) meet(jumped *position) error {
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

// met is one attempt of meet. It returns false if the pool has to be read again.
func (st *state) met(ctx context.Context, v view, jumped *position) (bool, error) {
	st.mu.Lock()
	epoch, sequence, spec := v.asked.epoch, v.asked.sequence, *st.proc.Spec()
	stale := st.epoch != epoch
	st.mu.Unlock()
	switch {
	case stale:
		return false, nil
	case !v.exists:
		return false, st.make(ctx, &spec, v)
	case v.epoch > epoch:
		if said, err := st.assert(v); !said || err != nil {
			return false, err
		}
	case v.epoch < epoch || v.sequence < sequence || jumped != nil && jumped.epoch == v.epoch:
		return false, st.heal(ctx)
	}
	err := st.learn(v)
	return err == nil, err
}

// heal begins a new epoch of the pool, unless another process has done so first.
func (st *state) heal(ctx context.Context) error {
	was, err := st.read(ctx)
	if err != nil || was == nil {
		return err
	}
	was.core.Apply(was.now, []store.Op{{Kind: store.OpForget}})
	st.mu.Lock()
	next := was.meta
	next.epoch = max(st.epoch, was.epoch) + 1
	next.sequence = max(st.sequence, was.sequence) + 1
	st.mu.Unlock()
	_, err = st.write(ctx, was, next, slices.Clone(was.core.Decided()), "")
	return err
}

// assert states in a new epoch what this process holds and which of its tickets wait, before it sends anything else. It
// returns false if the pool has changed again. The caller holds st.whole.
func (st *state) assert(v view) (said bool, err error) {
	st.mu.Lock()
	if st.known == nil { // the process holds nothing yet
		st.mu.Unlock()
		return true, nil
	}
	st.clock = v.clock // even if the server's clock was put forward
	known, err := st.readLimits(v)
	if err != nil {
		st.mu.Unlock()
		return false, err
	}
	ops := st.proc.Restate(st.nowLocked())
	at := position{v.version, v.epoch, v.sequence}
	st.mu.Unlock()
	for chunk := range slices.Chunk(ops, maxTogether) {
		r, _, err := st.sendOwn(chunk, at, limitsOf(known))
		if err != nil {
			return false, st.trouble(err) // sending it again does no harm: all operations have ids
		}
		if r.what != "ok" {
			return false, nil
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
