//go:build linux || darwin || windows

package filestore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// Kills at any instruction: processes that do nothing but make steps are killed after a few
// microseconds more or less.

// hammer is the task of such a process: it takes a batch of tickets, closes them, and again.
type hammer struct {
	Dir, Acks string
	Session   uint64
}

// hammered is how many tickets are in a batch: so many that most of the time is spent in the middle of
// a step.
const hammered = 100

func hammerSpec() store.Spec {
	return specOf(
		store.Limit{Kind: store.Rolling, Size: store.MaxAmount, Window: 24 * time.Hour, Guard: store.GuardOff},
		store.Limit{Kind: store.Concurrency, Size: 1000, Guard: store.GuardOff},
	)
}

// acks is a number that outlives the process that counts with it.
func acks(path string) (*atomic.Int64, func(), error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close() // what is mapped stays
	if err := f.Truncate(8); err != nil {
		return nil, nil, err
	}
	mem, unmap, err := filestore.MapFile(f, 8)
	if err != nil {
		return nil, nil, err
	}
	return (*atomic.Int64)(unsafe.Pointer(unsafe.SliceData(mem))), unmap, nil
}

// batch makes ops those of a batch, from 1 on.
func (k *hammer) batch(ops []store.Op, number int64) {
	for i := range ops {
		ops[i].ID = store.ID{Session: k.Session, N: uint64((number-1)*hammered + int64(i) + 1)}
	}
}

// all has the same done to all tickets of a batch.
func (k *hammer) all(t *testing.T, p store.Pool, kind store.OpKind, number int64) []store.Op {
	t.Helper()
	ops := make([]store.Op, hammered)
	for i := range ops {
		ops[i].Kind = kind
	}
	k.batch(ops, number)
	if err := p.Apply(context.Background(), ops); err != nil {
		t.Fatal(err)
	}
	return ops
}

var _ = role("hammer", func(k hammer) {
	acked, _, err := acks(k.Acks)
	if err != nil {
		giveUp("%v", err)
	}
	s, err := filestore.Open(k.Dir)
	if err != nil {
		giveUp("open: %v", err)
	}
	p, err := s.Pool(context.Background(), hammerSpec())
	if err != nil {
		giveUp("pool: %v", err)
	}
	take, done := make([]store.Op, hammered), make([]store.Op, hammered)
	for i := range take {
		take[i], done[i].Kind = ask("hammer", 0, time.Hour), store.OpClose
	}
	for number := int64(1); ; number++ {
		for _, ops := range [][]store.Op{take, done} {
			k.batch(ops, number)
			if err := p.Apply(context.Background(), ops); err != nil {
				giveUp("apply: %v", err)
			}
			acked.Add(1)
		}
	}
})

