package remotestore

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// request is what one caller asks. All but ops is under the handle's lock until done is closed.
type request struct {
	ops  []store.Op // copies: the caller may be gone when they are answered
	err  error
	done chan struct{}
	over bool // it was answered
	gone bool // nobody waits for the answer any more
}

// batch is what goes to the daemon at once.
type batch struct {
	seq     uint64
	session uint64
	ops     []store.Op
	reqs    []*request

	doubtful bool // it was sent and not answered
}

// maxTogether bounds a batch of several requests.
const maxTogether = 1024

// maxLater bounds what the daemon is told when it is back; else tickets end with their time to live.
const maxLater = 4096

// enqueue has a request sent, together with what others ask meanwhile.
func (h *handle) enqueue(r *request) error {
	if h.store.isLost() {
		return errLost
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return store.ErrClosed
	}
	h.pending = append(h.pending, r)
	h.start()
	return nil
}

// start has what there is sent. The handle is locked.
func (h *handle) start() {
	if !h.busy {
		h.busy = true
		h.store.running.Go(h.send)
	}
}

// abandon tells that a caller is gone. It reports false if its request was answered before.
func (h *handle) abandon(r *request) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	r.gone = !r.over
	return r.gone
}

// send sends batches until there is nothing left to send.
func (h *handle) send() {
	for {
		b := h.next()
		if b == nil {
			return
		}
		if b.doubtful {
			h.resolve(b)
		} else {
			h.carryOut(b)
		}
	}
}

// next makes the next batch: first what was left in doubt, then what has to be said, then what is asked.
func (h *handle) next() *batch {
	lost := h.store.isLost()
	h.mu.Lock()
	defer h.mu.Unlock()
	if lost {
		for _, r := range h.pending {
			h.finish(r, errLost)
		}
		h.pending = nil
	}
	switch {
	case !lost && h.doubt != nil:
		return h.doubt
	case !lost && len(h.later) > 0 && (!h.resting || h.closed):
		n := min(len(h.later), maxTogether)
		b := &batch{ops: h.later[:n:n]}
		if h.later = h.later[n:]; len(h.later) == 0 {
			h.later = nil
		}
		return b
	case len(h.pending) > 0:
		return h.together()
	}
	h.busy = false
	clear(h.early)
	h.free.Broadcast()
	return nil
}

// together takes as many requests as go well in a batch. The handle is locked.
func (h *handle) together() *batch {
	b := &batch{}
	for _, r := range h.pending {
		if len(b.reqs) > 0 && len(b.ops)+len(r.ops) > maxTogether {
			break
		}
		b.ops = append(b.ops, r.ops...)
		b.reqs = append(b.reqs, r)
	}
	h.pending = h.pending[len(b.reqs):]
	if len(h.pending) == 0 {
		h.pending = nil
	}
	return b
}

// number gives a batch its place. The handle is locked.
func (h *handle) number(b *batch) {
	h.seq++
	b.seq, b.session = h.seq, h.session
	for i := range b.ops {
		if b.ops[i].ID.Session == 0 {
			b.ops[i].ID.Session = h.session
		}
	}
}

