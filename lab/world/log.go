package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
)

// engine is one process's connection to a server.
type engine struct{ link *link }

var _ sharedlog.Engine = (*engine)(nil)

// Log implements [sharedlog.Engine].
func (e *engine) Log(pool string) sharedlog.Log { return &log{e.link, e.link.server, pool} }

// Pools implements [sharedlog.Engine].
func (e *engine) Pools(ctx context.Context) (names []string, whole bool, err error) {
	s := e.link.server
	names, err = call(ctx, e.link, func() ([]string, error) {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(s.pools)) {
			if s.pool(name).incarnation != 0 {
				names = append(names, name)
			}
		}
		return names, nil
	})
	return names, err == nil, err
}

// Secret implements [sharedlog.Engine].
func (e *engine) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	s := e.link.server
	return call(ctx, e.link, func() ([]byte, error) {
		if s.secrets[name] == nil {
			s.secrets[name] = bytes.Clone(fresh)
		}
		return bytes.Clone(s.secrets[name]), nil
	})
}

// Close implements [sharedlog.Engine].
func (e *engine) Close() error {
	e.link.end()
	e.link.open.Wait()
	return nil
}

// log is the log of one pool, over a link.
type log struct {
	link   *link
	server *Server
	name   string
}

var _ sharedlog.Log = (*log)(nil)

// do has the server carry out f with the pool.
func do[T any](ctx context.Context, l *log, f func(s *Server, p *pool) (T, error)) (T, error) {
	if len(l.name) > sharedlog.MaxPool {
		var none T
		return none, fmt.Errorf("%w: the name of a pool has %d bytes", sharedlog.ErrTooBig, len(l.name))
	}
	return call(ctx, l.link, func() (T, error) { return f(l.server, l.server.pool(l.name)) })
}

// done is do without a result.
func done(ctx context.Context, l *log, f func(s *Server, p *pool) error) error {
	_, err := do(ctx, l, func(s *Server, p *pool) (struct{}, error) { return struct{}{}, f(s, p) })
	return err
}

// look returns an error if the log does not go on in the segment of at.
func (p *pool) look(at sharedlog.Position) error {
	switch {
	case p.incarnation == 0:
		return sharedlog.ErrLost
	case p.incarnation < at.Incarnation: // it was begun after what is left
		return sharedlog.ErrLost
	case p.incarnation != at.Incarnation:
		return sharedlog.ErrIncarnationOver
	case p.evicted:
		return fmt.Errorf("%w: %w", sharedlog.ErrLost, sharedlog.ErrEvicted)
	case p.segment > at.Segment:
		return sharedlog.ErrSegmentEnded
	case p.segment < at.Segment: // its compaction was lost
		return sharedlog.ErrLost
	}
	return nil
}

// raw returns a copy of the bytes around at, as [sharedlog.Slice] wants them.
func raw(segment []byte, at sharedlog.Position) []byte {
	from := min(at.Index()-sharedlog.StampSize, int64(len(segment)))
	to := min(at.Index()+sharedlog.MaxRead, int64(len(segment)))
	return bytes.Clone(segment[from:to])
}

// Load implements [sharedlog.Log].
func (l *log) Load(ctx context.Context, known sharedlog.Position) (sharedlog.Loaded, error) {
	return do(ctx, l, func(s *Server, p *pool) (got sharedlog.Loaded, err error) {
		if p.incarnation == 0 {
			switch {
			case known.Incarnation != 0, len(p.survivors()) > 0:
				return got, sharedlog.ErrLost
			case s.full:
				return got, sharedlog.ErrFull
			}
			p.set(version{incarnation: s.next(0), run: s.run, bytes: sharedlog.Header(0)})
			got.Created = true
		}
		if p.evicted {
			return got, fmt.Errorf("%w: %w", sharedlog.ErrLost, sharedlog.ErrEvicted)
		}
		at := sharedlog.Position{Incarnation: p.incarnation, Segment: p.segment, Offset: p.segment}
		at.Stamp = sharedlog.ReadStamp(p.bytes[len(sharedlog.Magic):])
		got.Snapshot, got.Origin, got.Now = bytes.Clone(p.snapshot), p.origin, s.now()
		got.Entries, err = s.slice(p, at, p.bytes)
		return got, err
	})
}