func TestKillsAtAnyInstructionLoseNothing(t *testing.T) {
	t.Parallel()
	dir, acked := t.TempDir(), t.TempDir()
	var taken, mends, turns int64
	var journal uint64
	kills := scaled(t, 50)
	for round := range kills {
		k := hammer{Dir: dir, Session: uint64(round+1) << 16, Acks: filepath.Join(acked, fmt.Sprint(round))}
		seen, free, err := acks(k.Acks)
		if err != nil {
			t.Fatal(err)
		}
		c := start(t, "hammer", k)
		for begun := time.Now(); seen.Load() < 4; { // it has started
			select {
			case <-c.done:
				t.Fatalf("%v\n%s", c.cmd.ProcessState, c.errs)
			default:
			}
			if time.Since(begun) > patience {
				t.Fatal("the process makes no step")
			}
		}
		for end := time.Now().Add(rand.N(2 * time.Millisecond)); time.Now().Before(end); {
		}
		c.kill()
		mended := false
		f, err := filestore.Open(dir, filestore.WithFault(func(where string) { mended = mended || where == "repairing" }))
		if err != nil {
			t.Fatal(err)
		}
		p, err := f.Pool(context.Background(), hammerSpec())
		if err != nil {
			t.Fatalf("after %d kills: %v", round+1, err)
		}
		if mended {
			mends++
		}
		taken += k.judge(t, p, seen.Load())
		free()
		snap, err := p.Snapshot(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if used := snap.Limits[0].Used; used != taken || snap.InFlight != 0 {
			t.Fatalf("kill %d: %d charged and %d in flight, but %d were taken and all closed", round, used, snap.InFlight, taken)
		}
		if j := f.Journals("pool"); j != journal {
			turns, journal = turns+1, j
		}
		same(t, f)
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills, of which %d hit in the middle of a step; %d tickets; journals seen: %d", kills, mends, taken, turns)
}

// judge checks that all a process was told is so, and at most one step more. It closes what was
// left open, and returns how many tickets were taken.
func (k *hammer) judge(t *testing.T, p store.Pool, acked int64) int64 {
	t.Helper()
	batch := (acked + 1) / 2 // the last that was taken for sure
	now, next := k.state(t, p, batch), k.state(t, p, batch+1)
	switch odd := acked%2 == 1; {
	case odd && now != store.Granted && now != store.Ended:
		t.Fatalf("a batch was granted, but is %v", now)
	case !odd && now != store.Ended:
		t.Fatalf("a batch was closed, but is %v", now)
	case next != store.Unknown && (odd || next != store.Granted):
		t.Fatalf("the batch after the last one is %v", next)
	}
	if next == store.Granted {
		batch++
	}
	k.all(t, p, store.OpClose, batch)
	return batch * hammered
}

// state returns that of a batch: the same for all its tickets.
func (k *hammer) state(t *testing.T, p store.Pool, batch int64) store.State {
	t.Helper()
	ops := k.all(t, p, store.OpPoll, batch)
	for i := range ops {
		if ops[i].Result.State != ops[0].Result.State {
			t.Fatalf("a batch is half done: %v and %v", ops[0].Result.State, ops[i].Result.State)
		}
	}
	return ops[0].Result.State
}

// maker is the task of a process that makes pools, and takes one ticket of each.
type maker struct {
	Dir, Acks string
	From      int64
}

func makerSpec(number int64) store.Spec {
	s := wide()
	s.Name = fmt.Sprint("pool ", number)
	return s
}

var _ = role("maker", func(k maker) {
	acked, _, err := acks(k.Acks)
	if err != nil {
		giveUp("%v", err)
	}
	s, err := filestore.Open(k.Dir)
	if err != nil {
		giveUp("open: %v", err)
	}
	for number := k.From; ; number++ {
		p, err := s.Pool(context.Background(), makerSpec(number))
		if err != nil {
			giveUp("pool: %v", err)
		}
		if err := p.Apply(context.Background(), []store.Op{ask("maker", 0, time.Hour)}); err != nil {
			giveUp("apply: %v", err)
		}
		acked.Store(number)
		if err := p.Close(); err != nil {
			giveUp("close: %v", err)
		}
	}
})

func TestKillsWhileAPoolIsMadeLeaveNoHalfOfOne(t *testing.T) {
	t.Parallel()
	dir, logs := t.TempDir(), t.TempDir()
	next := int64(1)
	for range scaled(t, 12) {
		var crew [2]*child // they make the same ones
		var acked [2]*atomic.Int64
		for i := range crew {
			k := maker{dir, filepath.Join(logs, fmt.Sprint(i, "-", next)), next}
			var free func()
			var err error
			if acked[i], free, err = acks(k.Acks); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(free)
			crew[i] = start(t, "maker", k)
		}
		eventually(t, patience, "at work", func() bool { return acked[0].Load() > next && acked[1].Load() > next })
		for i, c := range crew {
			for end := time.Now().Add(rand.N(2 * time.Millisecond)); time.Now().Before(end); {
			}
			if c.kill(); !killed(c.cmd.ProcessState) {
				t.Fatalf("maker %d: %v\n%s", i, c.cmd.ProcessState, c.errs)
			}
		}
		s, err := filestore.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		for end := max(acked[0].Load(), acked[1].Load()) + 3; next < end; next++ {
			p, err := s.Pool(context.Background(), makerSpec(next))
			if err != nil {
				t.Fatalf("pool %d: %v", next, err)
			}
			snap, err := p.Snapshot(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			least, most := int64(0), int64(0) // one more than they know of may have been taken
			for _, a := range acked {
				if a.Load() >= next {
					least++
				}
				if a.Load()+1 >= next {
					most++
				}
			}
			if n := snap.Limits[0].Used; n < least || n > most {
				t.Errorf("pool %d: %d charged, want %d to %d", next, n, least, most)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d pools were made", next-1)
}
