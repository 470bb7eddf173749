package page

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/dashboard"
	"github.com/sluicehq/sluice/inspect"
	past "github.com/sluicehq/sluice/internal/history"
	_ "github.com/sluicehq/sluice/store/memstore"
)

// rig is a daemon with its page.
type rig struct {
	*testing.T
	gate   *sluice.Gate
	hub    *api.Hub
	url    string
	server *httptest.Server
	asking atomic.Int32 // questions for the status that are under way
	asked  atomic.Int64 // that were answered
	down   atomic.Bool  // nobody answers
	// quiet are parts of the browser's complaints that a test provokes.
	quiet []string
	// fake answers instead of the API, by path; nil: the API does.
	fake func(path string) any
	// fakes is the same with the query.
	fakes func(path, query string) any
	// date is the time that answers are from; nil: the real one.
	date func() time.Time
}

const plain = `
resources:
  search: {limits: [{name: minute, size: 80/min}], light: "off", breaker: "off"}
  places: {limits: [{name: inflight, concurrency: 1}]}
`

// begin starts a daemon, and serves it with the page.
func begin(t *testing.T, text string) *rig {
	t.Helper()
	r := &rig{T: t, hub: api.NewHub()}
	none := func(string) (string, bool) { return "", false }
	f, err := config.Parse("test.yaml", []byte(text), none)
	if err != nil {
		t.Fatal(err)
	}
	c, err := f.GateConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	book := past.Open(past.Options{})
	t.Cleanup(func() { _ = book.Close() })
	c.Store, c.Events = "mem:", func(e inspect.Event) { r.hub.Add(e); book.Event(e) }
	if r.gate, err = sluice.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.gate.Close() })
	base := http.DefaultTransport.(*http.Transport).Clone()
	t.Cleanup(base.CloseIdleConnections)
	d, err := daemon.New(daemon.Options{File: f, Gate: r.gate, Env: none, Base: base, Events: r.hub, History: book, Done: book.Done})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Settle)
	server := httptest.NewServer(r.compose(dashboard.Handler(), d))
	t.Cleanup(server.Close)
	t.Cleanup(r.hub.Close) // before the server: who listens would never leave
	t.Cleanup(server.CloseClientConnections)
	r.url, r.server = server.URL, server
	return r
}

// compose is the page at /, and the daemon for everything else.
func (r *rig) compose(page, d http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if r.down.Load() {
			panic(http.ErrAbortHandler) // the connection breaks
		}
		if r.date != nil {
			w.Header().Set("Date", r.date().UTC().Format(http.TimeFormat))
		}
		if q.URL.Path == "/v1/status" {
			r.asking.Add(1)
			defer func() { r.asked.Add(1); r.asking.Add(-1) }()
		}
		if r.fake != nil {
			if v := r.fake(q.URL.Path); v != nil {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(v) // who is gone misses nothing
				return
			}
		}
		if r.fakes != nil {
			if v := r.fakes(q.URL.Path, q.URL.RawQuery); v != nil {
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(v)
				return
			}
		}
		if q.URL.Path == "/" || strings.HasPrefix(q.URL.Path, "/page/") {
			page.ServeHTTP(w, q)
			return
		}
		d.ServeHTTP(w, q)
	})
}

// post calls the API, as somebody else than the page.
func (r *rig) post(path, body string, header ...string) {
	r.Helper()
	q, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		r.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode >= 300 {
		r.Fatalf("%s: %s", path, resp.Status)
	}
}

// paused reports whether the gate holds everybody.
func (r *rig) paused(resource string) bool {
	r.Helper()
	s, err := r.gate.Resource(r.Context(), resource)
	if err != nil {
		r.Fatal(err)
	}
	return s.PausedUntil != nil
}

// soon waits until something is so.
func soon(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("it never happened: %s", what)
		case <-tick.C:
		}
	}
}
