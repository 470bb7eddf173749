package world

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice/internal/sharedlog"
	"github.com/sluicehq/sluice/store"
)

// Server is a model of an engine: memory that keeps the logs of pools, with a clock of its own, and replicas that lag behind.
type Server struct {
	world *World

	mu      sync.Mutex
	step    time.Duration // of its clock, since the beginning
	full    bool
	run     uint64 // counts losses of the end: another server has taken over
	last    uint64 // incarnation
	pools   map[string]*pool
	secrets map[string][]byte
	awake   time.Time // when it goes on after a stall
	waiting []request // during a stall
}

// pool is what a server keeps of one.
type pool struct {
	version
	past   []version // of the last keepPast, oldest first
	claims map[[2]int64]time.Time
	posts  map[uint64]post
	watch  map[uint64][]chan struct{}
}

// version is the log of a pool at one moment. It is never changed, but replaced. The bytes of a later version may be appended
// to those of an earlier one.
type version struct {
	since       time.Time
	incarnation uint64 // 0: there is no log
	run         uint64 // of the server on which it began
	segment     int64
	origin      sharedlog.Position
	snapshot    []byte
	bytes       []byte // of the segment
	evicted     bool   // the bytes are gone
	ended       []ended
	until       time.Time // when the log is deleted; zero: never
}

// ended is a segment that was compacted.
type ended struct {
	segment int64
	bytes   []byte
	until   time.Time
}

type post struct {
	at    sharedlog.Position
	until time.Time
}

// keepPast bounds what LoseTail can undo.
const keepPast = 10 * time.Second

// Server returns an engine without any logs.
func (w *World) Server() *Server {
	return &Server{world: w, pools: map[string]*pool{}, secrets: map[string][]byte{}}
}

// Connect returns the connection of one process.
func (s *Server) Connect() sharedlog.Engine { return s.ConnectOver(Line{}) }

// Line is a slow way from a process to a server. The zero value adds nothing to the faults of the world.
type Line struct {
	Delay time.Duration // of each request and of each reply
	Rate  int           // bytes a second; 0: no bound
}

// ConnectOver is Connect over a slow line.
func (s *Server) ConnectOver(line Line) sharedlog.Engine {
	l := &link{server: s, id: s.world.links.Add(1), line: line}
	l.ended, l.end = context.WithCancel(context.Background())
	return &engine{l}
}

// pool returns the pool of a name. The caller holds s.mu.
func (s *Server) pool(name string) *pool {
	p := s.pools[name]
	if p == nil {
		p = &pool{claims: map[[2]int64]time.Time{}, posts: map[uint64]post{}, watch: map[uint64][]chan struct{}{}}
		s.pools[name] = p
	}
	if !p.until.IsZero() && !time.Now().Before(p.until) {
		p.set(version{})
	}
	return p
}

// now returns the time of the server's clock. The caller holds s.mu.
func (s *Server) now() store.Time { return store.Time(time.Now().Add(s.step).UnixMicro()) }

// set replaces the log of a pool. The caller holds s.mu.
func (p *pool) set(v version) {
	now := time.Now()
	old := 0
	for old+1 < len(p.past) && now.Sub(p.past[old+1].since) > keepPast {
		old++
	}
	p.past = append(p.past[old:], p.version)
	v.since = now
	p.version = v
}

// trouble is what happens to a server when a request arrives.
type trouble struct {
	stall, tail, step time.Duration
	flush             bool
}

// request is one that waits for the end of a stall.
type request struct {
	arrived time.Time
	link, n uint64
	run     func()
}

// serve carries out a request, or lets it wait while the server is stalled. Requests of one moment are carried out in the
// order of their connections.
func (s *Server) serve(link, n uint64, t trouble, do func()) {
	done := make(chan struct{})
	s.mu.Lock()
	s.befall(t)
	run := func() { do(); close(done) }
	if !time.Now().Before(s.awake) && len(s.waiting) == 0 {
		run()
	} else {
		s.waiting = append(s.waiting, request{time.Now(), link, n, run})
		if len(s.waiting) == 1 {
			time.AfterFunc(time.Until(s.awake), s.goOn)
		}
	}
	s.mu.Unlock()
	<-done
}

// goOn carries out what has waited.
func (s *Server) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left := time.Until(s.awake); left > 0 { // another stall
		time.AfterFunc(left, s.goOn)
		return
	}
	slices.SortFunc(s.waiting, func(a, b request) int {
		return cmp.Or(a.arrived.Compare(b.arrived), cmp.Compare(a.link, b.link), cmp.Compare(a.n, b.n))
	})
	for _, r := range s.waiting {
		r.run()
	}
	s.waiting = nil
}

func (s *Server) befall(t trouble) {
	if t.stall > 0 {
		s.awake = time.Now().Add(t.stall)
	}
	s.step += t.step
	if t.tail > 0 {
		s.loseTail(t.tail)
	}
	if t.flush {
		s.flush()
	}
}

// Stall makes the server do nothing for d: requests arrive and wait.
func (s *Server) Stall(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.awake = time.Now().Add(d)
}

// StepClock sets the server's clock forward or back.
func (s *Server) StepClock(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step += d
}

// SetFull makes the server refuse everything that needs memory, until it is called with false.
func (s *Server) SetFull(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

// Flush deletes everything.
func (s *Server) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.flush()
}

func (s *Server) flush() {
	clear(s.secrets)
	for _, p := range s.pools {
		p.set(version{})
		clear(p.claims)
		clear(p.posts)
	}
}

// LoseTail has the logs as they were a moment ago, at most ten seconds, as after a failover to a replica that lagged behind.
func (s *Server) LoseTail(ago time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.loseTail(ago)
}

func (s *Server) loseTail(ago time.Duration) {
	s.run++
	then := time.Now().Add(-ago)
	for _, p := range s.pools {
		v := p.version
		for i := len(p.past) - 1; i >= 0 && v.since.After(then); i-- {
			v, p.past = p.past[i], p.past[:i]
		}
		if !v.since.Equal(p.since) {
			v.bytes = slices.Clip(v.bytes) // what is appended now must not change what others have read
			p.version = v
		}
	}
}

// LoseBytes takes the last n bytes of every log's segment, as a failover does.
func (s *Server) LoseBytes(n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run++
	for _, p := range s.pools {
		v := p.version
		if left := int64(len(v.bytes)) - n; left >= sharedlog.HeaderSize {
			v.bytes = slices.Clip(v.bytes[:left])
		}
		p.set(v)
	}
}

// Evict deletes the segment of a pool's log, as Redis may if its memory is full and its configuration allows it.
func (s *Server) Evict(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pool(name)
	v := p.version
	v.bytes, v.evicted = nil, true
	p.set(v)
}

// String describes the logs, for failed tests.
func (s *Server) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := ""
	for _, name := range slices.Sorted(maps.Keys(s.pools)) {
		p := s.pools[name]
		text += fmt.Sprintf("%s: incarnation %d, segment %d, %d bytes; snapshot of %d, %d ended\n", name, p.incarnation, p.segment, len(p.bytes), len(p.snapshot), len(p.ended))
	}
	return text
}
