package logstore

import (
	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// A member's share is a part of every limit that the others leave alone once the member has been silent for a while. In an
// outage the process decides within it, by the code of package pool: see [pool.Share]. What shows that it lives is its entries:
// see package replica.

// memberOf returns the session that makes this process a member with a share; 0: none does. The caller holds st.mu.
func (st *state) memberOf() (session uint64) {
	for s, h := range st.sessions {
		if h.isMember() && (session == 0 || s < session) {
			session = s
		}
	}
	return session
}

// isMember reports whether a session makes its process a member.
func (h *handle) isMember() bool {
	return h.spec.OnFailure == store.FailShare && !h.spec.OneShot && !h.spec.ReadOnly && !h.state.store.passive
}

// newShare returns what this process may use in the outage that begins, and when its lease ends; or nil. Only the leader
// calls it. It holds st.mu.
func (st *state) newShare(now store.Time) (*pool.Share, store.Time) {
	session, m := st.rep.Share(st.process)
	if session == 0 || session != st.memberOf() || m.Share == 0 || !st.heard || !st.loaded || st.more != nil || len(st.owed) > 0 {
		return nil, 0
	}
	heard := m.Touched
	if st.flight.void {
		heard = max(heard, st.rep.HeardBy(st.process, st.flight.made))
	}
	s, err := st.rep.Pool().CutOff(now, &pool.CutOff{Share: m.Share, Heard: heard, End: m.Expires, Mine: st.mine, Unsure: st.unsure(now)})
	if err != nil {
		return nil, 0
	}
	return s, m.Expires
}

// unsure returns the requests on which the entry has operations whose fate is unknown.
func (st *state) unsure(now store.Time) map[store.ID]bool {
	f := &st.flight
	if !f.void {
		return nil
	}
	did := st.rep.Fork().Apply(sharedlog.Entry{Body: f.entry, Stamp: now, At: st.at})
	ids := map[store.ID]bool{}
	for i := range did.Ops {
		ids[did.Ops[i].ID] = true
	}
	return ids
}

// join makes this process a member with a share, if it shall be one and is not. From then on its entries are signs of life.
func (st *state) join() {
	st.mu.Lock()
	session := st.memberOf()
	if is, _ := st.rep.Share(st.process); is == session || st.out != nil {
		session = 0
	}
	st.mu.Unlock()
	if session != 0 {
		_ = st.doOps(st.life, session, []store.Op{{Kind: store.OpTouch, ID: store.ID{Session: session}}}) // or the next time
	}
}
