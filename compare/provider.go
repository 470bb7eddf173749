package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

const (
	limitSize = 40 // of a bucket: this many at once, refilled within the window
	window    = 10 * time.Second
	latency   = 300 * time.Millisecond
	model     = "gpt-5.2"
	apiKey    = "sk-compare-0123456789abcdef"
	maxBody   = 1 << 20
)

// arrival is one line of the provider's log.
type arrival struct {
	at       time.Time
	took     time.Duration
	agent    string
	retry    bool // by the client's own header
	accepted bool
}

// provider is a strict mock provider with a log.
type provider struct {
	url    string
	server *http.Server
	mock   *mock.Server

	mu  sync.Mutex
	log []arrival
}

// newProvider starts a provider. A size of 0 means no limit.
func newProvider(size int64) (*provider, error) {
	opts := mock.Options{Provider: "openai"}
	if size > 0 {
		opts.Requests = sim.Rate{N: size, Window: window}
		opts.Latency = latency
	} else {
		opts.Requests = sim.Rate{N: 1e9, Window: window}
		opts.Pace = -1
	}
	m, err := mock.New(opts)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		m.Close()
		return nil, err
	}
	p := &provider{url: "http://" + ln.Addr().String(), mock: m}
	p.server = &http.Server{Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: time.Minute}
	go p.server.Serve(ln)
	return p, nil
}

func (p *provider) close() {
	p.server.Close()
	p.mock.Close()
}

// named finds the agent's name. Every request has it in its text, because some proxies do not forward headers.
var named = regexp.MustCompile(`\[([a-z0-9]+)/[0-9]+\]`)

func (p *provider) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	at := time.Now()
	seen := &statusWriter{ResponseWriter: w}
	agent := ""
	if m := named.FindSubmatch(body); m != nil {
		agent = string(m[1])
	}
	again, _ := strconv.Atoi(r.Header.Get("X-Stainless-Retry-Count")) // proxies may leave it out
	defer func() {
		if agent == "" || agent == "load" || seen.status == 0 {
			return
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.log = append(p.log, arrival{at: at, took: time.Since(at), agent: agent, retry: again > 0, accepted: seen.status < 400})
	}()
	p.mock.ServeHTTP(seen, r)
}

// arrivals returns the log so far.
func (p *provider) arrivals() []arrival {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]arrival(nil), p.log...)
}

// statusWriter records the status of the response.
type statusWriter struct {
	http.ResponseWriter
	status int
}

func (w *statusWriter) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

func (w *statusWriter) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

func (w *statusWriter) Flush() { http.NewResponseController(w.ResponseWriter).Flush() }

// answers waits until url answers a GET with a status below 500, or the program has ended.
func answers(ctx context.Context, url string, within time.Duration, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
			if res.StatusCode < 500 {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ended:
			return errEnded
		case <-time.After(100 * time.Millisecond):
		}
	}
}