// slice returns the entries of a segment after at.
func (s *Server) slice(p *pool, at sharedlog.Position, segment []byte) (sharedlog.Entries, error) {
	got, err := sharedlog.Slice(at, raw(segment, at))
	got.Moved = p.run != s.run
	return got, err
}

// next returns the number of a new incarnation after another.
func (s *Server) next(after uint64) uint64 {
	s.last = max(uint64(s.now()), s.last+1, after+1)
	return s.last
}

// Append implements [sharedlog.Log].
func (l *log) Append(ctx context.Context, at sharedlog.Position, entry []byte) (sharedlog.Entries, error) {
	if len(entry) > sharedlog.MaxEntry {
		return sharedlog.Entries{}, fmt.Errorf("%w: an entry of %d bytes", sharedlog.ErrTooBig, len(entry))
	}
	framed := sharedlog.AppendFrame(nil, entry)
	return do(ctx, l, func(s *Server, p *pool) (sharedlog.Entries, error) {
		if err := p.look(at); err != nil {
			return sharedlog.Entries{}, err
		}
		if s.full || len(p.bytes) >= sharedlog.MaxSegment {
			return sharedlog.Entries{}, sharedlog.ErrFull
		}
		own, v := p.end(), p.version
		v.bytes = sharedlog.AppendStamp(append(v.bytes, framed...), s.now())
		p.set(v)
		got, err := sharedlog.SliceOwn(at, raw(p.bytes, at), own, len(entry))
		got.Moved = p.run != s.run
		return got, err
	})
}

// end returns the offset of the end of the log.
func (p *pool) end() int64 { return p.segment + int64(len(p.bytes)) - sharedlog.HeaderSize }

// Read implements [sharedlog.Log].
func (l *log) Read(ctx context.Context, at sharedlog.Position) (sharedlog.Entries, error) {
	return do(ctx, l, func(s *Server, p *pool) (sharedlog.Entries, error) {
		err := p.look(at)
		ended := errors.Is(err, sharedlog.ErrSegmentEnded)
		switch {
		case err == nil, ended && at.Offset >= p.segment:
			at.Segment = p.segment
			return s.slice(p, at, p.bytes)
		case !ended:
			return sharedlog.Entries{}, err
		}
		for _, e := range p.ended {
			end := e.segment + int64(len(e.bytes)) - sharedlog.HeaderSize
			if e.segment != at.Segment || end <= at.Offset || time.Now().After(e.until) {
				continue
			}
			got, err := s.slice(p, at, e.bytes)
			if got.At.Offset >= p.segment {
				got.At.Segment = p.segment
			}
			got.More = true
			return got, err
		}
		return sharedlog.Entries{}, sharedlog.ErrBehind
	})
}

// Claim implements [sharedlog.Log].
func (l *log) Claim(ctx context.Context, at sharedlog.Position, d time.Duration) (bool, error) {
	return do(ctx, l, func(_ *Server, p *pool) (bool, error) {
		key := [2]int64{int64(at.Incarnation), at.Segment}
		if p.look(at) != nil || time.Now().Before(p.claims[key]) {
			return false, nil
		}
		p.claims[key] = time.Now().Add(d)
		return true, nil
	})
}

// Compact implements [sharedlog.Log].
func (l *log) Compact(ctx context.Context, at sharedlog.Position, snapshot []byte) error {
	if len(snapshot) > sharedlog.MaxSnapshot {
		return fmt.Errorf("%w: a snapshot of %d bytes", sharedlog.ErrTooBig, len(snapshot))
	}
	if err := l.link.upload(ctx, len(snapshot)); err != nil {
		return err
	}
	snapshot = bytes.Clone(snapshot)
	return done(ctx, l, func(s *Server, p *pool) error {
		if err := p.look(at); err != nil || at.Offset == at.Segment {
			return err
		}
		if s.full {
			return sharedlog.ErrFull
		}
		if _, err := sharedlog.Slice(at, raw(p.bytes, at)); err != nil {
			return err
		}
		v := p.version
		v.ended = slices.DeleteFunc(slices.Clone(v.ended), func(e ended) bool { return time.Now().After(e.until) })
		v.ended = append(v.ended, ended{p.segment, p.bytes, time.Now().Add(sharedlog.KeepEnded)})
		v.segment, v.snapshot = at.Offset, snapshot
		v.bytes = append(sharedlog.Header(at.Stamp), p.bytes[at.Index():]...)
		p.set(v)
		return nil
	})
}

