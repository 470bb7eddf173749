// Package retry computes retries: how long to wait before a request is sent again, and when to stop. It reads no clock,
// never sleeps and has no random source of its own, so that every decision can be replayed.
//
// Three things can set a wait. A hint from the server wins. Without one, a caller with a known class draws from the
// window of its class, so that urgent work returns sooner. All other callers use exponential backoff with full jitter.
// A pool that is paused or ramping overrules all three: the retry joins the queue at once, because the queue's order
// spreads requests better than jitter.
//
// Two bounds end the retries: the number of sends, and an overall deadline.
package retry

import (
	"maps"
	"time"
)

// The defaults of a [Policy].
const (
	DefaultAttempts = 6
	DefaultDeadline = 10 * time.Minute
	DefaultBase     = time.Second
	DefaultCap      = 30 * time.Second
)

// MaxHint bounds how long a server can make a caller wait.
const MaxHint = 24 * time.Hour

// Implausible and Stale bound what counts as a hint. A longer wait, or a date longer ago, is a mistake of the server,
// such as the year 9999, and is ignored.
const (
	Implausible = 31 * 24 * time.Hour
	Stale       = 24 * time.Hour
)

// hintJitter spreads callers that got the same hint.
const hintJitter = time.Second

// Window is the range of waits of one class. The first retry draws from Min to twice Min. Each later retry doubles the
// upper end, up to Max.
type Window struct{ Min, Max time.Duration }

// defaultWindows must not be modified: all policies without windows of their own share it.
var defaultWindows = map[string]Window{
	"p0": {500 * time.Millisecond, 5 * time.Second},
	"p1": {2 * time.Second, 30 * time.Second},
	"p2": {5 * time.Second, time.Minute},
}

// Policy says how often and how long to retry. The zero value is the default policy: any field that is zero or negative
// counts as its default.
type Policy struct {
	// Attempts is the maximum number of sends, including the first.
	Attempts int
	// Deadline is the maximum time from before the first send. It bounds the start of the last send, not its response.
	Deadline time.Duration
	// Base and Cap shape full jitter: before retry n, counted from 0, the wait is uniform in 0..min(Cap, Base*2^n). A
	// larger Base relieves an overloaded server sooner and costs a lone caller more.
	Base, Cap time.Duration
	// Windows maps the name of a class to its waits. Nil means the defaults (p0 0.5-5 s, p1 2-30 s, p2 5-60 s); an
	// empty map means full jitter for all classes.
	Windows map[string]Window
}

// Default returns the default policy with all fields filled in.
func Default() Policy {
	p := Policy{}.filled()
	p.Windows = maps.Clone(defaultWindows)
	return p
}

func (p Policy) filled() Policy {
	if p.Attempts <= 0 {
		p.Attempts = DefaultAttempts
	}
	if p.Deadline <= 0 {
		p.Deadline = DefaultDeadline
	}
	if p.Base <= 0 {
		p.Base = DefaultBase
	}
	if p.Cap <= 0 {
		p.Cap = DefaultCap
	}
	if p.Windows == nil {
		p.Windows = defaultWindows
	}
	return p
}
