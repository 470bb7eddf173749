package demo

import (
	"sync"
	"time"
)

// State is how far an agent is, as it has seen it itself. An agent prints one as a line of JSON whenever it
// has changed.
type State struct {
	Done      int `json:"done"`      // calls that were answered
	Waiting   int `json:"waiting"`   // calls that were begun and are not answered
	Sends     int `json:"sends"`     // requests, repeated ones included
	Throttled int `json:"throttled"` // answers with 429
	Failed    int `json:"failed"`    // sends that came to nothing for another reason
	// Longest and Total are the times from a call's first send to its answer.
	Longest time.Duration `json:"longest"`
	Total   time.Duration `json:"total"`
	// Ended is set in the last line. Error is why it ended before all was done.
	Ended bool   `json:"ended"`
	Error string `json:"error"`
}

// tally is a State that workers share.
type tally struct {
	mu      sync.Mutex
	s       State
	changed bool
}

func (t *tally) change(f func(s *State)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.s)
	t.changed = true
}

// take returns the state, and whether it is another one than the last time.
func (t *tally) take() (State, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.changed
	t.changed = false
	return t.s, changed
}
