package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

// The provider's limit is chaosSize requests in any chaosWindow.
const (
	chaosSize   = 20
	chaosWindow = 2 * time.Second
	chaosPlaces = 8 // most requests in flight
)

// lie is one way in which the provider misbehaves. It affects a part of the requests.
type lie struct {
	part                                     float64
	pick                                     int
	late, arrive, headers, refuse, fail, cut bool
}

// liar is a strict mock provider behind a handler that misbehaves. The mock's own log shows which requests arrived
// when.
type liar struct {
	mock   *mock.Server
	server *http.Server
	addr   string

	mu      sync.Mutex
	rand    *rand.Rand
	lies    []*lie
	entries []mock.Entry
	refused int        // by a lie
	spans   []progress // requests, in the order of their arrival

	hold chan struct{} // for tests: requests wait until it is closed; nil: they do not
}

// Write receives the mock's log.
func (l *liar) Write(line []byte) (int, error) {
	var e mock.Entry
	if err := json.Unmarshal(line, &e); err != nil {
		return 0, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	return len(line), nil
}

func startLiar(seed uint64) (*liar, error) {
	l := &liar{rand: rand.New(rand.NewPCG(seed, 99))}
	var err error
	l.mock, err = mock.New(mock.Options{
		Provider: "generic", Requests: sim.Rate{N: chaosSize, Window: chaosWindow}, Algorithm: "rolling",
		Latency: 5 * time.Millisecond, Seed: seed, Log: l, Now: time.Now,
	})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	l.addr = listener.Addr().String()
	l.server = &http.Server{Handler: l, ReadHeaderTimeout: time.Minute}
	go func() { _ = l.server.Serve(listener) }() // until stop
	return l, nil
}

func (l *liar) stop() {
	l.mock.Close()
	_ = l.server.Close() // no response matters any more
}

func (l *liar) begin(some *lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies = append(l.lies, some)
}

func (l *liar) end(some *lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lies = slices.DeleteFunc(l.lies, func(x *lie) bool { return x == some })
}

// log returns the entries so far, sorted by time.
func (l *liar) log() []mock.Entry {
	l.mu.Lock()
	all := slices.Clone(l.entries)
	l.mu.Unlock()
	slices.SortStableFunc(all, func(a, b mock.Entry) int { return a.Time.Compare(b.Time) })
	return all
}

// progress is the time that a request is in progress. A zero end means that it still is.
type progress struct {
	agent      string
	begin, end time.Time
	left       bool // end is when the provider noticed that the client had left
}

// noticed is how long it may take until the provider notices that a client is gone. The gate frees the request's place when
// it closes the connection, whatever the provider does with the request.
const noticed = 250 * time.Millisecond

// enter records a request in progress. The caller must call leave before it sends the answer.
func (l *liar) enter(ctx context.Context, agent string) (leave func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := len(l.spans)
	l.spans = append(l.spans, progress{agent: agent, begin: time.Now()})
	end := func(left bool) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if s := &l.spans[i]; s.end.IsZero() {
			s.end, s.left = time.Now(), left
		}
	}
	stop := context.AfterFunc(ctx, func() { end(true) })
	return func() {
		stop()
		end(false)
	}
}

// busiest returns the most requests in progress at the same time, and describes them. A request ends when its client
// leaves; late is how long the provider may take to notice that.
func (l *liar) busiest(late time.Duration) (most int, them string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	over := func(s *progress, at time.Time) bool {
		end := s.end
		if s.left {
			end = end.Add(-late)
		}
		return !s.end.IsZero() && !end.After(at)
	}
	for i := range l.spans {
		at := l.spans[i].begin
		running := slices.DeleteFunc(slices.Clone(l.spans[:i+1]), func(s progress) bool { return over(&s, at) })
		if len(running) <= most {
			continue
		}
		most, them = len(running), ""
		for _, s := range running {
			them += fmt.Sprintf("\n    %s since %v, for %v, its client left: %v", s.agent, round(at.Sub(s.begin)), round(s.end.Sub(s.begin)), s.left)
		}
	}
	return most, them
}

// now combines all lies that affect the current request.
func (l *liar) now() (all lie) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, x := range l.lies {
		if l.rand.Float64() < x.part {
			all.late, all.arrive, all.headers = all.late || x.late, all.arrive || x.arrive, all.headers || x.headers
			all.refuse, all.fail, all.cut = all.refuse || x.refuse, all.fail || x.fail, all.cut || x.cut
		}
	}
	all.pick = l.rand.IntN(1 << 16)
	if all.refuse {
		l.refused++
	}
	return all
}

// oddHints are Retry-After values of refusals. All last a few seconds at most, because Sluice follows hints.
var oddHints = []string{"", "0", "1", "-5", "soon", "1.5", "00000002", "Thu, 01 Jan 1970 00:00:00 GMT", "1e3", "2, 1", "\x80\xff", "99999999999999999999999"}

// ServeHTTP implements http.Handler.
func (l *liar) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// The server notices that a client has left only after the request was read.
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler) // the client left
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	defer l.enter(r.Context(), r.Header.Get("X-Agent-Id"))()
	x := l.now()
	if x.arrive {
		time.Sleep(time.Duration(x.pick%200) * time.Millisecond)
	}
	if l.hold != nil {
		<-l.hold
	}
	switch {
	case x.refuse:
		if hint := oddHints[x.pick%len(oddHints)]; hint != "" {
			w.Header().Set("Retry-After", hint)
		}
		http.Error(w, `{"error":"too many requests"}`, http.StatusTooManyRequests)
		return
	case x.fail:
		http.Error(w, `{"error":"not now"}`, []int{500, 502, 503, 529}[x.pick%4])
		return
	}
	answer := httptest.NewRecorder()
	l.mock.ServeHTTP(answer, r)
	if x.late {
		time.Sleep(time.Duration(x.pick%1500) * time.Millisecond)
	}
	if x.headers {
		odd(answer.Header(), x.pick)
	}
	for name, values := range answer.Header() {
		w.Header()[name] = values
	}
	said := answer.Body.Bytes()
	if x.cut {
		w.Header().Set("Content-Length", strconv.Itoa(len(said)))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(said[:len(said)/2]) // the client may be gone
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	w.WriteHeader(answer.Code)
	_, _ = w.Write(said) // the client may be gone
}

// odd removes the rate-limit headers or replaces them with wrong ones.
func odd(h http.Header, pick int) {
	h.Del("RateLimit")
	h.Del("RateLimit-Policy")
	switch pick % 7 {
	case 0: // no headers
	case 1:
		h.Set("RateLimit", "\"requests\";r=1000000;t=1")
		h.Set("RateLimit-Policy", "\"requests\";q=1000000;w=2")
	case 2:
		h.Set("RateLimit", "\x01;;r=;;=,,\"")
		h.Set("RateLimit-Policy", "%%%")
	case 3:
		h.Set("RateLimit", "\"requests\";r=-7;t=-1")
		h.Set("RateLimit-Policy", "\"requests\";q=20;w=2")
	case 4:
		h.Set("RateLimit", "\"requests\";r=0;t=1")
		h.Set("RateLimit-Policy", "\"requests\";q=20;w=2")
	case 5:
		h.Set("X-RateLimit-Limit", "99999999999999999999999999")
		h.Set("X-RateLimit-Remaining", "NaN")
		h.Set("X-RateLimit-Reset", "0")
	case 6:
		h.Set("X-RateLimit-Limit", "40")
		h.Set("X-RateLimit-Remaining", "40")
		h.Set("X-RateLimit-Reset", "1")
	}
}
