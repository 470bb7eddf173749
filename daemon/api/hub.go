package api

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/inspect"
)

const (
	maxListeners = 256
	kept         = 2048 // events for slow listeners and for those that come back
	atOnce       = 64   // events that a listener takes at a time
)

// Hub passes events to listeners. It never waits for a listener: it keeps the latest events, and each listener reads
// on where it was.
type Hub struct {
	mu   sync.Mutex
	all  map[*Listener]bool
	ring []inspect.Event // nil until the first listener comes
	next int64           // number of the next event
	run  string          // part of each id: numbers of another run mean nothing here
	done chan struct{}
	over bool
}

// NewHub returns a hub without listeners.
func NewHub() *Hub {
	return &Hub{all: map[*Listener]bool{}, next: 1, run: rand.Text()[:8], done: make(chan struct{})}
}

// Listener receives events. Close it when done.
type Listener struct {
	// Wake receives a value when there are events to take.
	Wake chan struct{}
	hub  *Hub
	at   int64 // number of the event to take next
}

// Add passes an event to every listener.
func (h *Hub) Add(e inspect.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ring == nil {
		return // without a listener there is no id to come back with
	}
	h.ring[h.next%kept] = e
	h.next++
	for l := range h.all {
		l.wake()
	}
}

func (l *Listener) wake() {
	select {
	case l.Wake <- struct{}{}:
	default: // it will look
	}
}

// Listen adds a listener for the events after the one with the id after, which another listener had. An empty id, and
// one of an earlier run of the daemon, mean the events from now on. It fails when the hub is closed or has too many
// listeners.
func (h *Hub) Listen(after string) (*Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, &Problem{Status: http.StatusServiceUnavailable, Detail: "the daemon is shutting down"}
	}
	if len(h.all) >= maxListeners {
		return nil, &Problem{Status: http.StatusServiceUnavailable, Detail: "too many event listeners"}
	}
	if h.ring == nil {
		h.ring = make([]inspect.Event, kept)
	}
	l := &Listener{Wake: make(chan struct{}, 1), hub: h, at: h.next}
	if n, ok := h.number(after); ok {
		l.at = n + 1
		l.wake()
	}
	h.all[l] = true
	return l, nil
}

// number reads an id.
func (h *Hub) number(id string) (int64, bool) {
	run, text, _ := strings.Cut(id, "-")
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && run == h.run && n > 0 && n < h.next
}

// Told is an event with its id.
type Told struct {
	ID    string // empty for an event of the listener's own
	Event inspect.Event
}

// Take returns the next events, and whether there are more. A listener that was too slow, or away for too long, gets an
// event with the number lost first.
func (l *Listener) Take() (list []Told, more bool) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if lost := h.next - kept - l.at; lost > 0 {
		l.at += lost
		list = append(list, Told{Event: inspect.Event{Time: h.ring[l.at%kept].Time, Kind: inspect.EventDropped, Count: lost}})
	}
	for ; l.at < h.next && len(list) < atOnce; l.at++ {
		list = append(list, Told{ID: h.run + "-" + strconv.FormatInt(l.at, 10), Event: h.ring[l.at%kept]})
	}
	return list, l.at < h.next
}

// Close removes the listener.
func (l *Listener) Close() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	delete(l.hub.all, l)
}

// Done returns a channel that is closed when no more events will come.
func (h *Hub) Done() <-chan struct{} { return h.done }

// Close ends the hub; listeners learn it from Done.
func (h *Hub) Close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.over = true
		close(h.done)
	}
}
