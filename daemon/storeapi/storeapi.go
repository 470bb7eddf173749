// Package storeapi lends a daemon's store to gates in other processes, also on other machines. It serves the paths
// under /v1/store, which package remotestore calls. Package wire defines the bodies.
package storeapi

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

// Bounds on what the server keeps for its clients.
const (
	maxClients = 4096
	maxPools   = 1024    // of one client
	maxOpen    = 16_384  // of all clients: each takes a few files
	maxSpec    = 1 << 20 // bytes that describe a pool
)

// Options configures a server.
type Options struct {
	Store store.Store
	// Identify returns who calls, or an error if the caller has no access.
	Identify func(r *http.Request) (api.Identity, error)
	// Uses reports whether the daemon itself uses a pool. Nil means that it uses none.
	Uses func(pool string) bool
	// Books is the ledger of the store's budgets, if it is not in the store itself. Nil means that it is.
	Books ledger.Ledger
	// Config returns the parts of the configuration in force that callers need, as YAML. Nil means that callers get
	// none.
	Config func() []byte
	// Refused sends a problem as the response. Nil means the problem alone.
	Refused func(w http.ResponseWriter, r *http.Request, p *api.Problem)
}

// Server lends a store. It is an [http.Handler] of everything under /v1/store.
type Server struct {
	Options
	mux  *http.ServeMux
	done chan struct{} // closed to end the streams

	mu      sync.Mutex
	clients map[string]*client
	closed  bool
}

// New returns a server that lends o.Store.
func New(o Options) *Server {
	s := &Server{Options: o, mux: http.NewServeMux(), done: make(chan struct{}), clients: map[string]*client{}}
	s.handle("POST /v1/store/clients", s.hello)
	s.handle("GET /v1/store/config", s.config)
	s.handle("GET /v1/store/pools", s.list)
	s.handle("POST /v1/store/secret", s.secret)
	s.of("DELETE /v1/store/clients/{client}", s.leave)
	s.of("POST /v1/store/clients/{client}/alive", func(w http.ResponseWriter, _ *http.Request, _ *client) error {
		w.WriteHeader(http.StatusNoContent)
		return nil
	})
	s.of("GET /v1/store/clients/{client}/watch", s.watch)
	s.of("POST /v1/store/clients/{client}/pools", s.open)
	s.at("POST /v1/store/clients/{client}/pools/{pool}/apply", s.apply)
	s.at("GET /v1/store/clients/{client}/pools/{pool}/snapshot", s.snapshot)
	s.at("GET /v1/store/clients/{client}/pools/{pool}/history", s.history)
	s.at("POST /v1/store/clients/{client}/pools/{pool}/foresee", s.foresee)
	s.at("DELETE /v1/store/clients/{client}/pools/{pool}", s.shut)
	s.lendBooks()
	s.handle("/v1/store/", func(w http.ResponseWriter, r *http.Request, _ api.Identity) error {
		if others := api.Methods(s.mux, r); others != "" {
			return api.NotAllowed(w, r, others)
		}
		return &api.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no %s %.200s", r.Method, r.URL.Path), Hint: "GET /v1/openapi.yaml describes the API"}
	})
	return s
}

// ServeHTTP serves one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if path.Clean(r.URL.Path) != strings.TrimSuffix(r.URL.Path, "/") { // the mux would answer with a redirect
		s.refuse(w, r, &api.Problem{Status: http.StatusNotFound, Detail: fmt.Sprintf("there is no %.200s", r.URL.Path)})
		return
	}
	s.mux.ServeHTTP(w, r)
}

// Drain ends the streams, which would never end by themselves, and refuses new clients.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		close(s.done)
	}
}

// Close drains the server and closes all clients with their pools.
func (s *Server) Close() error {
	s.Drain()
	s.mu.Lock()
	clients := s.clients
	s.clients = map[string]*client{}
	s.mu.Unlock()
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.close())
	}
	if s.Books != nil {
		errs = append(errs, s.Books.Close())
	}
	return errors.Join(errs...)
}