// carryOut sends a batch, and again if the daemon has forgotten this process, and hands out the results.
func (h *handle) carryOut(b *batch) {
	err := h.reach(func(ctx context.Context, path string) error {
		h.mu.Lock()
		if b.seq != 0 {
			h.again(b)
		}
		h.number(b)
		h.mu.Unlock()
		return h.post(ctx, path, b)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.done(b, err)
}

// reach does something with the pool, and once more if the daemon has forgotten this process.
func (h *handle) reach(f func(ctx context.Context, path string) error) error {
	var err error
	for again := false; ; again = true {
		ctx, cancel := context.WithTimeout(h.store.life, answerWithin)
		var path string
		if path, err = h.path(ctx); err == nil {
			err = f(ctx, path)
		}
		cancel()
		if errors.Is(err, errSilent) {
			h.store.lose(err)
		}
		if !errors.Is(err, errGone) {
			return err
		}
		if again {
			return unavailable(err)
		}
		h.mu.Lock()
		client := h.client
		h.mu.Unlock()
		if err := h.store.renew(h.store.life, client); err != nil {
			return err
		}
	}
}

// again readies a batch for another session. The handle is locked.
func (h *handle) again(b *batch) {
	for i := range b.ops {
		if op := &b.ops[i]; op.Kind == store.OpAcquire && op.ID.Session == b.session {
			op.ID.Session = 0
		}
	}
}

// resolve finds out what became of a batch whose answer was lost: an empty one takes its place, if that is free. What the
// batch has got is given back, because its callers were told that they have nothing.
func (h *handle) resolve(b *batch) {
	applied := false
	err := h.reach(func(ctx context.Context, path string) error {
		h.mu.Lock()
		same := h.session == b.session
		h.mu.Unlock()
		if !same {
			return nil // what it has got there ends with its time to live
		}
		text, err := h.store.link.apply(ctx, path+"/apply?seq="+strconv.FormatUint(b.seq, 10), oplog.AppendApply(nil, 1, nil))
		if err != nil {
			return err
		}
		if wire.ReadResults(text, nil) == nil {
			return nil
		}
		applied = true
		return wire.ReadResults(text, b.ops)
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	if errors.Is(err, errSilent) {
		return // it is lost again
	}
	h.doubt = nil
	if err != nil && h.session == b.session {
		h.seq = b.seq - 1 // nothing took its place
	}
	for i := range b.ops {
		switch op := &b.ops[i]; {
		case !applied:
			h.sayLater(*op)
		case op.Kind == store.OpAcquire && gives(op):
			h.sayLater(store.Op{Kind: store.OpCancel, ID: op.Result.ID})
		}
	}
}

// post sends a batch, and once more if it is not known whether it has arrived.
func (h *handle) post(ctx context.Context, path string, b *batch) error {
	body := oplog.AppendApply(nil, 1, b.ops)
	if len(body) == 0 || len(body) > wire.MaxBody {
		return errTooLarge
	}
	path += "/apply?seq=" + strconv.FormatUint(b.seq, 10)
	for first := true; ; first = false {
		sent := time.Now()
		text, err := h.store.link.apply(ctx, path, body)
		if errors.Is(err, errSilent) && first && ctx.Err() == nil {
			continue // a connection that the daemon has closed meanwhile, most likely
		}
		if err != nil && !first && !errors.Is(err, errGone) {
			return silent(err) // what became of it the first time is not known
		}
		if err != nil {
			return err
		}
		if err := wire.ReadResults(text, b.ops); err != nil {
			return unavailable(err)
		}
		if len(b.ops) > 0 {
			h.clock.Store(&moment{b.ops[0].Result.Now, sent})
		}
		return nil
	}
}

// done hands out what became of a batch. The handle is locked.
func (h *handle) done(b *batch, err error) {
	if errors.Is(err, errSilent) {
		h.leave(b)
		return
	}
	if err != nil && b.seq == h.seq && b.session == h.session && b.seq > 0 {
		h.seq-- // it was not carried out
	}
	if errors.Is(err, store.ErrUnavailable) {
		h.keep(b)
		err = store.Kept(err)
	}
	at := 0
	for _, r := range b.reqs {
		n := copy(r.ops, b.ops[at:at+len(r.ops)])
		at += n
		if err == nil {
			h.note(r)
		}
		h.finish(r, err)
	}
}

// keep says later what the daemon did not want to hear, because its store is away. The handle is locked.
func (h *handle) keep(b *batch) {
	h.sayLater(b.ops...)
	if len(h.later) == 0 || h.resting {
		return
	}
	h.resting = true
	h.store.running.Go(func() {
		sleep.For(h.store.life, restFor)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.resting = false; !h.closed {
			h.start()
		}
	})
}

// restFor is how long a daemon whose store is away is not told anything that nobody waits for.
const restFor = time.Second

// leave gives up a batch that was not answered, but may have been carried out. That is found out when the daemon
// is back. The handle is locked.
func (h *handle) leave(b *batch) {
	for _, r := range b.reqs {
		h.finish(r, errLost)
	}
	b.reqs = nil
	if b.seq == 0 { // it has not been sent
		h.sayLater(b.ops...)
		return
	}
	b.doubtful = true
	h.doubt = b
}

// gives reports that an operation has got a ticket, or a place in the queue.
func gives(op *store.Op) bool {
	return op.Result.State == store.Waiting || op.Result.State == store.Granted && !op.Spent
}

// note takes in what became of a request. The handle is locked.
func (h *handle) note(r *request) {
	for i := range r.ops {
		op := &r.ops[i]
		switch op.Kind {
		case store.OpAcquire, store.OpRenew, store.OpPoll, store.OpCancel, store.OpClose:
		default:
			continue
		}
		if op.Result.State == store.Waiting {
			if r.gone {
				h.sayLater(store.Op{Kind: store.OpCancel, ID: op.Result.ID})
				continue
			}
			if _, decided := h.early[op.Result.ID]; !decided {
				h.waiting[op.Result.ID] = struct{}{}
			}
			h.store.listen()
			continue
		}
		delete(h.waiting, op.Result.ID)
		if r.gone && op.Kind == store.OpAcquire && gives(op) {
			h.sayLater(store.Op{Kind: store.OpCancel, ID: op.Result.ID})
		}
	}
}

// finish answers a request. The handle is locked.
func (h *handle) finish(r *request, err error) {
	if r.over {
		return
	}
	r.over, r.err = true, err
	close(r.done)
}

// sayLater has the daemon told something that nobody waits for. The handle is locked.
func (h *handle) sayLater(ops ...store.Op) {
	for _, op := range ops {
		switch op.Kind {
		case store.OpAnswer, store.OpClose, store.OpCancel:
			if len(h.later) < maxLater {
				op.Result = store.Result{}
				if op.ID.Session == 0 {
					op.ID.Session = h.session
				}
				h.later = append(h.later, op)
			}
		}
	}
}

// reopen opens the pool again, for a client that the daemon knows. Those who wait did so in another session: they
// are told to ask again.
func (h *handle) reopen(ctx context.Context, client string) error {
	sent := time.Now()
	opened, err := h.store.open(ctx, client, &h.spec)
	if err != nil {
		return err
	}
	h.mu.Lock()
	if h.client == client { // somebody else did it meanwhile
		h.mu.Unlock()
		return h.store.link.ask(ctx, http.MethodDelete, "/clients/"+client+"/pools/"+strconv.Itoa(opened.Pool), nil, nil)
	}
	h.take(client, &opened, sent)
	h.mu.Unlock()
	h.store.mu.Lock()
	if h.store.client == client {
		h.store.byName[opened.Pool] = h
	}
	h.store.mu.Unlock()
	h.tellAll()
	return nil
}
