package sluice

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluicehq/sluice/store"
)

// beats tells the store that this process is alive while it holds tied tickets or waits for some. One operation every
// few seconds covers all of them. Stores that notice by themselves when a process dies need no beats.
type beats struct {
	on     atomic.Bool   // continue, whatever the result of the running beat is
	latest atomic.Uint64 // session of the latest ticket

	mu       sync.Mutex
	sessions map[uint64]struct{}
	timer    *time.Timer
	closed   bool
}

// beatWithin bounds a beat: the next one will do as well.
const beatWithin = 2 * time.Second

// alive starts the beats for a session if they do not run yet.
func (r *resource) alive(session uint64) {
	b := &r.beats
	if r.watched || b.on.Load() && b.latest.Load() == session {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if b.sessions == nil {
		b.sessions = map[uint64]struct{}{}
	}
	b.sessions[session] = struct{}{}
	b.latest.Store(session)
	b.on.Store(true)
	if b.timer == nil {
		b.timer = time.AfterFunc(store.BeatEvery, r.beat)
	}
}

// beat sends a beat for all sessions. It stops for sessions without tickets.
func (r *resource) beat() {
	b := &r.beats
	b.mu.Lock()
	b.on.Store(false)
	ops := make([]store.Op, 0, len(b.sessions))
	for session := range b.sessions {
		ops = append(ops, store.Op{Kind: store.OpPoll, ID: store.ID{Session: session}, Alive: store.SessionLife})
	}
	b.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), beatWithin)
	err := r.pool.Apply(ctx, ops)
	cancel()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err == nil && !b.on.Load() {
		for i := range ops {
			if ops[i].Result.State != store.Granted {
				delete(b.sessions, ops[i].ID.Session)
			}
		}
	}
	if b.closed || len(b.sessions) == 0 {
		b.timer = nil
		return
	}
	b.timer.Reset(store.BeatEvery)
}

// close stops the beats and returns the operations that report the sessions as gone.
func (b *beats) close() (gone []store.Op) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	if b.timer != nil {
		b.timer.Stop()
	}
	for session := range b.sessions {
		gone = append(gone, store.Op{Kind: store.OpGone, ID: store.ID{Session: session}})
	}
	return gone
}

// tie returns how to tie the tickets of a request to this process.
func (r *resource) tie(req *Request) store.Tie {
	switch {
	case req.Detached || req.Spent:
		return store.TieNone
	case r.watched:
		return store.TieGone
	}
	return store.TieBeat
}
