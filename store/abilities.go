package store

import (
	"context"
	"time"
)

// Abilities holds the optional interfaces that a pool supports beyond [Pool]. A field is nil if the pool does not
// support it. Call [Can] to get them.
type Abilities struct {
	Quick    Quick
	Crowd    Crowd
	Calm     Calm
	Watcher  Watcher
	Recorder Recorder
	Alarm    Alarm
	Foreseer Foreseer
	Copied   Copied
}

// Quick is implemented by pools with a cheaper path for the two most common operations. The results are the same as
// with [Pool.Apply].
type Quick interface {
	// CloseTicket is OpClose without usage to settle.
	CloseTicket(id ID, spent bool) error
	// CollectTicket is OpPoll, except that it serves no other request on the way and does not set Held.
	CollectTicket(id ID) (Result, error)
}

// Crowd is implemented by pools that know whether requests of any session wait in them.
type Crowd interface {
	// Crowded reports whether requests were waiting after the latest call of this process.
	Crowded() bool
}

// Calm is implemented by pools of which every call costs all processes, so that reports should join other calls.
type Calm interface {
	// Calm reports whether answers and closes may be reported late, up to some hundred milliseconds: nothing has waited for
	// a while, and the pool has no limit on requests at the same time. The ops then state their Age.
	Calm() bool
	// OnCrowd sets the function to call when that is over: what was not reported yet must be reported at once. It is
	// called without locks held and must not block.
	OnCrowd(f func())
}

// Watcher is implemented by pools that can notice by themselves that a session's process has ended.
type Watcher interface {
	// Watches reports whether the pool does so for this session. If it does, tickets are tied with [TieGone] and the
	// session need not send beats.
	Watches() bool
}

// Recorder is implemented by pools that keep a history of sends, in bounded memory.
type Recorder interface {
	// History returns the sends since a moment, by agent, model and minute.
	History(ctx context.Context, since Time) (History, error)
}

// Alarm is implemented by pools whose store can become unreachable.
type Alarm interface {
	// OnOutage sets the function to call when the store is lost and when it is back. It is called without locks held
	// and must not block.
	OnOutage(f func(o Outage, over bool))
	// Outage returns the current outage, if there is one.
	Outage() (Outage, bool)
}

// Foreseer is implemented by pools that can say what [Pool.Apply] would decide without doing it.
type Foreseer interface {
	// Foresee sets the Result of each OpAcquire as Apply would if they came one by one with a Wait of 0. It stops at
	// the first that would be granted. Nothing changes: no ticket is made, and the caller does not count as heard. The
	// state judged may be old by at most within where reading it takes long; a within of 0 means now. There are at
	// most MaxForeseen operations.
	Foresee(ctx context.Context, ops []Op, within time.Duration) error
}

// Can returns the optional interfaces that a pool supports. A pool that wraps another one states them with a method
// Abilities. For any other pool they are the interfaces that it implements.
func Can(p Pool) (a Abilities) {
	if says, ok := p.(interface{ Abilities() Abilities }); ok {
		return says.Abilities()
	}
	a.Quick, _ = p.(Quick)
	a.Crowd, _ = p.(Crowd)
	a.Calm, _ = p.(Calm)
	a.Watcher, _ = p.(Watcher)
	a.Recorder, _ = p.(Recorder)
	a.Alarm, _ = p.(Alarm)
	a.Foreseer, _ = p.(Foreseer)
	a.Copied, _ = p.(Copied)
	return a
}
