// Package remotestore uses the store of a daemon, for gates in other processes and on other machines. `sluice serve`
// offers its own store under /v1/store. It may be memory, files or Redis, which makes no difference here.
//
// Importing the package registers the schemes "http:", "https:" and "http+unix:". The token is the password of the
// URL, or the value of SLUICE_TOKEN.
package remotestore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

func init() {
	for _, scheme := range []string{"http", "https", "http+unix"} {
		store.Register(scheme, func(ctx context.Context, address string) (store.Store, error) { return Open(ctx, address) })
	}
}

// Store is the store of a daemon.
type Store struct {
	daemon transport
	now    func() store.Time // for tests; nil: the daemon's clock, extrapolated
	life   context.Context   // ends with the store
	end    context.CancelFunc

	mu      sync.Mutex
	client  string // the daemon's name for this process
	booked  bool   // the daemon keeps budgets; set once
	handles map[*handle]struct{}
	byName  map[int]*handle // by the daemon's number of their pool
	closed  bool
	lost    *outage // nil: the daemon can be reached
	streams bool    // a goroutine listens to the daemon
	keeps   bool    // a goroutine sends heartbeats to the daemon
	running sync.WaitGroup
	renewal sync.Mutex // held while the client is renewed
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Lister  = (*Store)(nil)
	_ store.Secrets = (*Store)(nil)
)

// Option changes how a store works.
type Option func(*Store)

// WithTransport replaces the HTTP transport.
func WithTransport(t http.RoundTripper) Option { return func(s *Store) { s.daemon.http.Transport = t } }

// Open connects to the daemon at an address, such as http://127.0.0.1:7979 or http+unix:/run/sluice.sock.
func Open(ctx context.Context, address string, opts ...Option) (*Store, error) {
	base, token, socket, err := parse(address)
	if err != nil {
		return nil, err
	}
	s := &Store{handles: map[*handle]struct{}{}, byName: map[int]*handle{}, daemon: newTransport(base, token, socket)}
	s.life, s.end = context.WithCancel(context.Background())
	for _, o := range opts {
		o(s)
	}
	hello, err := s.hello(ctx)
	if err != nil {
		s.end()
		return nil, err
	}
	s.client, s.booked = hello.Client, hello.Books
	return s, nil
}

// Config asks the daemon at an address for its public configuration, for processes without one of their own. It
// returns a file for package config.
func Config(ctx context.Context, address string) ([]byte, error) {
	a, err := get(ctx, address, "/v1/store", "/config", answerWithin, "application/yaml")
	return a.JSON, err
}

// Status asks the daemon at an address for its status, which it knows even while its own store is out of reach. It returns
// the JSON of GET /v1/status.
func Status(ctx context.Context, address string) ([]byte, error) {
	a, err := get(ctx, address, "/v1", "/status", answerWithin, "application/json")
	return a.JSON, err
}

// Answer is an answer that a daemon makes with the help of its event log.
type Answer struct {
	JSON []byte
	// EventLog is the name of that log, followed by the labels of the events that count. It is empty if the daemon does
	// not say.
	EventLog []string
}

// Report asks the daemon at an address what was sent since a moment, with the figures of each minute. It returns the JSON
// of GET /v1/report.
func Report(ctx context.Context, address string, since time.Time) (Answer, error) {
	return get(ctx, address, "/v1", "/report?minutes=true&since="+url.QueryEscape(since.UTC().Format(time.RFC3339Nano)), reportWithin, "application/json")
}

// Why asks the daemon at an address who waits and who was refused: at one resource, or at all if it is empty; of one agent,
// or of all. It returns the JSON of GET /v1/why, with at most one waiting request.
func Why(ctx context.Context, address, resource, agent string) (Answer, error) {
	q := url.Values{"resource": {resource}, "agent": {agent}, "limit": {"1"}, "refused": {"true"}}
	return get(ctx, address, "/v1", "/why?"+q.Encode(), lookWithin, "application/json")
}

// get returns what the daemon answers at a path. An answer of another type is not a daemon's.
func get(ctx context.Context, address, under, path string, within time.Duration, kind string) (Answer, error) {
	base, token, socket, err := parse(address)
	if err != nil {
		return Answer{}, err
	}
	l := newTransport(base, token, socket)
	l.under = under
	defer l.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	resp, err := l.send(ctx, http.MethodGet, path, nil, "")
	if err != nil {
		return Answer{}, err
	}
	if is, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); is != kind {
		_ = resp.Body.Close() // it is not read
		return Answer{}, l.stranger()
	}
	text, err := l.body(resp)
	return Answer{text, strings.Fields(resp.Header.Get(wire.EventLogHeader))}, err
}

