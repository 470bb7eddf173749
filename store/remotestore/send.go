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

// request is the batch of one caller. All fields but ops are guarded by the handle's lock until done is closed.
type request struct {
	ops  []store.Op // copies: the caller may be gone when they are answered
	err  error
	done chan struct{}
	over bool // it was answered
	gone bool // the caller no longer waits for the answer
}

// batch is what is sent to the daemon in one request.
type batch struct {
	seq     uint64
	session uint64
	ops     []store.Op
	reqs    []*request

	doubtful bool // it was sent without an answer
}

// maxTogether bounds a batch of several requests.
const maxTogether = 1024

// maxLater bounds the operations kept for a lost daemon. Tickets beyond it expire with their TTL.
const maxLater = 4096

// enqueue queues a request, which is sent together with concurrent ones.
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

// start starts sending if necessary. The handle is locked.
func (h *handle) start() {
	if !h.busy {
		h.busy = true
		h.store.running.Go(h.send)
	}
}

// abandon records that a caller has given up. It returns false if its request was answered before.
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

// next returns the next batch: first the one in doubt, then postponed operations, then requests.
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

// together combines as many requests as fit one batch. The handle is locked.
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

// number gives a batch its sequence number. The handle is locked.
func (h *handle) number(b *batch) {
	h.seq++
	b.seq, b.session = h.seq, h.session
	for i := range b.ops {
		if b.ops[i].ID.Session == 0 {
			b.ops[i].ID.Session = h.session
		}
	}
}

// carryOut sends a batch, and again if the daemon has forgotten this process, and distributes the results.
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

// reach calls f with the pool's path, and once more if the daemon has forgotten this process.
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

// again prepares a batch for another session. The handle is locked.
func (h *handle) again(b *batch) {
	for i := range b.ops {
		if op := &b.ops[i]; op.Kind == store.OpAcquire && op.ID.Session == b.session {
			op.ID.Session = 0
		}
	}
}

// resolve finds out what happened to a batch whose answer was lost. It sends an empty batch with the same number,
// which takes its place if the daemon never got it. Otherwise it gives back what the batch was granted, because its
// callers were told that they got nothing.
func (h *handle) resolve(b *batch) {
	applied := false
	err := h.reach(func(ctx context.Context, path string) error {
		h.mu.Lock()
		same := h.session == b.session
		h.mu.Unlock()
		if !same {
			return nil // what it was granted there expires with its TTL
		}
		text, err := h.store.daemon.apply(ctx, path+"/apply?seq="+strconv.FormatUint(b.seq, 10), oplog.AppendApply(nil, 1, nil))
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
		return // the daemon is lost again
	}
	h.doubt = nil
	if err != nil && h.session == b.session {
		h.seq = b.seq - 1 // the number is still free
	}
	for i := range b.ops {
		switch op := &b.ops[i]; {
		case !applied:
			h.sayLater(*op)
		case isNew(op):
			h.sayLater(store.Op{Kind: store.OpCancel, ID: op.Result.ID})
		}
	}
}

// post sends a batch, and once more if it is not known whether it arrived.
func (h *handle) post(ctx context.Context, path string, b *batch) error {
	body := oplog.AppendApply(nil, 1, b.ops)
	if len(body) == 0 || len(body) > wire.MaxBody {
		return errTooLarge
	}
	path += "/apply?seq=" + strconv.FormatUint(b.seq, 10)
	for first := true; ; first = false {
		sent := time.Now()
		text, err := h.store.daemon.apply(ctx, path, body)
		if errors.Is(err, errSilent) && first && ctx.Err() == nil {
			continue // most likely the daemon has closed the connection
		}
		if err != nil && !first && !errors.Is(err, errGone) {
			return silent(err) // it is unknown what happened the first time
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

// done distributes the results of a batch. The handle is locked.
func (h *handle) done(b *batch, err error) {
	if errors.Is(err, errSilent) {
		h.leave(b)
		return
	}
	if err != nil && b.seq == h.seq && b.session == h.session && b.seq > 0 {
		h.seq-- // it was not applied
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

// keep postpones operations that the daemon refused because its store is unavailable. The handle is locked.
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

// restFor is how long a daemon with an unavailable store gets no postponed operations.
const restFor = time.Second

// leave gives up a batch that was not answered but may have been applied. resolve finds out when the daemon is back.
// The handle is locked.
func (h *handle) leave(b *batch) {
	for _, r := range b.reqs {
		h.finish(r, errLost)
	}
	b.reqs = nil
	if b.seq == 0 { // it was not sent
		h.sayLater(b.ops...)
		return
	}
	b.doubtful = true
	h.doubt = b
}

// gives reports whether an operation got a ticket, or a position in the queue.
func gives(op *store.Op) bool {
	return op.Result.State == store.Waiting || op.Result.State == store.Granted && !op.Spent
}

// isNew reports that an operation has got a ticket whose id its caller learns from the answer. A poll gets one if the daemon has
// granted what waited without its own store.
func isNew(op *store.Op) bool {
	return gives(op) && (op.Kind == store.OpAcquire || op.Kind == store.OpPoll && op.Result.ID.N != op.ID.N)
}

// note records the results of a request. The handle is locked.
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
		delete(h.waiting, op.ID) // a grant can have another id
		delete(h.waiting, op.Result.ID)
		if r.gone && isNew(op) {
			h.sayLater(store.Op{Kind: store.OpCancel, ID: op.Result.ID})
		}
	}
}

// finish completes a request. The handle is locked.
func (h *handle) finish(r *request, err error) {
	if r.over {
		return
	}
	r.over, r.err = true, err
	close(r.done)
}

// sayLater postpones operations that no caller waits for. The handle is locked.
func (h *handle) sayLater(ops ...store.Op) {
	for _, op := range ops {
		switch op.Kind {
		case store.OpAnswer, store.OpClose, store.OpCancel:
			if len(h.later) < maxLater {
				op.Result = store.Result{}
				if op.ID.Session == 0 {
					op.ID.Session = h.session
				}
				h.later = append(h.later, op.Clone())
			}
		}
	}
}

// reopen opens the pool again, for a client that the daemon knows. Waiting requests were in another session, so they
// are told to ask again.
func (h *handle) reopen(ctx context.Context, client string) error {
	sent := time.Now()
	opened, err := h.store.open(ctx, client, &h.spec)
	if err != nil {
		return err
	}
	h.mu.Lock()
	if h.client == client { // another goroutine has reopened it
		h.mu.Unlock()
		return h.store.daemon.ask(ctx, http.MethodDelete, "/clients/"+client+"/pools/"+strconv.Itoa(opened.Pool), nil, nil)
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