// handle serves a pattern to callers that have access and speak the same version.
func (s *Server) handle(pattern string, h func(http.ResponseWriter, *http.Request, api.Identity) error) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		err := s.serve(w, r, h)
		switch {
		case err == nil:
		case r.Context().Err() != nil:
			panic(http.ErrAbortHandler) // the client is gone, or got half a response: it must not look like a whole one
		default:
			s.refuse(w, r, problemOf(err))
		}
	})
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, p *api.Problem) {
	if s.Refused != nil {
		s.Refused(w, r, p)
		return
	}
	p.Write(w)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, h func(http.ResponseWriter, *http.Request, api.Identity) error) error {
	who, err := s.Identify(r)
	if err != nil {
		return err
	}
	if who.Agent != "" || who.Highest > 0 {
		return &api.Problem{
			Status: http.StatusForbidden, Detail: fmt.Sprintf("the token %.80q is bound to an agent or a class, but a client of the store can act as any agent", who.Token),
			Hint: "use this token with the API or the proxy; the store needs a token of the highest class without an agent",
		}
	}
	if v := r.Header.Get(wire.VersionHeader); v != wire.Version {
		return &api.Problem{
			Status: http.StatusBadRequest, Detail: fmt.Sprintf("the request speaks version %.20q of the store's language, this daemon %s", v, wire.Version),
			Hint: "use the same version of sluice on both sides",
		}
	}
	r.Body = http.MaxBytesReader(w, r.Body, wire.MaxBody)
	return h(w, r, who)
}

// of is like handle, for requests of a known client.
func (s *Server) of(pattern string, h func(http.ResponseWriter, *http.Request, *client) error) {
	s.handle(pattern, func(w http.ResponseWriter, r *http.Request, who api.Identity) error {
		c := s.enter(r.PathValue("client"), who.Token)
		if c == nil {
			return &api.Problem{Status: http.StatusGone, Detail: "unknown client: it was silent for too long, or the daemon restarted", Hint: "connect to the store again: POST /v1/store/clients"}
		}
		defer c.exit()
		return h(w, r, c)
	})
}

// at is like of, for requests about an open pool.
func (s *Server) at(pattern string, h func(http.ResponseWriter, *http.Request, *session) error) {
	s.of(pattern, func(w http.ResponseWriter, r *http.Request, c *client) error {
		n, err := strconv.Atoi(r.PathValue("pool"))
		p := c.pool(n)
		if err != nil || p == nil {
			return &api.Problem{Status: http.StatusGone, Detail: "the client has no such pool open", Hint: "open it again"}
		}
		return h(w, r, p)
	})
}

// config sends the configuration to callers that have none of their own.
func (s *Server) config(w http.ResponseWriter, _ *http.Request, _ api.Identity) error {
	if s.Config == nil {
		return &api.Problem{Status: http.StatusNotFound, Detail: "there is no configuration here"}
	}
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(s.Config()) // an error means that the client is gone
	return nil
}

// list returns the names of the store's pools.
func (s *Server) list(w http.ResponseWriter, r *http.Request, _ api.Identity) error {
	lister, ok := store.As[store.Lister](s.Store)
	if !ok {
		return &api.Problem{Status: http.StatusNotImplemented, Detail: "this store cannot list its pools"}
	}
	all, err := lister.Pools(r.Context())
	if err != nil {
		return err
	}
	return reply(w, all)
}

// secretRE matches names of secrets, which become names of files and keys.
var secretRE = lazyregexp.New(`^[a-z]{1,32}$`)

// secret returns a secret of the store, so that callers can label API keys as the daemon does without sending the keys.
func (s *Server) secret(w http.ResponseWriter, r *http.Request, _ api.Identity) error {
	var q wire.Secret
	d := json.NewDecoder(io.LimitReader(r.Body, maxSpec))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return badBody(err)
	}
	if !secretRE.MatchString(q.Name) || len(q.Secret) != store.SecretSize {
		return &api.Problem{Status: http.StatusBadRequest, Detail: "the body names no secret", Hint: "use the same version of sluice on both sides"}
	}
	keeper, ok := store.As[store.Secrets](s.Store)
	if !ok {
		return &api.Problem{Status: http.StatusNotImplemented, Detail: "this store keeps no secrets"}
	}
	kept, err := keeper.Secret(r.Context(), q.Name, q.Secret)
	if err != nil {
		return err
	}
	return reply(w, wire.Secret{Name: q.Name, Secret: kept})
}

