package mock

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Server is a mock provider. It is an http.Handler; create one with [New].
type Server struct {
	opts    Options
	speaks  speaker
	keys    *fingerprints
	book    *book
	plans   plans
	tally   *tally
	journal journal
	started time.Time
	begins  store.Time

	stopping context.Context // ends when Close is called
	stop     context.CancelFunc

	mu   sync.Mutex
	draw *rand.Rand // for Options.Tail
}

// speaker is the API of one provider.
type speaker interface {
	// hello sets the headers of every response.
	hello(h http.Header)
	// serve answers a request to the API.
	serve(x *exchange)
	// headers states the limits.
	headers(h http.Header, at store.Time, states []stated)
	// refuse returns the response to a request over a limit.
	refuse(h http.Header, d *decision) (status int, body any)
	// problem returns the body of any other error.
	problem(h http.Header, status int, message string) any
	// broken returns an error in a response that began with status 200: an event if stream is set, else a body.
	broken(x *exchange, stream bool) (event string, body any)
}

// New returns a new server. Its error is an [ErrOptions].
func New(o Options) (*Server, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Server{opts: o, keys: newFingerprints(), tally: newTally(), journal: journal{to: o.Log}, draw: rand.New(rand.NewPCG(o.Seed, 0))}
	s.started = o.Now()
	s.begins = store.Time(s.started.UnixMicro())
	s.book = newBook(o.limits(), s.now)
	s.plans = plans{windows: o.Plan, overage: o.Overage, now: s.now, keys: map[fingerprint][]planned{}}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.speaks = map[string]speaker{"anthropic": anthropic{}, "openai": openai{}, "gemini": gemini{}, "github": github{}, "generic": generic{}}[o.Provider]
	return s, nil
}

// now returns the time, based on the start and the monotonic clock. Setting the system clock does not affect the
// limits.
func (s *Server) now() store.Time { return s.begins.Add(s.opts.Now().Sub(s.started)) }

// Close ends requests that hang because X-Mock asked for it. All other requests run to their end.
func (s *Server) Close() { s.stop() }

// Stats returns the counts since the start or the last [Server.Reset].
func (s *Server) Stats() Stats {
	st := s.tally.stats()
	st.WorstWindow = s.book.worstWindow()
	return st
}

// Reset clears the counts that Stats returns. The limits keep what was taken from them.
func (s *Server) Reset() {
	s.tally.reset()
	s.book.forget()
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.control(w, r) {
		return
	}
	x := &exchange{s: s, w: w, r: r}
	s.speaks.hello(w.Header())
	var err error
	if x.fault, err = parseFault(r.Header.Values("X-Mock")); err != nil {
		x.fail(http.StatusBadRequest, err.Error())
		return
	}
	defer x.end()
	s.speaks.serve(x)
}

// control serves the paths of the mock itself, such as /_mock/stats. It returns false for all other paths.
func (s *Server) control(w http.ResponseWriter, r *http.Request) bool {
	method, known := map[string]string{"/_mock/stats": http.MethodGet, "/_mock/reset": http.MethodPost}[r.URL.Path]
	if !known {
		return false
	}
	if r.Method != method && (method != http.MethodGet || r.Method != http.MethodHead) {
		w.Header().Set("Allow", method)
		http.Error(w, "use "+method, http.StatusMethodNotAllowed)
		return true
	}
	if method == http.MethodPost {
		s.Reset()
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(append(encode(s.Stats()), '\n')) // the client may be gone
	return true
}

// latency returns the time to the first byte of an accepted request.
func (s *Server) latency() time.Duration {
	d := s.opts.Latency
	if s.opts.Tail > 0 {
		s.mu.Lock()
		d += time.Duration(s.draw.ExpFloat64() * float64(s.opts.Tail))
		s.mu.Unlock()
	}
	return min(d, MaxDelay)
}
