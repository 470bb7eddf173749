package logtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

// member is a process with the simplest replica there is: the list of all entries, each once. It does what a real one does
// with a log: it appends again after lost replies, follows segments, writes snapshots, heals, and states again what a
// lost log lacks.
type member struct {
	log     sharedlog.Log
	process uint64
	at      sharedlog.Position
	list    []string
	known   map[string]bool
	sent    int
	acked   []string // own entries whose result this process has seen
	healed  int      // incarnations that it has begun
}

func newMember(ctx context.Context, l sharedlog.Log, process uint64) (*member, error) {
	m := &member{log: l, process: process, known: map[string]bool{}}
	return m, m.load(ctx)
}

// load takes the state of the log, and appends what it lacks of the own entries.
func (m *member) load(ctx context.Context) error {
	for {
		got, err := m.log.Load(ctx, sharedlog.Position{})
		switch {
		case err == nil:
			m.list, m.known = nil, map[string]bool{}
			for id := range strings.Lines(string(got.Snapshot)) {
				m.apply(strings.TrimSpace(id))
			}
			if err := m.take(got.Entries); err != nil {
				return err
			}
			return m.restate(ctx)
		case errors.Is(err, sharedlog.ErrLost), errors.Is(err, sharedlog.ErrUnavailable):
			if err := pause(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// restate appends what was acknowledged in a log that was lost.
func (m *member) restate(ctx context.Context) error {
	if err := m.catchUp(ctx); err != nil {
		return err
	}
	for _, id := range slices.Clone(m.acked) {
		if !m.known[id] {
			if err := m.append(ctx, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func (m *member) apply(id string) {
	if !m.known[id] {
		m.known[id] = true
		m.list = append(m.list, id)
	}
}

// take applies entries.
func (m *member) take(e sharedlog.Entries) error {
	for entry, err := range e.All() {
		if err != nil {
			return err
		}
		m.apply(string(entry.Body))
	}
	m.at = e.At
	return nil
}

// add appends a new entry and returns when this process has applied it.
func (m *member) add(ctx context.Context) error {
	m.sent++
	id := fmt.Sprintf("%d.%d", m.process, m.sent)
	if err := m.append(ctx, id); err != nil {
		return err
	}
	m.acked = append(m.acked, id)
	return nil
}

// append appends an entry until this process has seen it in the log.
func (m *member) append(ctx context.Context, id string) error {
	for !m.known[id] {
		got, err := m.log.Append(ctx, m.at, []byte(id))
		if err == nil {
			if err := m.take(got); err != nil {
				return err
			}
			if got.Own {
				m.apply(id)
				return nil
			}
			err = m.catchUp(ctx)
		}
		if err := m.mend(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// catchUp reads to the end.
func (m *member) catchUp(ctx context.Context) error {
	for {
		got, err := m.log.Read(ctx, m.at)
		if err == nil {
			if err = m.take(got); err != nil {
				return err
			}
			if !got.More {
				return nil
			}
		}
		if err := m.mend(ctx, err); err != nil {
			return err
		}
	}
}

// mend does what an error asks for. It returns those that end the test.
func (m *member) mend(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return err
	case errors.Is(err, sharedlog.ErrUnavailable):
		return pause(ctx, 10*time.Millisecond)
	case errors.Is(err, sharedlog.ErrSegmentEnded):
		return m.catchUp(ctx)
	case errors.Is(err, sharedlog.ErrIncarnationOver), errors.Is(err, sharedlog.ErrBehind):
		return m.load(ctx)
	case errors.Is(err, sharedlog.ErrLost):
		return m.heal(ctx)
	}
	return err
}

// heal begins a new incarnation with this process's state if no survivor knows more.
func (m *member) heal(ctx context.Context) error {
	if _, err := m.log.Post(ctx, m.process, m.at); err != nil {
		return m.mend(ctx, err)
	}
	if err := pause(ctx, 200*time.Millisecond); err != nil {
		return err
	}
	all, err := m.log.Post(ctx, m.process, m.at)
	if err != nil {
		return m.mend(ctx, err)
	}
	if all[0].Process != m.process {
		return m.load(ctx)
	}
	at, err := m.log.Revive(ctx, m.at, m.snapshot())
	if err != nil {
		return m.mend(ctx, err)
	}
	m.at = at
	m.healed++
	return m.restate(ctx)
}

func (m *member) snapshot() []byte { return []byte(strings.Join(m.list, "\n")) }

// compact ends the segment if no other process does.
func (m *member) compact(ctx context.Context) error {
	mine, err := m.log.Claim(ctx, m.at, time.Second)
	if err == nil && mine {
		err = m.log.Compact(ctx, m.at, m.snapshot())
	}
	return m.mend(ctx, err)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