// Keep implements [sharedlog.Log].
func (l *log) Keep(ctx context.Context, at sharedlog.Position, unused time.Duration) error {
	return done(ctx, l, func(_ *Server, p *pool) error {
		if err := p.look(at); err != nil && !errors.Is(err, sharedlog.ErrSegmentEnded) {
			return err
		}
		v := p.version
		v.until = time.Now().Add(unused)
		p.set(v)
		return nil
	})
}

// survivors returns the posts that count.
func (p *pool) survivors() (all []sharedlog.Survivor) {
	for process, it := range p.posts {
		if !time.Now().After(it.until) {
			all = append(all, sharedlog.Survivor{Process: process, At: it.at})
		}
	}
	sharedlog.SortSurvivors(all)
	return all[:min(len(all), sharedlog.MaxPosts)]
}

// Post implements [sharedlog.Log].
func (l *log) Post(ctx context.Context, process uint64, at sharedlog.Position) ([]sharedlog.Survivor, error) {
	return do(ctx, l, func(_ *Server, p *pool) ([]sharedlog.Survivor, error) {
		before, ok := p.posts[process]
		p.posts[process] = post{at, time.Now().Add(sharedlog.KeepPost)}
		all := p.survivors()
		for i := range all {
			all[i].New = all[i].Process == process && !(ok && time.Now().Before(before.until))
		}
		return all, nil
	})
}

// Revive implements [sharedlog.Log].
func (l *log) Revive(ctx context.Context, from sharedlog.Position, snapshot []byte) (sharedlog.Position, error) {
	if len(snapshot) > sharedlog.MaxSnapshot {
		return sharedlog.Position{}, fmt.Errorf("%w: a snapshot of %d bytes", sharedlog.ErrTooBig, len(snapshot))
	}
	if err := l.link.upload(ctx, len(snapshot)); err != nil {
		return sharedlog.Position{}, err
	}
	snapshot = bytes.Clone(snapshot)
	return do(ctx, l, func(s *Server, p *pool) (sharedlog.Position, error) {
		if p.incarnation > from.Incarnation {
			return sharedlog.Position{}, sharedlog.ErrIncarnationOver
		}
		if s.full {
			return sharedlog.Position{}, sharedlog.ErrFull
		}
		p.set(version{incarnation: s.next(from.Incarnation), run: s.run, origin: from, snapshot: snapshot, bytes: sharedlog.Header(0), until: p.until})
		clear(p.posts)
		return sharedlog.Position{Incarnation: p.incarnation}, nil
	})
}

// Publish implements [sharedlog.Log].
func (l *log) Publish(ctx context.Context, processes ...uint64) error {
	n := l.link.sent.Load() + 1
	return done(ctx, l, func(s *Server, p *pool) error {
		for i, process := range processes {
			for _, to := range p.watch[process] {
				s.wake(l.link.id, n, i, to)
			}
		}
		return nil
	})
}

// Watch implements [sharedlog.Log].
func (l *log) Watch(ctx context.Context, process uint64) (<-chan struct{}, error) {
	woken := make(chan struct{}, 1)
	out := make(chan struct{}, 1)
	if err := done(ctx, l, func(_ *Server, p *pool) error {
		p.watch[process] = append(p.watch[process], woken)
		return nil
	}); err != nil {
		return nil, err
	}
	l.link.open.Go(func() {
		defer close(out)
		defer l.unwatch(process, woken)
		for {
			select {
			case <-woken:
				hint(out)
			case <-ctx.Done():
				return
			case <-l.link.ended.Done():
				return
			}
		}
	})
	return out, nil
}

func (l *log) unwatch(process uint64, woken chan struct{}) {
	l.server.mu.Lock()
	defer l.server.mu.Unlock()
	p := l.server.pool(l.name)
	p.watch[process] = slices.DeleteFunc(p.watch[process], func(c chan struct{}) bool { return c == woken })
}
