package logstore

import (
	"errors"
	"fmt"

	"github.com/sluicehq/sluice/internal/pool"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// counts tell how often something happened since this process opened the pool. st.mu guards them.
type counts struct {
	of        [store.NoticeEvicted + 1]int64
	snapshots int64              // that this process wrote
	lostAt    sharedlog.Position // of the latest loss
}

// maxNotices bounds those that sessions were not told of yet.
const maxNotices = 64

// note counts what went wrong, and has sessions told of it after the exchange. The caller holds st.mu.
func (st *state) note(n store.Notice) {
	st.counts.of[n.Kind]++
	if n.At == "" {
		n.At = nameOf(st.at)
	}
	if len(st.notices) < maxNotices {
		st.notices = append(st.notices, n)
	}
}

// nameOf names a position for people.
func nameOf(at sharedlog.Position) string { return fmt.Sprintf("%d:%d", at.Incarnation, at.Offset) }

// noteLost notes that the log, or its end, is lost. Several attempts to heal it are one loss. One that may lack its end is none
// yet: who knows more notes that.
func (st *state) noteLost(at sharedlog.Position, why error) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.counts.lostAt != at && !errors.Is(why, errMoved) {
		st.counts.lostAt = at
		n := store.Notice{Kind: store.NoticeLost, At: nameOf(at), Why: why.Error()}
		if errors.Is(why, sharedlog.ErrEvicted) {
			n.Kind = store.NoticeEvicted
		}
		st.note(n)
	}
}

// notified returns a function that tells all sessions what was noted. The caller holds st.mu.
func (st *state) notified() func() {
	var calls []func(store.Notice)
	if len(st.notices) == 0 {
		return func() {}
	}
	for _, h := range st.sessions {
		if f := h.notice.Load(); f != nil {
			calls = append(calls, *f)
		}
	}
	if len(calls) == 0 && !st.closed { // a session is being opened: it is told afterwards
		return func() {}
	}
	notices := st.notices
	st.notices = nil
	return func() {
		for _, f := range calls {
			for _, n := range notices {
				f(n)
			}
		}
	}
}

// OnNotice implements [store.Copied].
func (h *handle) OnNotice(f func(store.Notice)) {
	h.notice.Store(&f)
	st := h.state
	st.mu.Lock()
	notify := st.notified()
	st.mu.Unlock()
	notify()
}

// Copy implements [store.Copied].
func (h *handle) Copy() store.Copy {
	st := h.state
	st.mu.Lock()
	defer st.mu.Unlock()
	c := store.Copy{
		Process: st.process, Processes: st.rep.Members(), Rules: st.rep.Rules(), Known: pool.Rules,
		Diverged: st.counts.of[store.NoticeDiverged], Poisoned: st.counts.of[store.NoticePoisoned], Lost: st.counts.of[store.NoticeLost] + st.counts.of[store.NoticeEvicted], Behind: st.counts.of[store.NoticeBehind],
		Snapshots: st.counts.snapshots, LogBytes: st.at.Offset - st.at.Segment, SnapshotBytes: st.shot,
	}
	st.rep.EachMember(func(process uint64) bool {
		if m, ok := st.rep.Member(process); ok && m.Rules <= c.Rules && c.Rules < c.Known {
			c.Holding = append(c.Holding, process)
		}
		return len(c.Holding) < store.MaxListed
	})
	return c
}
