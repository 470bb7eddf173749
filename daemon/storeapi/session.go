package storeapi

import (
	"context"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// applyWithin bounds the time of a batch. Callers give up earlier.
const applyWithin = 30 * time.Second

// apply carries out a batch. A batch that was carried out before gets the same response as then.
func (s *Server) apply(w http.ResponseWriter, r *http.Request, p *session) error {
	seq, err := strconv.ParseUint(r.URL.Query().Get("seq"), 10, 64)
	if err != nil || seq == 0 {
		return &api.Problem{Status: http.StatusBadRequest, Detail: "seq: it is no number from 1 on"}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return badBody(err)
	}
	var e oplog.Entry
	if n, err := e.Next(body); err != nil || n != len(body) || e.Kind != oplog.KindApply {
		return badBody(wire.ErrCorrupt)
	}
	// Once the batch has arrived it is carried out, whether or not the caller is still there.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), applyWithin)
	defer cancel()
	answer, err := p.apply(ctx, seq, crc32.ChecksumIEEE(body), e.Ops)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", wire.ContentType)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(answer) // a client that is gone asks again
	return nil
}

func (p *session) apply(ctx context.Context, seq uint64, sum uint32, ops []store.Op) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case seq == p.seq && (sum == p.sum || len(ops) == 0): // a batch without operations asks for the result of the last one
		return p.reply, nil
	case seq == p.seq+1:
	default:
		return nil, &api.Problem{Status: http.StatusConflict, Detail: "seq: " + strconv.FormatUint(seq, 10) + " does not follow " + strconv.FormatUint(p.seq, 10)}
	}
	if err := p.pool.Apply(ctx, ops); err != nil {
		return nil, err // not carried out: the number can be used again
	}
	p.seq, p.sum, p.reply = seq, sum, wire.AppendResults(nil, ops)
	return p.reply, nil
}

func (s *Server) snapshot(w http.ResponseWriter, r *http.Request, p *session) error {
	snap, err := p.pool.Snapshot(r.Context())
	if err != nil {
		return err
	}
	return reply(w, snap)
}

func (s *Server) history(w http.ResponseWriter, r *http.Request, p *session) error {
	since, err := strconv.ParseInt(r.URL.Query().Get("since"), 10, 64)
	if err != nil {
		return &api.Problem{Status: http.StatusBadRequest, Detail: "since: it is no number"}
	}
	recorder := store.Can(p.pool).Recorder
	if recorder == nil {
		return &api.Problem{Status: http.StatusNotImplemented, Detail: "this store remembers nothing"}
	}
	past, err := recorder.History(r.Context(), store.Time(since))
	if err != nil {
		return err
	}
	return reply(w, past)
}

func (s *Server) foresee(w http.ResponseWriter, r *http.Request, p *session) error {
	var q wire.Foresee
	d := json.NewDecoder(r.Body) // of at most wire.MaxBody bytes
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return badBody(err)
	}
	if len(q.Ops) > store.MaxForeseen || slices.ContainsFunc(q.Ops, func(op store.Op) bool { return op.Kind != store.OpAcquire || !op.ID.IsZero() }) {
		return badBody(wire.ErrCorrupt)
	}
	foreseer := store.Can(p.pool).Foreseer
	if foreseer == nil {
		return &api.Problem{Status: http.StatusNotImplemented, Detail: "this store cannot foresee what it would decide"}
	}
	if err := foreseer.Foresee(r.Context(), q.Ops, q.Within); err != nil {
		return err
	}
	var answer wire.Foreseen
	for i := range q.Ops {
		answer.Results = append(answer.Results, q.Ops[i].Result)
	}
	return reply(w, answer)
}

func (s *Server) shut(w http.ResponseWriter, _ *http.Request, p *session) error {
	p.client.remove(p.name)
	if err := p.pool.Close(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// watch streams to a client which of its tickets were decided, as long as the client listens. Each client has one
// stream: the latest.
func (s *Server) watch(w http.ResponseWriter, r *http.Request, c *client) error {
	f, ok := w.(http.Flusher)
	if !ok {
		return &api.Problem{Status: http.StatusNotImplemented, Detail: "this connection cannot be written to bit by bit"}
	}
	mine := c.attach()
	if mine == nil {
		return store.ErrClosed
	}
	defer c.detach(mine)
	w.Header().Set("Content-Type", wire.ContentType)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	rc := http.NewResponseController(w)
	beat := time.NewTicker(wire.BeatEvery)
	defer beat.Stop()
	buf := wire.AppendNotice(nil, &wire.Notice{}) // shows the client that the stream is open
	for {
		_ = rc.SetWriteDeadline(time.Now().Add(wire.QuietAfter)) // a client that does not read must not stay forever
		if _, err := w.Write(buf); err != nil {
			return nil //nolint:nilerr // it is gone
		}
		f.Flush()
		buf = buf[:0]
		select {
		case <-r.Context().Done():
			return nil
		case <-s.done:
			return nil
		case <-mine:
			return nil
		case <-beat.C:
			buf = wire.AppendNotice(buf, &wire.Notice{})
		case <-c.wake:
		}
		for _, n := range c.take() {
			buf = wire.AppendNotice(buf, &n)
		}
	}
}

// attach registers a new stream of the client and ends the previous one.
func (c *client) attach() chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	if c.replaced != nil {
		close(c.replaced)
	}
	c.replaced = make(chan struct{})
	return c.replaced
}

func (c *client) detach(mine chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replaced == mine {
		c.replaced = nil
	}
}
