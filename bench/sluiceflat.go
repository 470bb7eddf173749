//go:build !peersonly

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/store"
)

// This file measures the cost of an acquire for Redis at the store itself, in batches of constant size. So the result
// does not depend on how many callers share a batch.

func init() {
	flatContenders = append(flatContenders,
		flatContender{[]string{"after so many agents have asked, each in turn"}, crowdOfAgents},
		flatContender{[]string{"after so many requests"}, pastRequests},
		flatContender{[]string{"past so many who wait for something else", "served from a queue of so many"}, crowdOfWaiters},
	)
}

const (
	flatBatch = 8  // acquires in a measured batch: fewer than the shortest queue has
	flatBuild = 64 // operations in a batch that is not measured
)

func flatPool(name string, waiting int) store.Spec {
	return store.Spec{
		Name: name,
		Limits: []store.Limit{
			{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: 1 << 39, Window: time.Minute},
			{Name: "places", Kind: store.Concurrency, Unit: "places", Size: flatBatch},
		},
		Classes:    []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
		MaxWaiting: waiting + flatBatch,
		Throttle:   store.Backoff{Start: time.Minute, Factor: 2, Cap: 15 * time.Minute},
		Overload:   store.Backoff{Start: 5 * time.Second, Factor: 2, Cap: time.Minute},
	}
}

// flatHandle is a session on its own pool.
type flatHandle struct {
	store   store.Store
	pool    store.Pool
	waiting map[store.ID]bool
}

func openFlat(ctx context.Context, server *redisrun.Server, waiting int) (*flatHandle, error) {
	// Preparing takes Redis longer than callers usually wait, hence the long timeout.
	s, err := store.Open(ctx, server.URL()+"?timeout=20s&prefix="+prefixes.next())
	if err != nil {
		return nil, err
	}
	p, err := s.Pool(ctx, flatPool(resource, waiting))
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return &flatHandle{s, p, map[store.ID]bool{}}, nil
}

// done cancels the waiting requests, a few at a time, and closes the session.
func (h *flatHandle) done() error {
	ctx, cancel := context.WithTimeout(context.Background(), leaveWithin)
	defer cancel()
	var errs []error
	for batch := range slices.Chunk(slices.Collect(maps.Keys(h.waiting)), flatBuild) {
		ops := make([]store.Op, len(batch))
		for i, id := range batch {
			ops[i] = store.Op{Kind: store.OpCancel, ID: id}
		}
		if err := h.pool.Apply(ctx, ops); err != nil {
			errs = append(errs, err)
			break
		}
	}
	return errors.Join(append(errs, h.pool.Close(), h.store.Close())...)
}

// apply applies operations and checks that each ends in the wanted state. It retries those that find the store lost for
// a moment, because a busy machine is not what this measures.
func (h *flatHandle) apply(ctx context.Context, ops []store.Op, want store.State) error {
	if err := h.pool.Apply(ctx, ops); err != nil {
		return err
	}
	for i := range ops {
		op := &ops[i]
		for tries := 0; isLost(&op.Result) && tries < lostTries; tries++ {
			if err := rest(ctx, lostRest); err != nil {
				return err
			}
			op.ID = store.ID{}
			if err := h.pool.Apply(ctx, ops[i:i+1]); err != nil {
				return err
			}
		}
		if got := op.Result; got.State != want {
			return fmt.Errorf("a ticket is %v and not %v: %v", got.State, want, got.Reason.Code)
		}
	}
	return nil
}

// isLost reports whether a request was refused because the store is unreachable. CodeFull counts too: while the store
// is lost, a shorter queue applies, and the pool's own queue is never full here.
func isLost(r *store.Result) bool {
	return r.State == store.Refused && (r.Reason.Code == store.CodeStore || r.Reason.Code == store.CodeFull)
}

const (
	lostTries = 50
	lostRest  = 200 * time.Millisecond
)

func asking(agent string) store.Op {
	op := store.Op{Kind: store.OpAcquire, Agent: agent, Class: 1, TTL: store.MaxTTL}
	op.Amounts = []store.Amount{{Unit: "requests", N: 1}}
	return op
}

// queueing asks for one of the few places, and waits for it.
func queueing(agent string) store.Op {
	op := asking(agent)
	op.Amounts, op.Wait = append(op.Amounts, store.Amount{Unit: "places", N: 1}), -1
	return op
}

// passAll acquires and closes for all agents, in batches.
func (h *flatHandle) passAll(ctx context.Context, agents []string, batch int) error {
	ops := make([]store.Op, 0, batch)
	for some := range slices.Chunk(agents, batch) {
		ops = ops[:0]
		for _, agent := range some {
			ops = append(ops, asking(agent))
		}
		if err := h.apply(ctx, ops, store.Granted); err != nil {
			return err
		}
		for i := range ops {
			ops[i] = store.Op{Kind: store.OpClose, ID: ops[i].ID}
		}
		if err := h.apply(ctx, ops, store.Ended); err != nil {
			return err
		}
	}
	return nil
}

