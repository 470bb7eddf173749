package redisstore

import (
	"context"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// Post implements [sharedlog.Log].
func (l *log) Post(ctx context.Context, process uint64, at sharedlog.Position) ([]sharedlog.Survivor, error) {
	if l.bad != nil {
		return nil, l.bad
	}
	reply, err := l.run(ctx, postScript, []string{l.posts()}, strconv.FormatUint(process, 10), at.String(), millis(sharedlog.KeepPost))
	if err != nil {
		return nil, err
	}
	list, err := reply.ToArray()
	if err != nil || len(list) != 3 {
		return nil, l.odd("the script returned something else")
	}
	now, err := list[0].AsInt64()
	words, err2 := list[1].AsStrSlice()
	fresh, err3 := list[2].AsInt64()
	if err != nil || err2 != nil || err3 != nil {
		return nil, l.odd("the script returned something else")
	}
	all, err := readPosts(words, store.Time(now))
	if err != nil {
		return nil, l.odd("the hash " + l.posts() + " is damaged")
	}
	for i := range all {
		all[i].New = all[i].Process == process && fresh == 1
	}
	return all, nil
}

// readPosts reads the fields of a hash, each a process, with the time and the position that it has posted, and returns those
// that count.
func readPosts(words []string, now store.Time) (all []sharedlog.Survivor, err error) {
	for pair := range slices.Chunk(words, 2) {
		who, err := strconv.ParseUint(pair[0], 10, 64)
		stamp, position, _ := strings.Cut(pair[len(pair)-1], " ")
		posted, err2 := strconv.ParseInt(stamp, 10, 64)
		where, err3 := sharedlog.ParsePosition(position)
		if err != nil || err2 != nil || err3 != nil {
			return nil, sharedlog.ErrDamaged
		}
		if store.Time(posted) > now.Add(-sharedlog.KeepPost) {
			all = append(all, sharedlog.Survivor{Process: who, At: where})
		}
	}
	sharedlog.SortSurvivors(all)
	return all[:min(len(all), sharedlog.MaxPosts)], nil
}

// Publish implements [sharedlog.Log].
func (l *log) Publish(ctx context.Context, processes ...uint64) error {
	if l.bad != nil || len(processes) == 0 {
		return l.bad
	}
	commands := make([]rueidis.Completed, len(processes))
	for i, process := range processes {
		commands[i] = l.client.B().Publish().Channel(l.channel(process)).Message("").Build()
	}
	return l.each(ctx, commands...)
}

// each sends commands whose replies only matter if they are errors.
func (l *log) each(ctx context.Context, commands ...rueidis.Completed) error {
	got, err := l.do(ctx, commands...)
	if err != nil {
		return err
	}
	for i := range got {
		if err := got[i].Error(); err != nil {
			return l.fail(err)
		}
	}
	return nil
}

// ear is the connection for wake-ups. It is another one than that of calls, which are quicker on a connection that nobody
// listens to.
type ear struct {
	client rueidis.Client
	err    error
	ready  chan struct{} // closed when client or err is set
}

// listen returns the client for wake-ups, and makes it for the first caller.
func (c *conn) listen(ctx context.Context) (rueidis.Client, error) {
	c.mu.Lock()
	e := c.ear
	if e == nil {
		e = &ear{ready: make(chan struct{})}
		c.ear = e
		c.busy.Go(func() {
			defer close(e.ready)
			if e.client, e.err = c.newClient(); e.err != nil && e.client != nil {
				e.client.Close()
			}
		})
	}
	c.mu.Unlock()
	select {
	case <-e.ready:
		if e.err == nil {
			return e.client, nil
		}
		c.mu.Lock()
		if c.ear == e && !c.ended {
			c.ear = nil // the next caller tries again
		}
		c.mu.Unlock()
		return nil, c.fail(e.err)
	case <-ctx.Done():
		return nil, c.fail(ctx.Err())
	}
}

// Between attempts to subscribe again.
const (
	firstAgain = 50 * time.Millisecond
	lastAgain  = 2 * time.Second
)

// Watch implements [sharedlog.Log].
func (l *log) Watch(ctx context.Context, process uint64) (<-chan struct{}, error) {
	if l.bad != nil {
		return nil, l.bad
	}
	if err := l.enter(ctx); err != nil {
		return nil, err
	}
	client, err := l.listen(ctx)
	if err != nil {
		l.busy.Done()
		return nil, err
	}
	woken := make(chan struct{}, 1)
	w := &watch{conn: l.conn, client: client, channels: []string{l.channel(process), l.everybody()}, woken: woken, first: make(chan error, 1)}
	l.mu.Lock()
	for _, channel := range w.channels {
		l.watched[channel]++
	}
	l.mu.Unlock()
	go w.run(ctx)
	select {
	case err := <-w.first:
		if err != nil {
			return nil, err
		}
		return woken, nil
	case <-ctx.Done():
		return nil, l.fail(ctx.Err())
	case <-l.life.Done():
		return nil, l.fail(l.gone(nil))
	}
}

// watch is one subscription.
type watch struct {
	*conn
	client   rueidis.Client
	channels []string
	first    chan error // the outcome of the first attempt

	subscribed atomic.Bool
	mu         sync.Mutex // guards woken, which is nil when it was closed
	woken      chan struct{}
}

// run keeps the subscription until ctx or the conn ends.
func (w *watch) run(ctx context.Context) {
	defer w.busy.Done()
	defer w.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.life, cancel)()
	ctx = rueidis.WithOnSubscriptionHook(ctx, func(s rueidis.PubSubSubscription) {
		if s.Kind != "subscribe" {
			return
		}
		if w.subscribed.Swap(true) {
			w.hint() // some may have been lost
			return
		}
		w.first <- nil
	})
	for delay := firstAgain; ; delay = min(2*delay, lastAgain) {
		began := time.Now()
		err := w.client.Receive(ctx, w.client.B().Subscribe().Channel(w.channels...).Build(), func(rueidis.PubSubMessage) { w.hint() })
		if ctx.Err() != nil {
			return
		}
		if err == nil { // the end of another watch unsubscribed the channel
			delay = firstAgain
			continue
		}
		if !w.subscribed.Load() {
			w.first <- w.fail(err)
			return
		}
		if time.Since(began) > lastAgain {
			delay = firstAgain
		}
		if !w.pause(ctx, delay/2+rand.N(delay)) { //nolint:gosec // it spreads, it guards nothing
			return
		}
	}
}

func (w *watch) pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (w *watch) close() {
	w.mu.Lock()
	close(w.woken)
	w.woken = nil
	w.mu.Unlock()
	w.conn.mu.Lock()
	var last []string
	for _, channel := range w.channels {
		if w.watched[channel]--; w.watched[channel] == 0 {
			delete(w.watched, channel)
			last = append(last, channel)
		}
	}
	ended := w.ended
	w.conn.mu.Unlock()
	if len(last) > 0 && !ended { // A watch that begins at this moment subscribes again. In a Cluster another node may be asked, in vain.
		ctx, cancel := context.WithTimeout(context.Background(), w.address.Timeout)
		defer cancel()
		// Without the connection there is no subscription either.
		_ = w.client.Do(ctx, w.client.B().Unsubscribe().Channel(last...).Build()).Error()
	}
}

func (w *watch) hint() {
	w.mu.Lock()
	defer w.mu.Unlock()
	select {
	case w.woken <- struct{}{}:
	default:
	}
}