// parse splits an address. Its errors do not show the address, because it may contain a token.
func parse(address string) (base *url.URL, token, socket string, err error) {
	token = os.Getenv("SLUICE_TOKEN")
	if path, ok := strings.CutPrefix(address, "http+unix:"); ok {
		if path = strings.TrimPrefix(path, "//"); !strings.HasPrefix(path, "/") {
			return nil, "", "", errors.New("after http+unix: comes the path of a socket, as in http+unix:/run/sluice.sock")
		}
		return &url.URL{Scheme: "http", Host: "localhost"}, token, path, nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Opaque != "" {
		return nil, "", "", errors.New("not the address of a daemon, such as http://127.0.0.1:7979")
	}
	if u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return nil, "", "", errors.New("nothing comes after the host and the port of a daemon's address")
	}
	if u.User != nil {
		secret, has := u.User.Password()
		if !has || u.User.Username() != "" {
			return nil, "", "", errors.New("before the @ comes a colon and the token, as in http://:TOKEN@127.0.0.1:7979")
		}
		token = secret
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host}, token, "", nil
}

// hello makes this process a client of the daemon.
func (s *Store) hello(ctx context.Context) (wire.Hello, error) {
	var h wire.Hello
	err := s.daemon.within(ctx, answerWithin, http.MethodPost, "/clients", nil, &h)
	if err == nil && h.Client == "" {
		err = unavailable(fmt.Errorf("%s: %w", s.daemon.name, wire.ErrCorrupt))
	}
	return h, err
}

// Pool implements [store.Store].
func (s *Store) Pool(ctx context.Context, spec store.Spec) (store.Pool, error) {
	h := newHandle(s, spec)
	s.mu.Lock()
	closed, client, lost := s.closed, s.client, s.lost
	s.mu.Unlock()
	if closed {
		return nil, store.ErrClosed
	}
	if lost != nil {
		return nil, lost.err
	}
	sent := time.Now()
	opened, err := s.open(ctx, client, &spec)
	if errors.Is(err, errGone) { // the daemon has forgotten this process
		if err = s.renew(ctx, client); err != nil {
			return nil, err
		}
		s.mu.Lock()
		client = s.client
		s.mu.Unlock()
		opened, err = s.open(ctx, client, &spec)
	}
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.ErrClosed // the daemon has been told that the client is gone
	}
	h.take(client, &opened, sent)
	s.handles[h] = struct{}{}
	if s.client == client { // otherwise the next call finds that it was renewed
		s.byName[h.name] = h
	}
	if !s.keeps {
		s.keeps = true
		s.running.Go(s.keepAlive)
	}
	return h, nil
}

func (s *Store) open(ctx context.Context, client string, spec *store.Spec) (wire.Opened, error) {
	var o wire.Opened
	return o, s.daemon.within(ctx, lookWithin, http.MethodPost, "/clients/"+client+"/pools", spec, &o)
}

// Pools implements [store.Lister].
func (s *Store) Pools(ctx context.Context) (list store.Listing, err error) {
	return list, s.daemon.within(ctx, lookWithin, http.MethodGet, "/pools", nil, &list)
}

// Secret implements [store.Secrets]. The secret is that of the daemon's store.
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	kept := wire.Secret{Name: name, Secret: fresh}
	if err := s.daemon.within(ctx, answerWithin, http.MethodPost, "/secret", &kept, &kept); err != nil {
		return nil, err
	}
	if len(kept.Secret) != store.SecretSize {
		return nil, unavailable(fmt.Errorf("%s: %w", s.daemon.name, wire.ErrCorrupt))
	}
	return kept.Secret, nil
}

// all returns all sessions.
func (s *Store) all() []*handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.handles))
}

// keepAlive sends heartbeats to the daemon. A stopped process sends none.
func (s *Store) keepAlive() {
	tick := time.NewTicker(wire.AliveEvery)
	defer tick.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case <-tick.C:
		}
		s.mu.Lock()
		client, lost := s.client, s.lost
		s.mu.Unlock()
		if lost != nil {
			continue // comeBack finds out when it is back
		}
		ctx, cancel := context.WithTimeout(s.life, answerWithin)
		err := s.daemon.ask(ctx, http.MethodPost, "/clients/"+client+"/alive", nil, nil)
		cancel()
		switch {
		case errors.Is(err, errGone):
			_ = s.renew(s.life, client) // if this fails, the next request finds out
		case errors.Is(err, errSilent) && s.life.Err() == nil:
			s.lose(err)
		}
	}
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	client, lost := s.client, s.lost
	s.mu.Unlock()
	handles := s.all()
	for _, h := range handles {
		h.settle()
	}
	s.end()
	var err error
	if lost == nil {
		ctx, cancel := context.WithTimeout(context.Background(), answerWithin)
		err = s.daemon.ask(ctx, http.MethodDelete, "/clients/"+client, nil, nil)
		cancel()
		if errors.Is(err, errGone) || errors.Is(err, store.ErrUnavailable) {
			err = nil // the daemon will find out by itself
		}
	}
	s.running.Wait()
	s.daemon.http.CloseIdleConnections()
	for _, h := range handles {
		h.tellAll()
	}
	return err
}
