// Package logtest is the conformance suite for engines of a shared log. It knows only the contract in package sharedlog.
//
//	func TestEngine(t *testing.T) {
//		logtest.Run(t, func(t *testing.T) logtest.Rig { ... })
//	}
//
// Engines that keep virtual time use [RunVirtual], whose tests run in bubbles of testing/synctest.
package logtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

// Rig is an engine's server under test.
type Rig struct {
	// Connect returns the connection of one more process.
	Connect func() (sharedlog.Engine, error)
	// Lose deletes everything that the engine has of a pool. nil: tests that need it are skipped; so for the others.
	Lose func(pool string) error
	// LoseTail takes the last n bytes from the segment at a position, as a failover does.
	LoseTail func(pool string, at sharedlog.Position, n int64) error
}

// Run runs the suite. It calls open for every test.
func Run(t *testing.T, open func(t *testing.T) Rig) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(newSuite(t, open(t)))
		})
	}
}

// RunVirtual is Run in virtual time.
func RunVirtual(t *testing.T, open func(t *testing.T) Rig) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newSuite(t, open(t))
				s.virtual = true
				c.run(s)
			})
		})
	}
}

var cases = []struct {
	name string
	run  func(*suite)
}{
	{"LoadCreatesOnce", loadCreatesOnce},
	{"AppendAndRead", appendAndRead},
	{"ReadFromAnyPosition", readFromAnyPosition},
	{"ManyAppend", manyAppend},
	{"ManyAppendAndCompact", manyAppendAndCompact},
	{"ReadAcrossASegment", readAcrossASegment},
	{"OneClaims", oneClaims},
	{"OneCompacts", oneCompacts},
	{"BigSnapshot", bigSnapshot},
	{"LostLeavesNothing", lostLeavesNothing},
	{"Survivors", survivors},
	{"OneRevives", oneRevives},
	{"ReviveOverALog", reviveOverALog},
	{"AwayWhileReplaced", awayWhileReplaced},
	{"LostTail", lostTail},
	{"LostTailGrownAgain", lostTailGrownAgain},
	{"HealUnderLoad", healUnderLoad},
	{"Bounds", bounds},
	{"FarBehind", farBehind},
	{"FullSegment", fullSegment},
	{"Contexts", contexts},
	{"Closed", closed},
	{"Wake", wake},
	{"Names", names},
	{"Pools", namesOfPools},
	{"Unused", unused},
}

// suite is one test.
type suite struct {
	*testing.T
	rig     Rig
	ctx     context.Context
	name    string // of the pool
	virtual bool
}

var pools atomic.Int64

func newSuite(t *testing.T, rig Rig) *suite {
	ctx, cancel := context.WithTimeout(context.Background(), 24*time.Hour) // of virtual time
	t.Cleanup(cancel)
	return &suite{T: t, rig: rig, ctx: ctx, name: fmt.Sprintf("%s-%d", strings.ReplaceAll(t.Name(), "/", "-"), pools.Add(1))}
}

// connect returns the connection of a new process. It is closed when the test ends.
func (s *suite) connect() sharedlog.Engine {
	s.Helper()
	e, err := s.rig.Connect()
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := e.Close(); err != nil {
			s.Errorf("closing an engine: %v", err)
		}
	})
	return e
}

// log returns the log of the test's pool over a connection of its own.
func (s *suite) log() sharedlog.Log {
	s.Helper()
	return s.connect().Log(s.name)
}

func (s *suite) load(l sharedlog.Log) sharedlog.Loaded {
	s.Helper()
	got, err := l.Load(s.ctx, sharedlog.Position{})
	if err != nil {
		s.Fatalf("loading: %v", err)
	}
	return got
}

// add appends entries one after the other and returns the position after them.
func (s *suite) add(l sharedlog.Log, at sharedlog.Position, entries ...string) sharedlog.Position {
	s.Helper()
	for _, entry := range entries {
		got, err := l.Append(s.ctx, at, []byte(entry))
		if err != nil || !got.Own {
			s.Fatalf("appending %.20q: %v, %+v", entry, err, got.At)
		}
		at = got.At
	}
	return at
}

// rest reads from a position to the end.
func (s *suite) rest(l sharedlog.Log, at sharedlog.Position) (all []string, end sharedlog.Position) {
	s.Helper()
	for {
		got, err := l.Read(s.ctx, at)
		if err != nil {
			s.Fatalf("reading from %v: %v", at, err)
		}
		all = append(all, bodies(s.T, got)...)
		at = got.At
		if !got.More {
			return all, at
		}
	}
}

func bodies(t *testing.T, e sharedlog.Entries) (all []string) {
	t.Helper()
	for entry, err := range e.All() {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(entry.Body))
	}
	return all
}

// wants fails unless err matches want, and nothing else.
func (s *suite) wants(err, want error, what string) {
	s.Helper()
	for _, e := range []error{
		sharedlog.ErrUnavailable, sharedlog.ErrSegmentEnded, sharedlog.ErrIncarnationOver, sharedlog.ErrLost, sharedlog.ErrBehind, sharedlog.ErrFull,
		sharedlog.ErrTooBig, sharedlog.ErrDamaged, sharedlog.ErrFormat, sharedlog.ErrUnfit, sharedlog.ErrClosed,
	} {
		if errors.Is(err, e) != errors.Is(want, e) {
			s.Fatalf("%s: %v, want %v", what, err, want)
		}
	}
}

// list fails unless got is want.
func (s *suite) list(got []string, want ...string) {
	s.Helper()
	if len(got) != len(want) {
		s.Fatalf("%d entries %.200q, want %d %.200q", len(got), got, len(want), want)
	}
	for i := range got {
		if got[i] != want[i] {
			s.Fatalf("entry %d is %.40q, want %.40q", i, got[i], want[i])
		}
	}
}

// until polls a condition.
func (s *suite) until(what string, is func() bool) {
	s.Helper()
	for began := time.Now(); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Since(began) > 30*time.Second {
			s.Fatalf("waited in vain until %s", what)
		}
	}
}

// lose deletes the log, or skips the test if the engine under test cannot.
func (s *suite) lose() {
	s.Helper()
	if s.rig.Lose == nil {
		s.Skip("this engine loses nothing")
	}
	if err := s.rig.Lose(s.name); err != nil {
		s.Fatal(err)
	}
}
