package storeapi

import (
	"maps"
	"sync"
	"time"
)

// numbers remembers up to where the tickets of sessions are numbered. A store may give the number of a session that has ended to
// another one, and callers number their tickets themselves: a number that was used must not come again while the store
// remembers it.
type numbers struct {
	mu   sync.Mutex
	last map[sessionKey]used
}

type sessionKey struct {
	pool    string
	session uint64
}

type used struct {
	up uint64
	at time.Time
}

// numbersFor is for longer than any store remembers a session that is not used.
const numbersFor = time.Hour

// maxNumbers is how many are kept before the old ones are looked for.
const maxNumbers = 4096

// of returns the last number that was used in a session.
func (n *numbers) of(k sessionKey) uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last[k].up
}

// note remembers it.
func (n *numbers) note(k sessionKey, up uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	now := time.Now()
	if n.last == nil {
		n.last = map[sessionKey]used{}
	}
	if len(n.last) >= maxNumbers && len(n.last)&(len(n.last)-1) == 0 { // now and then
		maps.DeleteFunc(n.last, func(_ sessionKey, u used) bool { return now.Sub(u.at) > numbersFor })
	}
	n.last[k] = used{max(up, n.last[k].up), now}
}
