package metrics

import (
	"sync"

	"github.com/sluicehq/sluice/inspect"
)

// maxTickets is how many tickets are remembered; the oldest are forgotten first. At a thousand a second it is a minute.
const maxTickets = 1 << 16

// tickets remembers who took a ticket, because what is told of it later, by its id alone, does not say: its class, and
// whether it was for a retry. And it remembers that its usage was told, because a second time must not count.
type tickets struct {
	mu   sync.Mutex
	all  map[string]taken
	line []string // the ids in all, in a ring, oldest at next once it is full
	next int
}

// taken is what is known of a ticket.
type taken struct {
	class   string
	retry   bool
	settled bool // its usage was told
}

// note remembers a ticket that was taken.
func (t *tickets) note(e *inspect.Event) {
	if e.Ticket == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(e.Ticket, taken{class: e.Class, retry: e.Retry})
}

// fill completes an event about a ticket with what is known of it. It reports whether its usage had been told before,
// and with settle that it is told now.
func (t *tickets) fill(e *inspect.Event, settle bool) (again bool) {
	if e.Ticket == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.all[e.Ticket]
	if e.Class == "" {
		e.Class, e.Retry = k.class, e.Retry || k.retry
	}
	again = k.settled
	if settle && !again {
		k.settled = true
		t.put(e.Ticket, k)
	}
	return again
}

// put keeps a ticket, in the place of the oldest if there is no room.
func (t *tickets) put(id string, k taken) {
	if t.all == nil {
		t.all = map[string]taken{}
	}
	if _, known := t.all[id]; !known {
		if len(t.line) < maxTickets {
			t.line = append(t.line, id)
		} else {
			delete(t.all, t.line[t.next])
			t.line[t.next] = id
			t.next = (t.next + 1) % maxTickets
		}
	}
	t.all[id] = k
}
