package logstore

import (
	"time"

	"github.com/sluicehq/sluice/internal/replica"
	"github.com/sluicehq/sluice/store"
)

// While nothing waits, callers may report late what only frees room: see [store.Calm]. What begins to wait must not wait for
// that, so the process whose entry it is wakes all others that have open tickets, and they report at once what they have.
// That would be often if requests wait now and then. So a pool is calm only when nothing has waited for calmAfter, and only the
// end of a calm time wakes anybody.
//
// A process judges by the entries that it has read. If it takes the pool for calm, so does whoever writes the next entry that
// leaves a request waiting, since it has read those entries too, and at most a calm time more.

// calmAfter is how long nothing must have waited.
const calmAfter = time.Second

// calm is what a replica shows of that. st.mu guards it.
type calm struct {
	waits  bool       // requests wait
	latest store.Time // when some last did, or were refused
	knows  store.Time // this process knows nothing of before
	still  bool       // nothing has waited for calmAfter, as far as this process knows
	over   bool       // that has ended, and sessions have to be told
}

// noteCalm notes what an entry shows. The caller holds st.mu.
func (st *state) noteCalm(did *replica.Applied, mine bool) {
	c, now := &st.calm, st.rep.Now()
	if !st.loaded {
		c.knows = now
	}
	waited := c.waits
	c.waits = st.isCrowded()
	lacks := c.waits || wasRefused(did.Ops)
	if lacks && c.still {
		st.endCalm()
		if mine && st.loaded {
			st.rep.Pool().EachOpen(func(session uint64) {
				if process := replica.ProcessOf(session); process != st.process {
					st.rung[process] = struct{}{}
				}
			})
		}
	}
	if lacks || waited {
		c.latest = now
	}
	c.still = !c.waits && now.Sub(c.latest) >= calmAfter
	core := st.rep.Pool()
	st.isCalm.Store(c.still && now.Sub(c.knows) >= calmAfter && st.out == nil && core != nil && !core.HasPlaces())
}

// endCalm has sessions report at once what they have. The caller holds st.mu.
func (st *state) endCalm() {
	st.calm.over = true
	st.isCalm.Store(false)
}

// newCalm begins anew with another replica. Others may take the pool for calm. The caller holds st.mu.
func (st *state) newCalm() {
	st.endCalm()
	st.calm = calm{knows: st.rep.Now(), still: true, over: true}
}

// wasRefused reports whether a request was refused that another time could have gone.
func wasRefused(ops []store.Op) bool {
	for i := range ops {
		if r := &ops[i].Result; r.State == store.Refused && r.Reason.Code != store.CodeInvalid && r.Reason.Code != store.CodeCapacity {
			return true
		}
	}
	return false
}

// hurried returns a function that tells sessions that the calm time is over, if it is. The caller holds st.mu.
func (st *state) hurried() func() {
	if !st.calm.over {
		return func() {}
	}
	st.calm.over = false
	var calls []func()
	for _, h := range st.sessions {
		if f := h.crowd.Load(); f != nil {
			calls = append(calls, *f)
		}
	}
	return func() {
		for _, f := range calls {
			f()
		}
	}
}

// Calm implements [store.Calm].
func (h *handle) Calm() bool { return h.state.isCalm.Load() && h.state.listening.Load() }

// OnCrowd implements [store.Calm].
func (h *handle) OnCrowd(f func()) { h.crowd.Store(&f) }
