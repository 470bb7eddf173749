package logtest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

// Differential plays random calls of a few processes, one after the other, on an engine and on a list, and compares every
// result. Each trace has a pool of its own.
func Differential(t *testing.T, open func(t *testing.T) Rig, seed uint64, traces int) {
	rig := open(t)
	for i := range traces {
		s := newSuite(t, rig)
		play(s, seed+uint64(i))
		if t.Failed() {
			t.Fatalf("the trace of seed %d", seed+uint64(i))
		}
	}
}

// DifferentialVirtual is Differential in virtual time.
func DifferentialVirtual(t *testing.T, open func(t *testing.T) Rig, seed uint64, traces int) {
	synctest.Test(t, func(t *testing.T) { Differential(t, open, seed, traces) })
}

// model is the log as a list.
type model struct {
	life     int      // counts incarnations; 0: there is none
	entries  []string // of this incarnation
	segment  int      // counts segments in it
	base     int      // entries before the segment
	snapshot string
	lost     bool
}

// reader is a process: a position, and the same in terms of the model.
type reader struct {
	log     sharedlog.Log
	at      sharedlog.Position
	life    int
	segment int
	n       int // entries of the incarnation that it has seen
}

// fate is the error that a call must return, or nil.
func (m *model) fate(r *reader) error {
	switch {
	case m.lost:
		return sharedlog.ErrLost
	case m.life != r.life:
		return sharedlog.ErrIncarnationOver
	case m.segment != r.segment:
		return sharedlog.ErrSegmentEnded
	}
	return nil
}

func play(s *suite, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 0))
	m := &model{lost: true}
	readers := make([]*reader, 3)
	for i := range readers {
		readers[i] = &reader{log: s.log()}
		m.load(s, readers[i])
	}
	for i := range 60 {
		who := readers[r.IntN(len(readers))]
		before := *who
		what := ""
		switch n := r.IntN(100); {
		case n < 50:
			what = "append"
			m.append(s, who, randomEntry(r, fmt.Sprintf("%d.%d", seed, i)))
		case n < 75:
			what = "read"
			m.read(s, who)
		case n < 88:
			what = "compact"
			m.compact(s, who)
		case n < 94:
			what = "load"
			m.load(s, who)
		case n < 97 && s.rig.Lose != nil:
			what = "lose"
			s.lose()
			*m = model{life: m.life, lost: true}
		default:
			what = "revive"
			m.revive(s, who)
		}
		if s.Failed() {
			s.Fatalf("step %d, %s at %v", i, what, before.at)
		}
	}
}

// randomEntry returns an entry of a size that is rarely large.
func randomEntry(r *rand.Rand, id string) string {
	size := r.IntN(200)
	if r.IntN(12) == 0 {
		size = r.IntN(sharedlog.MaxEntry - 100)
	}
	return id + strings.Repeat("x", size)
}

func (m *model) append(s *suite, who *reader, entry string) {
	got, err := who.log.Append(s.ctx, who.at, []byte(entry))
	want := m.fate(who)
	s.wants(err, want, "appending")
	if want != nil {
		return
	}
	m.entries = append(m.entries, entry)
	if !got.Own {
		who.at = got.At
		rest, at := s.rest(who.log, who.at)
		s.list(append(bodies(s.T, got), rest...), m.entries[who.n:]...)
		who.at, who.n = at, len(m.entries)
		return
	}
	s.list(bodies(s.T, got), m.entries[who.n:len(m.entries)-1]...)
	who.at, who.n = got.At, len(m.entries)
}

func (m *model) read(s *suite, who *reader) {
	switch want := m.fate(who); {
	case errors.Is(want, sharedlog.ErrSegmentEnded) && who.n < m.base:
		m.readEnded(s, who)
	case want != nil && !errors.Is(want, sharedlog.ErrSegmentEnded):
		_, err := who.log.Read(s.ctx, who.at)
		s.wants(err, want, "reading")
	default:
		rest, at := s.rest(who.log, who.at)
		s.list(rest, m.entries[who.n:]...)
		who.at, who.n, who.segment = at, len(m.entries), m.segment
	}
}

// readEnded reads what may lie more than one segment back.
func (m *model) readEnded(s *suite, who *reader) {
	for who.n < len(m.entries) {
		got, err := who.log.Read(s.ctx, who.at)
		if errors.Is(err, sharedlog.ErrBehind) && (who.segment < m.segment-1 || s.virtual) {
			m.load(s, who)
			return
		}
		if err != nil {
			s.Fatalf("reading a segment that has ended: %v", err)
		}
		list := bodies(s.T, got)
		s.list(list, m.entries[who.n:min(len(m.entries), who.n+len(list))]...)
		who.n += len(list)
		if got.At.Segment != who.at.Segment {
			who.segment = m.segment
		}
		who.at = got.At
		if len(list) == 0 && !got.More {
			s.Fatalf("nothing to read, with %d entries left", len(m.entries)-who.n)
		}
	}
}

func (m *model) compact(s *suite, who *reader) {
	snapshot := fmt.Sprint(who.n)
	err := who.log.Compact(s.ctx, who.at, []byte(snapshot))
	want := m.fate(who)
	s.wants(err, want, "compacting")
	if want != nil || who.n == m.base {
		return
	}
	m.segment, m.base, m.snapshot = m.segment+1, who.n, snapshot
}

func (m *model) load(s *suite, who *reader) {
	if m.lost {
		time.Sleep(time.Millisecond) // an incarnation has a number of its own
		*m = model{life: m.life + 1}
	}
	got := s.load(who.log)
	rest, at := s.rest(who.log, got.At)
	if string(got.Snapshot) != m.snapshot {
		s.Fatalf("the snapshot is %q, want %q", got.Snapshot, m.snapshot)
	}
	s.list(append(bodies(s.T, got.Entries), rest...), m.entries[m.base:]...)
	*who = reader{log: who.log, at: at, life: m.life, segment: m.segment, n: len(m.entries)}
}

func (m *model) revive(s *suite, who *reader) {
	snapshot := fmt.Sprintf("revived %d", who.n)
	at, err := who.log.Revive(s.ctx, who.at, []byte(snapshot))
	if !m.lost && m.life != who.life {
		s.wants(err, sharedlog.ErrIncarnationOver, "reviving")
		return
	}
	if err != nil {
		s.Fatalf("reviving: %v", err)
	}
	*m = model{life: m.life + 1, snapshot: snapshot}
	*who = reader{log: who.log, at: at, life: m.life}
}

// Storm has processes append, compact and load for a while in an engine that fails, calls calm, and checks that all have the
// same log, with everything in it that was acknowledged.
func Storm(t *testing.T, rig Rig, seed uint64, calm func()) {
	s := newSuite(t, rig)
	s.virtual = true
	all := make([]*member, 4)
	for i := range all {
		all[i] = &member{log: s.log(), process: uint64(i + 1), known: map[string]bool{}}
	}
	s.work(all, func(m *member, _ *rand.Rand) error {
		r := rand.New(rand.NewPCG(seed, m.process))
		if err := m.load(s.ctx); err != nil {
			return err
		}
		for range 40 {
			if err := m.add(s.ctx); err != nil {
				return err
			}
			var err error
			switch r.IntN(10) {
			case 0:
				err = m.compact(s.ctx)
			case 1:
				err = m.load(s.ctx)
			case 2:
				err = pause(s.ctx, time.Duration(r.Int64N(int64(15*time.Second)))) // asleep, longer than a segment is kept
			default:
				err = pause(s.ctx, time.Duration(r.IntN(20_000))*time.Microsecond)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	calm()
	s.agree(all)
}
