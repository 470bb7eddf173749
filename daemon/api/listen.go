package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

const (
	// eventWithin is how long a listener may take to read the pending events.
	eventWithin = 10 * time.Second
	// aliveEvery is how often a listener gets a comment while nothing happens.
	aliveEvery = 15 * time.Second
)

// events sends events as they happen, as server-sent events. A listener that comes back states the id that it had last
// (Last-Event-ID), and gets what it missed. One that is too slow loses some, and is told how many.
func (a *API) events(c *call) error {
	f, ok := c.w.(http.Flusher)
	if !ok || a.Events == nil {
		return &Problem{Status: http.StatusNotImplemented, Detail: "there are no events here"}
	}
	l, err := a.Events.Listen(c.r.Header.Get("Last-Event-ID"))
	if err != nil {
		return err
	}
	defer l.Close()
	c.done = true
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	c.w.WriteHeader(http.StatusOK)
	f.Flush()
	if c.r.Method == http.MethodHead {
		return nil
	}
	alive := time.NewTicker(aliveEvery)
	defer alive.Stop()
	rc := http.NewResponseController(c.w)
	for {
		// A listener that does not read must not stay forever.
		_ = rc.SetWriteDeadline(time.Now().Add(aliveEvery + eventWithin))
		select {
		case <-c.r.Context().Done():
			return nil
		case <-a.Events.Done():
			return nil
		case <-alive.C:
			if _, err := fmt.Fprint(c.w, ": alive\n\n"); err != nil {
				return nil //nolint:nilerr // it is gone
			}
		case <-l.Wake:
			list, more := l.Take()
			if more {
				l.wake()
			}
			for _, t := range list {
				if t.write(c.w) != nil {
					return nil // it is gone
				}
			}
		}
		f.Flush()
	}
}

// write sends an event. Its error means that the listener is gone.
func (t *Told) write(w http.ResponseWriter) error {
	data, err := json.Marshal(t.Event)
	if err != nil {
		return nil //nolint:nilerr // the next event can still be sent
	}
	if t.ID != "" {
		if _, err := fmt.Fprintf(w, "id: %s\n", t.ID); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", t.Event.Kind, data)
	return err
}
