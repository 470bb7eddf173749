package remotestore

import (
	"bufio"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// listen starts listening for the daemon's notices about waiting requests.
func (s *Store) listen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.streams && !s.closed {
		s.streams = true
		s.running.Go(s.listening)
	}
}

// listening keeps a stream open. Whenever it breaks, all waiting requests ask again, because notices may have been
// lost.
func (s *Store) listening() {
	pause, again := firstTry, false
	for s.life.Err() == nil {
		heard, err := s.stream(again)
		if heard {
			pause, again = firstTry, true
		}
		switch {
		case errors.Is(err, errGone):
			// The next request renews it.
		case errors.Is(err, errSilent) && s.life.Err() == nil:
			s.lose(err)
		}
		if s.life.Err() == nil {
			s.tellAll()
			sleep.For(s.life, pause/2+rand.N(pause)) //nolint:gosec // it spreads, it guards nothing
			pause = min(2*pause, lastTry)
		}
	}
}

// stream listens until an error occurs. It reports whether anything was received. again says that there was a stream
// before.
func (s *Store) stream(again bool) (heard bool, err error) {
	s.mu.Lock()
	client, lost := s.client, s.lost
	s.mu.Unlock()
	if lost != nil {
		return false, nil
	}
	ctx, cancel := context.WithCancel(s.life)
	defer cancel()
	quiet := time.AfterFunc(wire.QuietAfter, cancel)
	defer quiet.Stop()
	resp, err := s.daemon.send(ctx, http.MethodGet, "/clients/"+client+"/watch", nil, "")
	if err != nil {
		return false, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	r := bufio.NewReader(resp.Body)
	for {
		n, err := wire.ReadNotice(r)
		if err != nil {
			return heard, nil // the next call finds out whether the daemon is gone
		}
		if !heard && again { // notices of the previous stream may be lost
			s.tellAll()
		}
		heard = true
		quiet.Reset(wire.QuietAfter)
		if n.Pool != 0 {
			s.notice(client, &n)
		}
	}
}

// notice passes a notice of the daemon to its session.
func (s *Store) notice(client string, n *wire.Notice) {
	s.mu.Lock()
	h := s.byName[n.Pool]
	same := s.client == client
	s.mu.Unlock()
	if h == nil || !same {
		return
	}
	if n.All {
		h.tellAll()
	} else {
		h.mu.Lock()
		for _, id := range n.IDs {
			if _, waits := h.waiting[id]; !waits && h.busy { // the answer that says it waits is still in flight
				h.early[id] = struct{}{}
			}
			delete(h.waiting, id)
		}
		h.mu.Unlock()
		h.tell(n.IDs)
	}
	h.mu.Lock()
	h.heard += len(n.IDs)
	h.mu.Unlock()
}

// tellAll makes all waiting requests ask again.
func (s *Store) tellAll() {
	for _, h := range s.all() {
		h.tellAll()
	}
}
