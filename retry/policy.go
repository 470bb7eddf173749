// Package retry is the arithmetic of trying again: how long to wait before a
// request is sent once more, and when to stop. It reads no clock, never sleeps
// and draws no randomness of its own, so that every decision can be replayed.
//
// Three things can set a wait. A hint from the server wins. Without one, a caller
// whose class is known draws from its class's window, so that urgent work returns
// sooner; anyone else draws from the full jitter of exponential backoff. A pool
// that is paused or ramping overrules all three: the retry joins the queue at
// once, because the queue's order does what jitter can only hope for.
//
// Two walls end the trying: a number of sends, and an overall deadline.
package retry

import "time"

// The defaults of a [Policy].
const (
	DefaultAttempts = 6
	DefaultDeadline = 10 * time.Minute
	DefaultBase     = time.Second
	DefaultCap      = 30 * time.Second
)

// MaxHint bounds what a server can make a caller wait.
const MaxHint = 24 * time.Hour

// A hint that is longer than Implausible, or a date that is longer ago than Stale, is a mistake of
// the server's, such as the year 9999. It counts as no hint.
const (
	Implausible = 31 * 24 * time.Hour
	Stale       = 24 * time.Hour
)

// hintJitter spreads callers that were given the same hint.
const hintJitter = time.Second

// Window is the range of waits of one class. The first retry draws from Min to
// twice Min; each later one may reach twice as far, never past Max.
type Window struct{ Min, Max time.Duration }

// defaultWindows is read only: every policy without windows of its own shares it.
var defaultWindows = map[string]Window{
	"p0": {500 * time.Millisecond, 5 * time.Second},
	"p1": {2 * time.Second, 30 * time.Second},
	"p2": {5 * time.Second, time.Minute},
}

// Policy says how patient a caller is. The zero value is the default policy: any
// field that is zero or negative counts as its default.
type Policy struct {
	// Attempts is how often a request is sent at most, the first send included.
	Attempts int
	// Deadline is how long the whole may take, from before the first send. It bounds
	// the start of the last send, not its answer.
	Deadline time.Duration
	// Base and Cap shape full jitter: before retry n, counted from 0, the wait is
	// uniform in 0..min(Cap, Base*2^n). A larger Base eases a struggling server
	// sooner and costs a lone caller more.
	Base, Cap time.Duration
	// Windows are the waits by name of class. Nil means the defaults (p0 0.5-5 s,
	// p1 2-30 s, p2 5-60 s); an empty map means full jitter for everyone.
	Windows map[string]Window
}

// Default returns the policy that the zero value stands for, spelled out.
func Default() Policy {
	p := Policy{}.filled()
	windows := make(map[string]Window, len(defaultWindows))
	for class, w := range defaultWindows {
		windows[class] = w
	}
	p.Windows = windows
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
