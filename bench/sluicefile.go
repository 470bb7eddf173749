//go:build !peersonly

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// This file has what the processes that share a file use of Sluice: the store alone, which its bars are about, and the
// gate, as a program would use it.

func init() {
	fileContenders = append(fileContenders,
		fileContender{nameFileAcquire, 8, nil, openAcquire},
		fileContender{nameFileComplete, 8, nil, openComplete},
		fileContender{"sluice, Gate.Acquire + Close", 8, nil, openGate},
	)
}

var filePool = store.Spec{
	Name: resource,
	Limits: []store.Limit{
		{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: 1 << 39, Window: time.Minute},
		{Name: "burst", Kind: store.Bucket, Unit: "tokens", Size: 1 << 34, Burst: 1 << 34, Window: time.Second},
		{Name: "hour", Kind: store.Fixed, Unit: "requests", Size: 1 << 39, Window: time.Hour, Guard: store.GuardOff},
		{Name: "places", Kind: store.Concurrency, Unit: "requests", Size: 1 << 39},
	},
	Classes:    []store.Class{{Name: "p0", Weight: 40}, {Name: "p1", Weight: 35}, {Name: "p2", Weight: 25}},
	MaxWaiting: 10_000,
	Throttle:   store.Backoff{Start: time.Minute, Factor: 2, Cap: 15 * time.Minute},
	Overload:   store.Backoff{Start: 5 * time.Second, Factor: 2, Cap: time.Minute},
}

// filePoolHandle is a process's session, with reusable operations.
type filePoolHandle struct {
	pool     store.Pool
	ask, end [1]store.Op
	done     func() error
}

func openFilePool(dir string) (*filePoolHandle, error) {
	s, err := filestore.Open(dir)
	if err != nil {
		return nil, err
	}
	p, err := s.Pool(context.Background(), filePool)
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	h := &filePoolHandle{pool: p, done: func() error { return errors.Join(p.Close(), s.Close()) }}
	h.ask[0] = store.Op{Kind: store.OpAcquire, Agent: "agent", TTL: time.Minute}
	h.ask[0].Amounts = []store.Amount{{Unit: "requests", N: 1}, {Unit: "tokens", N: 1000}}
	h.end[0] = store.Op{Kind: store.OpClose}
	return h, nil
}

// acquire is one operation of the store, decided under its lock.
func (h *filePoolHandle) acquire() (bool, error) {
	h.ask[0].ID = store.ID{}
	err := h.pool.Apply(context.Background(), h.ask[:])
	return h.ask[0].Result.State == store.Granted, err
}

// openAcquire times acquires alone. It closes the tickets in a batch that is not timed, because otherwise their number
// would keep growing.
func openAcquire(dir string) (fileTaker, error) {
	h, err := openFilePool(dir)
	if err != nil {
		return fileTaker{}, err
	}
	open := make([]store.ID, 0, fileBlock)
	batch := make([]store.Op, fileBlock)
	take := func() (bool, error) {
		ok, err := h.acquire()
		open = append(open, h.ask[0].ID)
		return ok, err
	}
	rest := func() error {
		ends := batch[:len(open)]
		for i, id := range open {
			ends[i] = store.Op{Kind: store.OpClose, ID: id}
		}
		open = open[:0]
		if err := h.pool.Apply(context.Background(), ends); err != nil {
			return err
		}
		return ended(ends)
	}
	return fileTaker{take, rest, h.done}, nil
}

// openComplete times the acquire and the close of a request, each as an operation of its own.
func openComplete(dir string) (fileTaker, error) {
	h, err := openFilePool(dir)
	if err != nil {
		return fileTaker{}, err
	}
	take := func() (bool, error) {
		ok, err := h.acquire()
		if !ok || err != nil {
			return ok, err
		}
		h.end[0].ID = h.ask[0].ID
		if err := h.pool.Apply(context.Background(), h.end[:]); err != nil {
			return false, err
		}
		return true, ended(h.end[:])
	}
	return fileTaker{take: take, done: h.done}, nil
}

func ended(ops []store.Op) error {
	for i := range ops {
		if state := ops[i].Result.State; state != store.Ended {
			return fmt.Errorf("a ticket is %v after its end", state)
		}
	}
	return nil
}

// openGate uses the public API with a store that processes share.
func openGate(dir string) (fileTaker, error) {
	ctx := context.Background()
	g, err := sluice.Open(ctx, sluice.Config{
		Store: "file:" + dir,
		Resources: map[string]sluice.Resource{resource: {Limits: []sluice.Limit{
			{Name: "minute", Kind: sluice.Rolling, Size: 60 * wideOpen, Window: time.Minute},
			{Name: "burst", Kind: sluice.Bucket, Size: wideOpen, Window: time.Second, Burst: wideOpen},
			{Name: "hour", Kind: sluice.Fixed, Size: 100 * wideOpen, Window: time.Hour},
			{Name: "places", Kind: sluice.Concurrency, Size: 1000},
		}}},
	})
	if err != nil {
		return fileTaker{}, err
	}
	take := func() (bool, error) {
		t, err := g.Acquire(ctx, sluice.Request{Resource: resource, Agent: "agent"})
		if err != nil {
			return false, err
		}
		return true, t.Close()
	}
	return fileTaker{take: take, done: g.Close}, nil
}
