package demo

import (
	"sync"
	"time"
)

// State is the progress of an agent. The agent prints it as a line of JSON whenever it changes.
type State struct {
	Done      int `json:"done"`      // calls with a response
	Waiting   int `json:"waiting"`   // calls sent but not answered yet
	Sends     int `json:"sends"`     // requests, retries included
	Throttled int `json:"throttled"` // responses with 429
	Failed    int `json:"failed"`    // sends that failed for another reason
	// Longest and Total are times from a call's first send to its response.
	Longest time.Duration `json:"longest"`
	Total   time.Duration `json:"total"`
	// Ended is set in the last line. Error says why the agent ended before all calls were done.
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

// take returns the state, and whether it has changed since the last call.
func (t *tally) take() (State, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	changed := t.changed
	t.changed = false
	return t.s, changed
}