// hello registers a new client.
func (s *Server) hello(w http.ResponseWriter, _ *http.Request, who api.Identity) error {
	c := &client{id: rand.Text(), token: who.Token, pools: map[int]*session{}, wake: make(chan struct{}, 1)}
	s.mu.Lock()
	full := len(s.clients) >= maxClients
	if !full && !s.closed {
		s.clients[c.id] = c
	}
	closed := s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return store.ErrClosed
	case full:
		return &api.Problem{Status: http.StatusServiceUnavailable, Detail: fmt.Sprintf("%d clients use the store already", maxClients)}
	}
	c.mu.Lock()
	c.seen = time.Now()
	c.timer = time.AfterFunc(wire.GoneAfter, func() { s.expire(c) })
	c.mu.Unlock()
	return reply(w, wire.Hello{Client: c.id, Books: s.Books != nil})
}

// enter finds a client and records a sign of life. It returns nil if there is no such client or if it belongs to
// another token.
func (s *Server) enter(id, token string) *client {
	s.mu.Lock()
	c := s.clients[id]
	s.mu.Unlock()
	if c == nil || c.token != token || !c.hear() {
		return nil
	}
	return c
}

// expire closes a client that has sent no sign of life for too long.
func (s *Server) expire(c *client) {
	if !c.lapsed(time.Now()) {
		return
	}
	s.drop(c)
}

func (s *Server) drop(c *client) {
	s.mu.Lock()
	delete(s.clients, c.id)
	s.mu.Unlock()
	_ = c.close() // an error means that the store is unreachable: its waiting requests expire there
}

func (s *Server) leave(w http.ResponseWriter, _ *http.Request, c *client) error {
	s.mu.Lock()
	delete(s.clients, c.id)
	s.mu.Unlock()
	if err := c.close(); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// open opens a pool for a client.
func (s *Server) open(w http.ResponseWriter, r *http.Request, c *client) error {
	var spec store.Spec
	d := json.NewDecoder(io.LimitReader(r.Body, maxSpec))
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		return badBody(err)
	}
	if s.pools() >= maxOpen {
		return &api.Problem{Status: http.StatusServiceUnavailable, Detail: fmt.Sprintf("%d pools are open from other processes, which is the maximum", maxOpen)}
	}
	spec.Restate = spec.Restate && s.has(c, spec.Name) // only the daemon may take back what others have stated
	p, err := s.Store.Pool(r.Context(), spec)
	if err != nil {
		return err
	}
	ops := []store.Op{{Kind: store.OpPoll, ID: store.ID{N: 1}}} // polls nothing, to learn the session's number
	if err := p.Apply(r.Context(), ops); err != nil {
		return errors.Join(err, p.Close())
	}
	n, err := c.add(&session{client: c, of: spec.Name, pool: p})
	if err != nil {
		return errors.Join(err, p.Close())
	}
	return reply(w, wire.Opened{Pool: n, Session: ops[0].ID.Session, Now: p.Now()})
}

// pools returns how many pools remote clients have open.
func (s *Server) pools() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clients {
		n += c.open()
	}
	return n
}

// has reports whether c is the only user of a pool.
func (s *Server) has(c *client, pool string) bool {
	if s.Uses != nil && s.Uses(pool) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.clients {
		if other != c && other.uses(pool) {
			return false
		}
	}
	return true
}

func reply(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // an error means that the client is gone
	return nil
}

func badBody(err error) error {
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return err
	}
	return &api.Problem{Status: http.StatusBadRequest, Detail: fmt.Sprintf("the body: %v", err), Hint: "use the same version of sluice on both sides"}
}

// problemOf converts an error of the store into a problem for the caller.
func problemOf(err error) *api.Problem {
	var p *api.Problem
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &large):
		return &api.Problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body has more than %d bytes", wire.MaxBody)}
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrClosed):
		p := &api.Problem{Status: http.StatusServiceUnavailable, Detail: err.Error()}
		var h interface{ Hint() string }
		if errors.As(err, &h) {
			p.Hint = h.Hint()
		}
		return p
	}
	return &api.Problem{Status: http.StatusBadRequest, Detail: err.Error()}
}
