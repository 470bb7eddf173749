package api

import (
	"net/http"
	"sync"

	"github.com/sluicehq/sluice/inspect"
)

const (
	maxListeners = 256
	queued       = 256 // events for one slow listener
)

// Hub passes events to listeners. It never waits for a listener.
type Hub struct {
	mu   sync.Mutex
	all  map[*Listener]bool
	done chan struct{}
	over bool
}

// NewHub returns a hub without listeners.
func NewHub() *Hub { return &Hub{all: map[*Listener]bool{}, done: make(chan struct{})} }

// Listener receives events from C. Close it when done.
type Listener struct {
	C    chan inspect.Event
	hub  *Hub
	lost int64
}

// Add passes an event to every listener. A listener whose queue is full loses the event, and later gets an event with
// the number lost.
func (h *Hub) Add(e inspect.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for l := range h.all {
		if l.lost > 0 && len(l.C) < cap(l.C)-1 {
			l.C <- inspect.Event{Time: e.Time, Kind: inspect.EventDropped, Count: l.lost}
			l.lost = 0
		}
		select {
		case l.C <- e:
		default:
			l.lost++
		}
	}
}

// Listen adds a listener. It fails when the hub is closed or has too many listeners.
func (h *Hub) Listen() (*Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return nil, &Problem{Status: http.StatusServiceUnavailable, Detail: "the daemon is shutting down"}
	}
	if len(h.all) >= maxListeners {
		return nil, &Problem{Status: http.StatusServiceUnavailable, Detail: "too many event listeners"}
	}
	l := &Listener{C: make(chan inspect.Event, queued), hub: h}
	h.all[l] = true
	return l, nil
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
