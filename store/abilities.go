package store

import "context"

// Abilities are what a pool can do beyond [Pool]. A field is nil if it cannot. [Can] finds them.
type Abilities struct {
	Quick    Quick
	Crowd    Crowd
	Watcher  Watcher
	Recorder Recorder
	Alarm    Alarm
}

// Quick is implemented by pools that can do the two commonest things with less ado than an
// operation takes. They mean the same.
type Quick interface {
	// CloseTicket is OpClose with no usage to settle.
	CloseTicket(id ID, spent bool) error
	// CollectTicket is OpPoll, but nobody else is served on the way, and Held is not set.
	CollectTicket(id ID) (Result, error)
}

// Crowd is implemented by pools that notice whether requests wait in them, of any session.
type Crowd interface {
	// Crowded reports whether any waited after the latest call of this process.
	Crowded() bool
}

// Watcher is implemented by pools that can notice by themselves when a session's process is gone.
type Watcher interface {
	// Watches reports that they do so for this session: its tickets are tied with [TieGone], and need no beats.
	Watches() bool
}

// Recorder is implemented by pools that remember what was sent, in bounded memory.
type Recorder interface {
	// History returns what was sent since a moment, by agent, model and minute.
	History(ctx context.Context, since Time) (History, error)
}

// Alarm is implemented by pools whose store can be out of reach.
type Alarm interface {
	// OnOutage sets the function that is told when the store is lost, and when it is back. It is
	// called without locks held and must not block.
	OnOutage(f func(o Outage, over bool))
	// Outage returns the one that lasts, if any.
	Outage() (Outage, bool)
}

// Can returns what a pool can do beyond [Pool]. A pool around another one says so itself, with a method Abilities; of any other
// pool it is what it implements.
func Can(p Pool) (a Abilities) {
	if says, ok := p.(interface{ Abilities() Abilities }); ok {
		return says.Abilities()
	}
	a.Quick, _ = p.(Quick)
	a.Crowd, _ = p.(Crowd)
	a.Watcher, _ = p.(Watcher)
	a.Recorder, _ = p.(Recorder)
	a.Alarm, _ = p.(Alarm)
	return a
}
