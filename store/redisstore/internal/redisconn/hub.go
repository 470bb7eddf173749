package redisconn

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// The pauses between attempts to subscribe again. They double from firstAgain to lastAgain, with jitter because a whole
// fleet may have lost the same server.
const (
	firstAgain = 20 * time.Millisecond
	lastAgain  = time.Second
)

// hub receives the messages of all channels on one connection. Subscribers add themselves to wanted. A goroutine
// subscribes and unsubscribes the connection to match.
type hub struct {
	link *Link
	wake chan struct{} // signals that changed is not empty
	done chan struct{} // closed when the goroutine has ended; nil: it was never started

	mu      sync.Mutex
	closed  bool
	wanted  map[string][]*subscriber // slices are replaced, never changed
	changed map[string]struct{}      // channels that the goroutine has to check
}

type subscriber struct {
	got    func(message string)
	missed func()
	ready  chan error // receives the outcome of the first attempt
	heard  bool       // ready has received it; guarded by hub.mu
}

func newHub(l *Link) *hub {
	return &hub{link: l, wake: make(chan struct{}, 1), wanted: map[string][]*subscriber{}, changed: map[string]struct{}{}}
}

// Subscribe calls got with every message on a channel, until cancel is called. It returns when the server has confirmed
// the subscription or refused it, or when ctx ends.
//
// A lost connection is replaced, but messages sent meanwhile are lost. Subscribe then calls missed, which may be nil, once
// the channel is subscribed again.
//
// got and missed must not block: the goroutines that call them serve all channels of the link. One call of got or missed
// may still be under way when cancel returns.
func (l *Link) Subscribe(ctx context.Context, channel string, got func(message string), missed func()) (cancel func(), err error) {
	s := &subscriber{got: got, missed: missed, ready: make(chan error, 1)}
	cancel = sync.OnceFunc(func() {
		l.hub.mu.Lock()
		defer l.hub.mu.Unlock()
		l.hub.drop(channel, s)
	})
	if !l.hub.add(channel, s) {
		return nil, l.fail(ErrClosed)
	}
	select {
	case err = <-s.ready:
	case <-ctx.Done():
		err = ctx.Err()
	case <-l.wires.life.Done():
		err = ErrClosed
	}
	if err != nil {
		cancel()
		return nil, l.fail(err)
	}
	return cancel, nil
}

func (h *hub) add(channel string, s *subscriber) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.wanted[channel] = append(slices.Clip(h.wanted[channel]), s)
	if h.done == nil {
		h.done = make(chan struct{})
		go h.run()
	}
	h.look(channel)
	return true
}

func (h *hub) drop(channel string, s *subscriber) {
	left := slices.DeleteFunc(slices.Clone(h.wanted[channel]), func(o *subscriber) bool { return o == s })
	if len(left) > 0 {
		h.wanted[channel] = left
		return
	}
	delete(h.wanted, channel)
	h.look(channel)
}

// look makes the goroutine check a channel.
func (h *hub) look(channel string) {
	h.changed[channel] = struct{}{}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// close waits for the goroutine to end. The life of the link has ended before.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	done := h.done
	h.mu.Unlock()
	if done != nil {
		<-done
	}
}

// deliver passes a message to the subscribers of its channel.
func (h *hub) deliver(m rueidis.PubSubMessage) {
	h.mu.Lock()
	to := h.wanted[m.Channel]
	h.mu.Unlock()
	for _, s := range to {
		s.got(m.Message)
	}
}

// run keeps a connection while channels are wanted.
func (h *hub) run() {
	defer close(h.done)
	life := h.link.wires.life
	delay := firstAgain
	for life.Err() == nil {
		if !h.begin() {
			select {
			case <-h.wake:
			case <-life.Done():
			}
			continue
		}
		began := time.Now()
		worked, err := h.serve(life)
		if err == nil {
			continue
		}
		if !worked {
			h.fail(err)
		}
		if time.Since(began) > lastAgain {
			delay = firstAgain
		}
		select {
		case <-time.After(delay/2 + rand.N(delay)):
		case <-h.wake: // a new subscriber does not have to wait for the delay
		case <-life.Done():
		}
		delay = min(2*delay, lastAgain)
	}
}

// begin marks all wanted channels as changed, for a new connection. It reports whether there are any.
func (h *hub) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.changed)
	for channel := range h.wanted {
		h.changed[channel] = struct{}{}
	}
	return len(h.wanted) > 0
}

