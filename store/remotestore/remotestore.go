// Package remotestore is the store of a daemon, for gates in other processes and on other machines: `sluice serve` lends its
// own under /v1/store. What the daemon's store is, memory, files or Redis, makes no difference here.
//
// Importing it registers the schemes "http:", "https:" and "http+unix:". A token is the password of the URL, or
// in the variable SLUICE_TOKEN.
package remotestore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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

// Store is a daemon's, from afar.
type Store struct {
	link transport
	now  func() store.Time // for tests; nil: what the daemon's clock showed, and the time since
	life context.Context   // ends with the store
	end  context.CancelFunc

	mu      sync.Mutex
	client  string // that the daemon knows this process as
	booked  bool   // it keeps budgets; set once
	handles map[*handle]struct{}
	byName  map[int]*handle // as the daemon names their pools
	closed  bool
	lost    *outage // nil: the daemon can be reached
	streams bool    // somebody listens to the daemon
	keeps   bool    // somebody tells it that this process is alive
	running sync.WaitGroup
	renewal sync.Mutex // one at a time
}

var (
	_ store.Store   = (*Store)(nil)
	_ store.Lister  = (*Store)(nil)
	_ store.Secrets = (*Store)(nil)
)

// Option changes how a store works.
type Option func(*Store)

// WithTransport replaces how requests are sent.
func WithTransport(t http.RoundTripper) Option { return func(s *Store) { s.link.http.Transport = t } }

// Open reaches the daemon at an address, such as http://127.0.0.1:7979 or http+unix:/run/sluice.sock.
func Open(ctx context.Context, address string, opts ...Option) (*Store, error) {
	base, token, socket, err := parse(address)
	if err != nil {
		return nil, err
	}
	s := &Store{handles: map[*handle]struct{}{}, byName: map[int]*handle{}, link: newLink(base, token, socket)}
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

// Config asks the daemon at an address for its configuration, as far as that is for others: for those who have none of their own. It
// is a file for package config.
func Config(ctx context.Context, address string) ([]byte, error) {
	base, token, socket, err := parse(address)
	if err != nil {
		return nil, err
	}
	l := newLink(base, token, socket)
	defer l.http.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	resp, err := l.send(ctx, http.MethodGet, "/config", nil, "")
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, silent(fmt.Errorf("%s: %w", l.name, err))
	}
	return text, nil
}

// parse takes an address apart. Errors do not show it: it may hold a token.
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
	err := s.link.within(ctx, answerWithin, http.MethodPost, "/clients", nil, &h)
	if err == nil && h.Client == "" {
		err = unavailable(fmt.Errorf("%s: %w", s.link.name, wire.ErrCorrupt))
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
	if errors.Is(err, errGone) { // the daemon does not know us any more
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
		return nil, store.ErrClosed // the daemon has been told that all is over
	}
	h.take(client, &opened, sent)
	s.handles[h] = struct{}{}
	if s.client == client { // else the next call finds that it was renewed
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
	return o, s.link.within(ctx, lookWithin, http.MethodPost, "/clients/"+client+"/pools", spec, &o)
}

// Pools implements [store.Lister].
func (s *Store) Pools(ctx context.Context) (list store.Listing, err error) {
	return list, s.link.within(ctx, lookWithin, http.MethodGet, "/pools", nil, &list)
}

// Secret implements [store.Secrets]: it is that of the daemon's store.
func (s *Store) Secret(ctx context.Context, name string, fresh []byte) ([]byte, error) {
	kept := wire.Secret{Name: name, Secret: fresh}
	if err := s.link.within(ctx, answerWithin, http.MethodPost, "/secret", &kept, &kept); err != nil {
		return nil, err
	}
	if len(kept.Secret) != store.SecretSize {
		return nil, unavailable(fmt.Errorf("%s: %w", s.link.name, wire.ErrCorrupt))
	}
	return kept.Secret, nil
}

// all returns the sessions.
func (s *Store) all() []*handle {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.handles))
}

// keepAlive tells the daemon that this process is there: a stopped one does not.
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
			continue // somebody else finds out when it is back
		}
		ctx, cancel := context.WithTimeout(s.life, answerWithin)
		err := s.link.ask(ctx, http.MethodPost, "/clients/"+client+"/alive", nil, nil)
		cancel()
		switch {
		case errors.Is(err, errGone):
			_ = s.renew(s.life, client) // if that fails, the next one who asks finds out
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
		err = s.link.ask(ctx, http.MethodDelete, "/clients/"+client, nil, nil)
		cancel()
		if errors.Is(err, errGone) || errors.Is(err, store.ErrUnavailable) {
			err = nil // it will find out by itself
		}
	}
	s.running.Wait()
	s.link.http.CloseIdleConnections()
	for _, h := range handles {
		h.tellAll()
	}
	return err
}
