package metrics

import (
	"sync"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/latest"
)

// maxTickets is how many tickets are remembered; the oldest are dropped first. At a thousand tickets a second that is a
// minute.
const maxTickets = 1 << 16

// tickets remembers the class of each ticket and whether it was for a retry, because later events carry only the id. It
// also remembers that usage was reported, so that it counts once.
type tickets struct {
	mu  sync.Mutex
	all latest.Map[taken]
}

// taken is what is remembered of a ticket.
type taken struct {
	class   string
	retry   bool
	settled bool // its usage was reported
}

// note remembers a granted ticket.
func (t *tickets) note(e *inspect.Event) {
	if e.Ticket == "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.Put(e.Ticket, taken{class: e.Class, retry: e.Retry}, maxTickets)
}

// fill completes an event about a ticket with its class and retry flag. It returns whether the usage was reported
// before; with settle it records that it is reported now.
func (t *tickets) fill(e *inspect.Event, settle bool) (again bool) {
	if e.Ticket == "" {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.all.Get(e.Ticket)
	if e.Class == "" {
		e.Class, e.Retry = k.class, e.Retry || k.retry
	}
	again = k.settled
	if settle && !again {
		k.settled = true
		t.all.Put(e.Ticket, k, maxTickets)
	}
	return again
}
