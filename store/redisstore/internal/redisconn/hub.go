package redisconn

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/redis/rueidis"
)

// How long to wait before a lost subscription is tried again: from first on, twice as long
// each time, with jitter, because a whole fleet may have lost the same server.
const (
	firstAgain = 20 * time.Millisecond
	lastAgain  = time.Second
)

// hub holds the one connection that all messages come in on. Whoever wants a channel puts itself
// into wanted; a goroutine makes the connection's channels the same as those.
type hub struct {
	link *Link
	wake chan struct{} // something is in changed
	done chan struct{} // the goroutine has ended; nil if it never began

	mu      sync.Mutex
	closed  bool
	wanted  map[string][]*subscriber // slices are replaced, never changed
	changed map[string]struct{}      // channels to look at
}

type subscriber struct {
	got    func(message string)
	missed func()
	ready  chan error // gets the outcome of the first attempt
	heard  bool       // it has been given; under the hub's mu
}

func newHub(l *Link) *hub {
	return &hub{link: l, wake: make(chan struct{}, 1), wanted: map[string][]*subscriber{}, changed: map[string]struct{}{}}
}

// Subscribe calls got with every message that comes in on a channel, until cancel is called.
// It returns when the server has confirmed, or when ctx ends, or when the server refuses.
//
// A connection that is lost is made again. Messages sent in the meantime are lost: missed is
// called when the channel is heard again, to have a look. It may be nil.
//
// Both are called from goroutines that serve all channels of the link, over one connection: they
// must not block. A call that had begun may still be under way when cancel returns.
func (l *Link) Subscribe(ctx context.Context, channel string, got func(message string), missed func()) (cancel func(), err error) {
	s := &subscriber{got: got, missed: missed, ready: make(chan error, 1)}
	cancel = sync.OnceFunc(func() { l.hub.remove(channel, s) })
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

func (h *hub) remove(channel string, s *subscriber) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(channel, s)
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

// look has the goroutine look at a channel.
func (h *hub) look(channel string) {
	h.changed[channel] = struct{}{}
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// close ends the goroutine. The link's life is over by then.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	done := h.done
	h.mu.Unlock()
	if done != nil {
		<-done
	}
}

// deliver is called by the connection's reader.
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
	pause := firstAgain
	for life.Err() == nil {
		if !h.begin() {
			select {
			case <-h.wake:
			case <-life.Done():
			}
			continue
		}
		began := time.Now()
		worked, err := h.session(life)
		if err == nil {
			continue
		}
		if !worked {
			h.fail(err)
		}
		if time.Since(began) > lastAgain {
			pause = firstAgain
		}
		select {
		case <-time.After(pause/2 + rand.N(pause)):
		case <-h.wake: // somebody new, who is not to wait for that
		case <-life.Done():
		}
		pause = min(2*pause, lastAgain)
	}
}

// begin reports whether a connection is needed. It will have to be told of every channel.
func (h *hub) begin() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.changed)
	for channel := range h.wanted {
		h.changed[channel] = struct{}{}
	}
	return len(h.wanted) > 0
}

// session serves one connection until it breaks, or until nobody wants it any more: then it
// returns nil.
func (h *hub) session(life context.Context) (worked bool, err error) {
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

// maxNamed is how many channels are named in one go.
const maxNamed = 128

// settle makes the channels of the connection those that are wanted. It reports whether one
// was refused that had been heard before: it is tried again. The error is about the connection.
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

// differ takes some of the changed channels, and puts them where they belong. It reports
// whether there were any.
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

// tell gives a subscriber the outcome of its first attempt. It reports whether it had it already.
func (h *hub) tell(s *subscriber, err error) (before bool) {
	if s.heard {
		return true
	}
	s.heard = true
	s.ready <- err
	return false
}

// heard is called when a connection has begun to hear a channel.
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

// refuse tells those who wait for a channel that they cannot have it. It reports whether there are
// others, who had it.
func (h *hub) refuse(channel string, err error) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.wanted[channel] {
		if !h.tell(s, err) {
			h.drop(channel, s)
		}
	}
	if len(h.wanted[channel]) == 0 {
		return false
	}
	h.changed[channel] = struct{}{}
	return true
}

// fail tells all who wait for a channel that there is no connection. Those who come later are in
// wake.
func (h *hub) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for channel, all := range h.wanted {
		for _, s := range all {
			if !h.tell(s, err) {
				h.drop(channel, s)
			}
		}
	}
	select {
	case <-h.wake:
	default:
	}
}
