package remotestore_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/daemon/storeapi"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
	"github.com/sluicehq/sluice/store/remotestore"
)

// rig is a daemon and a caller in one process, with connections in memory: virtual time will do.
type rig struct {
	*testing.T
	mem    store.Store // what the daemon lends: it outlives the daemon
	remote *remotestore.Store

	away atomic.Bool // the daemon cannot reach its store
	lone atomic.Bool // it grants what waits there by itself, under another id

	mu     sync.Mutex
	lent   *storeapi.Server
	server *http.Server
	line   *line
	lose   func(r *http.Request) loss
}

// failing is a store that can be away.
type failing struct {
	store.Store
	rig *rig
}

func (s *failing) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	p, err := s.Store.Pool(ctx, spec)
	if err != nil {
		return nil, err
	}
	return &failingPool{p, s.rig}, nil
}

type failingPool struct {
	store.Pool
	rig *rig
}

func (p *failingPool) Apply(ctx context.Context, ops []store.Op) error {
	if p.rig.away.Load() {
		return store.ErrUnavailable
	}
	if p.rig.lone.Load() && len(ops) == 1 && ops[0].Kind == store.OpPoll {
		granted := []store.Op{ask(0), {Kind: store.OpCancel, ID: ops[0].ID}}
		granted[0].Force = true
		err := p.Pool.Apply(ctx, granted)
		ops[0].Result = granted[0].Result
		return err
	}
	return p.Pool.Apply(ctx, ops)
}

// loss is what becomes of a request.
type loss int

const (
	arrives  loss = iota
	noAnswer      // it is served, and the answer is lost
	nowhere       // it gets nowhere
	gateway       // it is served, and somebody in between answers
	silence       // nobody answers
)

// line is a listener for connections that never leave the process.
type line struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once
}

func (l *line) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *line) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *line) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

func newRig(t *testing.T) *rig {
	r := &rig{T: t, lose: func(*http.Request) loss { return arrives }}
	r.mem = &failing{Store: memstore.New(), rig: r}
	r.start(anybody)
	transport := &http.Transport{DialContext: r.dial}
	var err error
	if r.remote, err = remotestore.Open(t.Context(), "http://daemon:7979", remotestore.WithTransport(&lossy{r, transport})); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.remote.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		r.stop()
		_ = r.mem.Close()
	})
	return r
}

// start starts a daemon.
func (r *rig) start(who func(*http.Request) (api.Identity, error)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lent = storeapi.New(storeapi.Options{Store: r.mem, Identify: who})
	r.line = &line{conns: make(chan net.Conn), done: make(chan struct{})}
	r.server = &http.Server{Handler: r.lent, ReadHeaderTimeout: time.Minute}
	go func() { _ = r.server.Serve(r.line) }()
}

// stop ends the daemon at once. Its store stays.
func (r *rig) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.server.Close()
	_ = r.lent.Close()
}

func (r *rig) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	r.mu.Lock()
	l := r.line
	r.mu.Unlock()
	here, there := net.Pipe()
	select {
	case l.conns <- there:
		return here, nil
	case <-l.done:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// drop decides what becomes of requests from now on.
func (r *rig) drop(f func(r *http.Request) loss) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lose = f
}

// applies reports a batch of operations.
func applies(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "/apply") }

type lossy struct {
	rig  *rig
	base http.RoundTripper
}

func (l *lossy) RoundTrip(r *http.Request) (*http.Response, error) {
	l.rig.mu.Lock()
	what := l.rig.lose(r)
	l.rig.mu.Unlock()
	switch what {
	case nowhere:
		return nil, errors.New("connection refused")
	case silence:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	resp, err := l.base.RoundTrip(r)
	if err == nil && what == gateway {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return &http.Response{Status: "502 Bad Gateway", StatusCode: http.StatusBadGateway, Body: io.NopCloser(strings.NewReader("<html>")), Request: r}, nil
	}
	if err == nil && what == noAnswer {
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return nil, errors.New("connection reset")
	}
	return resp, err
}

var places = store.Spec{
	Name:     "pool",
	Limits:   []store.Limit{{Name: "places", Kind: store.Concurrency, Unit: "requests", Size: 2}},
	Classes:  []store.Class{{Name: "p0", Weight: 1}},
	Throttle: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute}, Overload: store.Backoff{Start: time.Second, Factor: 2, Cap: time.Minute},
	MaxWaiting: 100, OnFailure: store.FailClosed,
}

// open opens the pool from afar.
func (r *rig) open(spec store.Spec) store.Pool {
	r.Helper()
	p, err := r.remote.Pool(r.Context(), spec)
	if err != nil {
		r.Fatal(err)
	}
	return p
}

// ask is an acquire of one place.
func ask(wait time.Duration) store.Op {
	return store.Op{Kind: store.OpAcquire, Agent: "a", Wait: wait, TTL: time.Hour, Amounts: []store.Amount{{Unit: "requests", N: 1}}}
}

func (r *rig) do(p store.Pool, op store.Op) store.Result {
	r.Helper()
	ops := []store.Op{op}
	if err := p.Apply(r.Context(), ops); err != nil {
		r.Fatal(err)
	}
	return ops[0].Result
}

// stands checks what the daemon's store holds.
func (r *rig) stands(inFlight, waiting int) {
	r.Helper()
	spec := places
	spec.ReadOnly = true
	p, err := r.mem.Pool(r.Context(), spec)
	if err != nil {
		r.Fatal(err)
	}
	defer p.Close()
	s, err := p.Snapshot(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	if s.InFlight != inFlight || len(s.Queue) != waiting {
		r.Errorf("%d in flight and %d waiting, want %d and %d", s.InFlight, len(s.Queue), inFlight, waiting)
	}
}
