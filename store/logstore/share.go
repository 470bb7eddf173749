package logstore

import (
	"time"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// A member's share is a part of every limit that the others leave alone once the member has been silent for a while (see
// OpTouch). In an outage the process decides within it, by the code of package pool: see [pool.Share].

const (
	touchEvery  = time.Second             // so often a member says that it lives
	touchWithin = 1500 * time.Millisecond // a touch that arrives later has no effect
)

// member is this process as a member with a share. st.mu guards it.
type member struct {
	share   int64      // it has 1/share of every limit; 0: none
	heard   store.Time // when the log may have heard of it last
	expires store.Time // when its lease ends
}

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

// newShare returns what this process may use in the outage that begins, or nil. Only the leader calls it. It holds st.mu.
func (st *state) newShare(now store.Time) *pool.Share {
	m, core := &st.member, st.rep.Pool()
	if core == nil || !st.loaded || m.share == 0 || st.memberOf() == 0 {
		return nil
	}
	s, err := core.CutOff(now, &pool.CutOff{Share: m.share, Heard: m.heard, End: m.expires, Mine: st.mine, Unsure: st.unsure(now)})
	if err != nil {
		return nil
	}
	return s
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

// touch says that this process lives, as a member with a share.
func (st *state) touch() {
	st.mu.Lock()
	session := st.memberOf()
	if session == 0 || st.out != nil {
		if session == 0 {
			st.member = member{}
		}
		st.mu.Unlock()
		return
	}
	now := st.nowAt(st.store.clock.Uptime())
	op := store.Op{Kind: store.OpTouch, ID: store.ID{Session: session}, Share: st.member.share, Until: now.Add(touchWithin)}
	st.member.heard = max(st.member.heard, op.Until) // should its answer be lost, it may have been heard until then
	st.mu.Unlock()
	ops := []store.Op{op}
	if st.doOps(st.life, session, ops) != nil {
		return
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	r := &ops[0].Result
	if r.State != store.Granted {
		return
	}
	lease := st.rep.Pool().Stated().Lease
	if lease <= 0 {
		lease = store.DefaultLease
	}
	st.member = member{share: r.Share, heard: r.Now, expires: r.Now.Add(lease)}
}
