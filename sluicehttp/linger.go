package sluicehttp

import (
	"context"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// lingering holds the tickets of aborted responses that the provider may still be working on. Their concurrency is not
// free yet.
type lingering struct {
	mu   sync.Mutex
	list map[*stay]struct{}
}

type stay struct {
	ticket  sluice.Ticket
	amounts []sluice.Amount
	timer   *time.Timer
}

// leave ends a ticket whose client has gone, after the time that the provider will probably still need. A timer closes
// the ticket, because closing settles the usage. The ticket's TTL is shortened too, so that its concurrency is freed
// soon even if this process ends first.
func (t *Transport) leave(ticket sluice.Ticket, amounts []sluice.Amount, after time.Duration) {
	if t.Abort || !t.places || ticket.ID() == "" {
		t.end(ticket, amounts)
		return
	}
	_ = ticket.Keep(context.Background(), after+leastLinger)
	s := &stay{ticket: ticket, amounts: amounts}
	l := &t.lingering
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = map[*stay]struct{}{}
	}
	l.list[s] = struct{}{}
	s.timer = time.AfterFunc(after, func() {
		if l.remove(s) {
			_ = s.ticket.Close(s.amounts...)
		}
	})
}

// end ends a ticket now. Without amounts the request counts as unanswered: it may still be on its way.
func (t *Transport) end(ticket sluice.Ticket, amounts []sluice.Amount) {
	if amounts == nil {
		_ = ticket.CloseUnanswered()
		return
	}
	_ = ticket.Close(amounts...)
}

func (l *lingering) remove(s *stay) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ok := l.list[s]
	delete(l.list, s)
	return ok
}

// settle ends all tickets now.
func (l *lingering) settle() {
	l.mu.Lock()
	list := l.list
	l.list = nil
	l.mu.Unlock()
	for s := range list {
		s.timer.Stop()
		_ = s.ticket.Close(s.amounts...)
	}
}