// serve serves one connection until it breaks, or until no channel is wanted: then it returns a nil error. worked reports
// that the connection was usable.
func (h *hub) serve(life context.Context) (worked bool, err error) {
	client, _ := h.link.client.Dedicate()
	defer client.Close()
	broken := client.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: h.deliver})
	have := map[string]bool{}
	for {
		refused, err := h.settle(client, have)
		if err != nil {
			return worked, err
		}
		if len(have) == 0 && !refused {
			return true, nil
		}
		worked = true
		var again <-chan time.Time
		if refused {
			again = time.After(lastAgain)
		}
		select {
		case <-h.wake:
		case <-again:
		case err, ok := <-broken:
			if !ok || err == nil {
				err = rueidis.ErrClosing
			}
			return worked, err
		case <-life.Done():
			return worked, ErrClosed
		}
	}
}

// maxNamed bounds how many channels one round of settle handles.
const maxNamed = 128

// settle subscribes and unsubscribes the connection until its channels match the wanted ones. refused reports that the
// server refused a channel that had been subscribed before, which needs another try. The error is about the connection.
func (h *hub) settle(client rueidis.DedicatedClient, have map[string]bool) (refused bool, err error) {
	for {
		var subscribe, leave []string
		if !h.differ(have, &subscribe, &leave) {
			return refused, nil
		}
		if len(leave) > 0 {
			if err := client.Do(context.Background(), client.B().Unsubscribe().Channel(leave...).Build()).Error(); err != nil {
				return false, err
			}
			for _, channel := range leave {
				delete(have, channel)
			}
		}
		if len(subscribe) == 0 {
			continue
		}
		commands := make([]rueidis.Completed, len(subscribe))
		for i, channel := range subscribe {
			commands[i] = client.B().Subscribe().Channel(channel).Build()
		}
		for i, result := range client.DoMulti(context.Background(), commands...) {
			switch err := result.Error(); {
			case err == nil:
				have[subscribe[i]] = true
				h.heard(subscribe[i])
			case result.NonRedisError() != nil:
				return false, err
			default:
				refused = h.refuse(subscribe[i], err) || refused
			}
		}
	}
}

// differ takes some of the changed channels and sorts them into those to subscribe and those to leave. It reports whether
// there were any.
func (h *hub) differ(have map[string]bool, subscribe, leave *[]string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	taken := 0
	for channel := range h.changed {
		if taken == maxNamed {
			break
		}
		taken++
		delete(h.changed, channel)
		wanted := len(h.wanted[channel]) > 0
		switch {
		case wanted && have[channel]:
			for _, s := range h.wanted[channel] {
				h.tell(s, nil)
			}
		case wanted:
			*subscribe = append(*subscribe, channel)
		case have[channel]:
			*leave = append(*leave, channel)
		}
	}
	return taken > 0
}

// tell gives a subscriber the outcome of its first attempt, and reports whether it has had one before.
func (h *hub) tell(s *subscriber, err error) (before bool) {
	if s.heard {
		return true
	}
	s.heard = true
	s.ready <- err
	return false
}

// heard tells subscribers that their channel is subscribed, for the first time or again.
func (h *hub) heard(channel string) {
	h.mu.Lock()
	var again []*subscriber
	for _, s := range h.wanted[channel] {
		if h.tell(s, nil) && s.missed != nil {
			again = append(again, s)
		}
	}
	h.mu.Unlock()
	for _, s := range again {
		s.missed()
	}
}

// refuse tells new subscribers of a channel that the server refuses it, and drops them. It reports whether older
// subscribers remain.
func (h *hub) refuse(channel string, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.turnAway(channel, err)
	if len(h.wanted[channel]) == 0 {
		return false
	}
	h.changed[channel] = struct{}{}
	return true
}

// turnAway tells the new subscribers of a channel an error and drops them. The caller holds h.mu.
func (h *hub) turnAway(channel string, err error) {
	for _, s := range h.wanted[channel] {
		if !h.tell(s, err) {
			h.drop(channel, s)
		}
	}
}

// fail tells all new subscribers that there is no connection, and drops them. It clears wake, so that only later
// subscribers cut the delay short.
func (h *hub) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for channel := range h.wanted {
		h.turnAway(channel, err)
	}
	select {
	case <-h.wake:
	default:
	}
}
