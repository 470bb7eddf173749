//go:build slow

// Run with make store-suites.

package redisstore

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/internal/sharedlog/logtest"
)

func TestLogOnACluster(t *testing.T) {
	t.Parallel()
	c := redisrun.NewCluster(t, "cluster-node-timeout 60000") // nobody dies here
	logtest.Run(t, func(t *testing.T) logtest.Rig { return rig(t, c.URL()) })
}

func TestSameAsAListOnACluster(t *testing.T) {
	t.Parallel()
	c := redisrun.NewCluster(t, "cluster-node-timeout 60000")
	logtest.Differential(t, func(t *testing.T) logtest.Rig { return rig(t, c.URL()) }, 100, 10)
}

func TestLogBehindSentinels(t *testing.T) {
	t.Parallel()
	s := redisrun.NewSteadySentinel(t)
	logtest.Run(t, func(t *testing.T) logtest.Rig { return rig(t, s.URL()) })
}

func TestLogOnValkey(t *testing.T) {
	t.Parallel()
	s := redisrun.NewServer(t, redisrun.Options{Binary: valkey(t)})
	logtest.Run(t, func(t *testing.T) logtest.Rig { return rig(t, s.URL()) })
}

func TestSameAsAListOnValkey(t *testing.T) {
	t.Parallel()
	s := redisrun.NewServer(t, redisrun.Options{Binary: valkey(t)})
	logtest.Differential(t, func(t *testing.T) logtest.Rig { return rig(t, s.URL()) }, 200, 10)
}

// valkey returns the path of a valkey-server.
func valkey(t *testing.T) string {
	t.Helper()
	var said strings.Builder
	command := exec.Command(filepath.Join("..", "..", "scripts", "need-valkey"))
	command.Stderr = &said
	path, err := command.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	return strings.TrimSpace(string(path))
}

// A failover that loses the end of the log, with everything that the old master took meanwhile, is noticed and healed, and
// wake-ups arrive again.
func TestFailoverBehindSentinels(t *testing.T) {
	t.Parallel()
	s := redisrun.NewSentinel(t)
	l := open(t, s.URL()).Log("pool")
	loaded, err := l.Load(t.Context(), sharedlog.Position{})
	if err != nil {
		t.Fatal(err)
	}
	woken, err := l.Watch(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := l.Append(t.Context(), loaded.At, []byte("kept"))
	if err != nil {
		t.Fatal(err)
	}
	old := s.Master()
	if err := s.WaitReplica(); err != nil {
		t.Fatal(err)
	}
	// The replica stops to follow, so that what comes now is lost.
	for _, n := range s.Nodes() {
		if n != old {
			if err := n.Pause(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = n.Resume() }()
		}
	}
	do(t, old, "CLIENT", "KILL", "TYPE", "replica")
	lost, err := l.Append(t.Context(), kept.At, []byte("lost"))
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Kill(); err != nil {
		t.Fatal(err)
	}
	for _, n := range s.Nodes() {
		if n != old {
			if err := n.Resume(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.WaitMaster(old); err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		_, err = l.Read(t.Context(), lost.At)
		return !errors.Is(err, sharedlog.ErrUnavailable)
	})
	refused(t, err, sharedlog.ErrLost, "lacks its end")
	if rest, err := l.Read(t.Context(), kept.At); err != nil || len(rest.Data) > 0 {
		t.Errorf("what is left: %v, %+v", err, rest)
	}
	if _, err := l.Revive(t.Context(), lost.At, []byte("kept lost")); err != nil {
		t.Fatal(err)
	}
	if got, err := l.Load(t.Context(), sharedlog.Position{}); err != nil || string(got.Snapshot) != "kept lost" || got.Origin != lost.At {
		t.Errorf("%v, %+v", err, got)
	}
	for {
		select {
		case <-woken:
			return
		case <-time.After(50 * time.Millisecond):
			_ = l.Publish(t.Context(), 1)
		case <-t.Context().Done():
			t.Fatal("not woken any more")
		}
	}
}

func TestLogWithTheLeastRights(t *testing.T) {
	t.Parallel()
	s := redisrun.New(t)
	url := user(t, s, "least", Rights...)
	logtest.Run(t, func(t *testing.T) logtest.Rig {
		r := rig(t, s.URL()+"?prefix=mine")
		r.Connect = func() (sharedlog.Engine, error) { return OpenEngine(context.Background(), patient(url)) }
		return r
	})
}

// The rights of the package comment suffice on a Cluster too, and with +role behind Sentinels.
func TestTheLeastRightsElsewhere(t *testing.T) {
	t.Parallel()
	c := redisrun.NewCluster(t)
	for _, n := range c.Nodes() {
		user(t, n, "least", Rights...)
	}
	works(t, open(t, strings.Replace(c.URL(), "://", "://least:secret@", 1)+"?prefix=mine"))
	s := redisrun.NewSteadySentinel(t)
	for _, n := range s.Nodes() {
		user(t, n, "least", append(Rights, "+role")...)
	}
	works(t, open(t, strings.Replace(s.URL(), "://", "://least:secret@", 1)+"?prefix=mine"))
}

// A slot that moves to another node of the Cluster while a process appends loses nothing and repeats nothing.
func TestASlotMoves(t *testing.T) {
	t.Parallel()
	c := redisrun.NewCluster(t)
	l, at := start(t, open(t, c.URL()))
	slot, err := c.Slot(l.head())
	if err != nil {
		t.Fatal(err)
	}
	owner, err := c.Owner(slot)
	if err != nil {
		t.Fatal(err)
	}
	moved := make(chan error, 1)
	go func() {
		for i := range 3 {
			if err := c.MoveSlot(slot, (owner+1+i)%3); err != nil {
				moved <- err
				return
			}
		}
		moved <- nil
	}()
	from, sent := at, 0
	for done := false; !done; {
		select {
		case err := <-moved:
			if done = true; err != nil {
				t.Fatal(err)
			}
		default:
		}
		got, err := l.Append(t.Context(), at, fmt.Append(nil, sent))
		if errors.Is(err, sharedlog.ErrUnavailable) {
			time.Sleep(5 * time.Millisecond)
			if got, err = l.Read(t.Context(), at); err != nil {
				continue
			}
			for range got.All() {
				sent++ // it was appended all the same
			}
			at = got.At
			continue
		}
		if err != nil || !got.Own || len(got.Data) > 0 {
			t.Fatalf("%v, %+v", err, got)
		}
		at = got.At
		sent++
	}
	next := 0
	for from != at {
		got, err := l.Read(t.Context(), from)
		if err != nil {
			t.Fatal(err)
		}
		for entry := range got.All() {
			if string(entry.Body) != fmt.Sprint(next) {
				t.Fatalf("entry %d is %q", next, entry.Body)
			}
			next++
		}
		from = got.At
	}
	if next != sent {
		t.Errorf("%d entries, want %d", next, sent)
	}
}