// passing returns a step in which agents take turns.
func (h *flatHandle) passing(agents []string) flatStep {
	at, turn := 0, make([]string, flatBatch)
	return func(ctx context.Context) (int, error) {
		for i := range turn {
			turn[i] = agents[at]
			at = (at + 1) % len(agents)
		}
		return flatBatch, h.passAll(ctx, turn, flatBatch)
	}
}

func crowdOfAgents(ctx context.Context, server *redisrun.Server, size int) ([]flatStep, func() error, error) {
	h, err := openFlat(ctx, server, 0)
	if err != nil {
		return nil, nil, err
	}
	agents := keyNames(size)
	if err := h.passAll(ctx, agents, flatBuild); err != nil {
		return nil, nil, errors.Join(err, h.done())
	}
	return []flatStep{h.passing(agents)}, h.done, nil
}

func pastRequests(ctx context.Context, server *redisrun.Server, size int) ([]flatStep, func() error, error) {
	h, err := openFlat(ctx, server, 0)
	if err != nil {
		return nil, nil, err
	}
	past := make([]string, size)
	for i := range past {
		past[i] = "agent"
	}
	if err := h.passAll(ctx, past, flatBuild); err != nil {
		return nil, nil, errors.Join(err, h.done())
	}
	return []flatStep{h.passing([]string{"agent"})}, h.done, nil
}

// fill takes all places and lets size agents wait for them. It returns the tickets that hold the places.
func (h *flatHandle) fill(ctx context.Context, size int) ([]store.ID, error) {
	holders := make([]store.Op, flatBatch)
	for i := range holders {
		holders[i] = queueing("holder")
	}
	if err := h.apply(ctx, holders, store.Granted); err != nil {
		return nil, err
	}
	agents := keyNames(size)
	for batch := range slices.Chunk(agents, flatBuild) {
		ops := make([]store.Op, len(batch))
		for i, agent := range batch {
			ops[i] = queueing(agent)
		}
		if err := h.apply(ctx, ops, store.Waiting); err != nil {
			return nil, err
		}
		for i := range ops {
			h.waiting[ops[i].ID] = true
		}
	}
	held := make([]store.ID, len(holders))
	for i := range holders {
		held[i] = holders[i].ID
	}
	return held, nil
}

func crowdOfWaiters(ctx context.Context, server *redisrun.Server, size int) ([]flatStep, func() error, error) {
	h, err := openFlat(ctx, server, size)
	if err != nil {
		return nil, nil, err
	}
	held, err := h.fill(ctx, size)
	if err != nil {
		return nil, nil, errors.Join(err, h.done())
	}
	return []flatStep{h.passing([]string{"agent"}), h.serving(keyNames(size), held)}, h.done, nil
}

// serving returns a step that serves the queue: all holders of a place close, as many agents join the end of the queue,
// and the next ones collect their tickets. The queue keeps its length.
func (h *flatHandle) serving(agents []string, held []store.ID) flatStep {
	told := newNotices()
	h.pool.Watch(told.add)
	at := 0
	return func(ctx context.Context) (int, error) {
		ops := make([]store.Op, 0, 2*len(held))
		for _, id := range held {
			ops = append(ops, store.Op{Kind: store.OpClose, ID: id})
		}
		for range held {
			ops = append(ops, queueing(agents[at]))
			at = (at + 1) % len(agents)
		}
		if err := h.pool.Apply(ctx, ops); err != nil {
			return 0, err
		}
		for _, op := range ops[len(held):] {
			h.waiting[op.ID] = true
		}
		ctx, cancel := context.WithTimeout(ctx, collectWithin)
		defer cancel()
		polls := ops[:0]
		for len(polls) < len(held) {
			id, err := told.next(ctx)
			if err != nil {
				return 0, fmt.Errorf("%d of %d are served: %w", len(polls), len(held), err)
			}
			if h.waiting[id] { // otherwise it was reported before, which is allowed
				delete(h.waiting, id)
				polls = append(polls, store.Op{Kind: store.OpPoll, ID: id})
			}
		}
		if err := h.apply(ctx, polls, store.Granted); err != nil {
			return 0, err
		}
		for i := range polls {
			held[i] = polls[i].ID
		}
		return len(held), nil
	}
}

const (
	collectWithin = 10 * time.Second // for the next ones to be notified
	leaveWithin   = 20 * time.Second // for all waiting requests to be cancelled
)

// notices holds the store's notifications about tickets until they are read.
type notices struct {
	mu  sync.Mutex
	ids []store.ID
	new chan struct{} // holds a token when there is something to read
}

func newNotices() *notices { return &notices{new: make(chan struct{}, 1)} }

func (n *notices) add(ids []store.ID) {
	n.mu.Lock()
	n.ids = append(n.ids, ids...)
	n.mu.Unlock()
	select {
	case n.new <- struct{}{}:
	default:
	}
}

func (n *notices) next(ctx context.Context) (store.ID, error) {
	for {
		n.mu.Lock()
		if len(n.ids) > 0 {
			id := n.ids[0]
			n.ids = n.ids[1:]
			n.mu.Unlock()
			return id, nil
		}
		n.mu.Unlock()
		select {
		case <-n.new:
		case <-ctx.Done():
			return store.ID{}, ctx.Err()
		}
	}
}
