package daemon_test

import (
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/internal/history"
	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/remotestore/wire"
)

const fuzzed = `
resources:
  api:
    upstream: http://127.0.0.1:9
    limits:
    - {name: minute, size: 1000000/min}
    - {name: tokens, unit: input_tokens, size: 1000000/min}
budgets: [{name: day, per: fleet, size: 1000 usd/day}]
`

var backoff = store.Backoff{Start: time.Minute, Factor: 2, Cap: time.Hour}

// fuzzDaemon returns a daemon in memory. text returns the configuration that a reload reads.
func fuzzDaemon(f *testing.F, text func() string) *daemon.Daemon {
	f.Helper()
	load := func() (*config.File, error) {
		return config.Parse("test.yaml", []byte(text()), func(string) (string, bool) { return "", false })
	}
	file, err := load()
	if err != nil {
		f.Fatal(err)
	}
	st, err := store.Open(f.Context(), "mem:")
	if err != nil {
		f.Fatal(err)
	}
	open := func(ctx context.Context, file *config.File) (*sluice.Gate, error) {
		c, err := file.GateConfig(time.Now())
		if err != nil {
			return nil, err
		}
		return sluice.OpenWithStore(ctx, st, c)
	}
	gate, err := open(f.Context(), file)
	if err != nil {
		f.Fatal(err)
	}
	latest := gate
	book := history.Open(history.Options{Dir: f.TempDir()})
	d, err := daemon.New(daemon.Options{
		File: file, Gate: gate, Store: st, History: book, Base: &http.Transport{DisableKeepAlives: true},
		Reloading: daemon.Reloading{Load: load, Open: open, Follow: func(_ *config.File, gate *sluice.Gate) { latest = gate }},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { d.Settle(); _ = latest.Close(); _ = st.Close(); _ = book.Close() })
	return d
}

// leavesAfter returns when a client leaves: soon while the fuzzer searches for inputs, and practically never while
// tests run the known ones.
func leavesAfter() time.Duration {
	for _, name := range []string{"test.fuzz", "test.fuzzworker"} {
		if f := flag.Lookup(name); f != nil && f.Value.String() != f.DefValue {
			return time.Second
		}
	}
	return time.Minute
}

// answer returns a daemon's response. A stream ends with its first flush, and a waiting client leaves.
func answer(t *testing.T, d *daemon.Daemon, method, path string, body io.Reader) *httptest.ResponseRecorder {
	t.Helper()
	at, err := url.ParseRequestURI("http://localhost" + path)
	if err != nil { // the HTTP server answers, and not the daemon
		w := httptest.NewRecorder()
		w.WriteHeader(http.StatusBadRequest)
		return w
	}
	ctx, cancel := context.WithTimeout(t.Context(), leavesAfter())
	defer cancel()
	q := httptest.NewRequestWithContext(ctx, method, "http://localhost/", body)
	q.URL, q.RequestURI = at, path
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set(wire.VersionHeader, wire.Version)
	w := httptest.NewRecorder()
	began := time.Now()
	func() {
		defer func() {
			if v := recover(); v != nil && v != http.ErrAbortHandler { // the client has left
				panic(v)
			}
		}()
		d.ServeHTTP(flushed{w, cancel}, q)
	}()
	if took := time.Since(began); took > 2*time.Minute {
		t.Fatalf("%s %s took %v", method, path, took)
	}
	if ctx.Err() != nil {
		return w // it was a stream, or took so long that the client has left
	}
	if w.Code >= 400 {
		var p struct{ Title, Detail string }
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || p.Title == "" || p.Detail == "" {
			t.Errorf("%s %s: %d %q", method, path, w.Code, w.Body)
		}
	}
	if w.Code == http.StatusInternalServerError || w.Code == http.StatusBadGateway {
		t.Errorf("%s %s: %d %q", method, path, w.Code, w.Body)
	}
	return w
}

// methods is what a fuzzer chooses from.
var methods = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete}

// FuzzAPI sends any body to any route of the API, with any query: it gets a response, and errors are problems.
func FuzzAPI(f *testing.F) {
	d := fuzzDaemon(f, func() string { return fuzzed })
	for _, r := range rights {
		method, path, _ := strings.Cut(r.route, " ")
		if r.path != "" {
			path = r.path
		}
		for i, m := range methods {
			if rest, ok := strings.CutPrefix(path, "/v1/"); m == method && ok && !strings.HasPrefix(rest, "store/") {
				f.Add(uint8(i), rest, strings.ReplaceAll(r.body, "AGENT", "a"))
			}
		}
	}
	for _, q := range []string{"history?since=1h&step=1m&agents=true&events=5", "history?since=-1&step=0&top=99999999", "history?since=2026-01-01T00:00:00Z&until=2020-01-01T00:00:00Z", "why?agent=a&limit=-1", "recent?limit=1e9", "report?since=forever", "events?since=x"} {
		f.Add(uint8(0), q, "")
	}
	f.Add(uint8(1), "tickets", `{"resource":"api","agent":"a","units":{"requests":-1},"ttl_ms":9223372036854775807,"wait_ms":-5}`)
	f.Add(uint8(1), "tickets/api.1-1/answer", `{"status":429,"headers":{"retry-after":"1e400"},"body":"x"}`)
	f.Fuzz(func(t *testing.T, method uint8, rest, body string) {
		if strings.HasPrefix(rest, "store/") {
			return
		}
		answer(t, d, methods[int(method)%len(methods)], "/v1/"+rest, strings.NewReader(body))
	})
}

// FuzzStoreAPI sends any body to any route of the store that a daemon lends. CLIENT is a client with an open pool.
func FuzzStoreAPI(f *testing.F) {
	d := fuzzDaemon(f, func() string { return fuzzed })
	spec, err := json.Marshal(store.Spec{Name: "lent", Classes: []store.Class{{Name: "p0", Weight: 60}, {Name: "p1", Weight: 40}}, Throttle: backoff, Overload: backoff, Limits: []store.Limit{{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: 1000, Window: time.Minute}}})
	if err != nil {
		f.Fatal(err)
	}
	apply := oplog.AppendApply(nil, 0, []store.Op{{Kind: store.OpAcquire, Agent: "a", Amounts: []store.Amount{{Unit: "requests", N: 1}}}})
	for _, s := range []struct {
		method     uint8
		path, body string
	}{
		{1, "clients", ""}, {0, "config", ""}, {0, "pools", ""}, {1, "secret", `{"name":"keys","secret":"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}`},
		{1, "clients/CLIENT/alive", ""}, {0, "clients/CLIENT/watch", ""}, {1, "clients/CLIENT/pools", string(spec)}, {1, "clients/CLIENT/pools", `{"Name":"x","Limits":[{"Size":-1}]}`},
		{1, "clients/CLIENT/pools/1/apply?seq=1", string(apply)}, {1, "clients/CLIENT/pools/1/apply?seq=1", string(apply[:len(apply)-8])}, {0, "clients/CLIENT/pools/1/snapshot", ""},
		{0, "clients/CLIENT/pools/1/history?since=0", ""}, {3, "clients/CLIENT/pools/1", ""}, {1, "books/take", `{"Amount":1,"Lines":[{"Budget":"day","Size":5}],"TTL":1000000000}`},
		{1, "books/settle", `{"receipt":"a","actual":1}`}, {1, "books/cancel", `{"receipt":""}`}, {1, "books/tell", `{"line":{"Budget":"day"}}`}, {1, "books/read", `{"pots":[{"Budget":"day"}]}`},
	} {
		f.Add(s.method, s.path, s.body)
	}
	f.Fuzz(func(t *testing.T, method uint8, rest, body string) {
		client := hello(t, d, string(spec))
		answer(t, d, methods[int(method)%len(methods)], "/v1/store/"+strings.Replace(rest, "CLIENT", client, 1), strings.NewReader(body))
		answer(t, d, http.MethodDelete, "/v1/store/clients/"+client, nil)
	})
}

// hello makes a client with an open pool.
func hello(t *testing.T, d *daemon.Daemon, spec string) string {
	t.Helper()
	var h wire.Hello
	if w := answer(t, d, http.MethodPost, "/v1/store/clients", nil); json.Unmarshal(w.Body.Bytes(), &h) != nil || h.Client == "" {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if w := answer(t, d, http.MethodPost, "/v1/store/clients/"+h.Client+"/pools", strings.NewReader(spec)); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return h.Client
}

// FuzzLentOps applies any operation to a lent pool: the pool keeps working.
func FuzzLentOps(f *testing.F) {
	d := fuzzDaemon(f, func() string { return fuzzed })
	spec, err := json.Marshal(store.Spec{Name: "lent", Classes: []store.Class{{Name: "p0", Weight: 60}, {Name: "p1", Weight: 40}}, Throttle: backoff, Overload: backoff, Limits: []store.Limit{{Name: "minute", Kind: store.Rolling, Unit: "requests", Size: 1 << 40, Window: time.Minute}}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(uint8(store.OpAcquire), uint8(1), int64(1), int64(0), int64(1e9), uint64(0), uint64(0), "a", "m", uint8(0), int64(5))
	f.Add(uint8(store.OpAnswer), uint8(0), int64(-1), int64(1<<62), int64(-1), uint64(1), uint64(1), "", "", uint8(4), int64(-1<<62))
	f.Add(uint8(store.OpClose), uint8(200), int64(1<<62), int64(-1<<62), int64(1<<62), uint64(1<<63), uint64(1<<63), strings.Repeat("x", 300), "m", uint8(255), int64(0))
	for k := range uint8(20) {
		f.Add(k, uint8(2), int64(3), int64(0), int64(1e9), uint64(7), uint64(9), "b", "", uint8(1), int64(1e9))
	}
	f.Fuzz(func(t *testing.T, kind, class uint8, amount, wait, ttl int64, session, n uint64, agent, model string, verdict uint8, after int64) {
		client := hello(t, d, string(spec))
		op := store.Op{
			Kind: store.OpKind(kind), Class: class, Wait: time.Duration(wait), TTL: time.Duration(ttl), Alive: time.Duration(ttl), ID: store.ID{Session: session, N: n}, Agent: agent, Model: model,
			Verdict: store.Verdict(verdict), RetryAfter: time.Duration(after), User: model, Tool: agent, Key: model,
		}
		op.Amounts = []store.Amount{{Unit: "requests", N: amount}, {Unit: model, Limit: "minute", N: amount}}
		at := "/v1/store/clients/" + client + "/pools/1"
		w := answer(t, d, http.MethodPost, at+"/apply?seq=1", strings.NewReader(string(oplog.AppendApply(nil, 0, []store.Op{op}))))
		ops := make([]store.Op, 1)
		if w.Code == http.StatusOK {
			if err := wire.ReadResults(w.Body.Bytes(), ops); err != nil {
				t.Errorf("%+v: %v", op, err)
			}
		}
		if w := answer(t, d, http.MethodGet, at+"/snapshot", nil); w.Code != http.StatusOK {
			t.Errorf("after %+v: %d %s", op, w.Code, w.Body)
		}
		answer(t, d, http.MethodDelete, "/v1/store/clients/"+client, nil)
	})
}

// FuzzReload gives a running daemon any configuration: it applies the whole configuration, or reports the error and
// goes on as before.
func FuzzReload(f *testing.F) {
	var text atomic.Value
	text.Store(fuzzed)
	d := fuzzDaemon(f, func() string { return text.Load().(string) })
	f.Add(fuzzed)
	f.Add(strings.Replace(fuzzed, "1000000/min", "5/h", 1))
	f.Add(strings.Replace(fuzzed, "1000000/min", "1000000/min, per: [agent]", 1))
	f.Add("resources: {api: {upstream: 'http://127.0.0.1:9', limits: [{name: minute, size: 0/min}]}}")
	f.Add("resources: {other: {provider: openai}}\nclasses: [{name: p0}, {name: p9}]")
	f.Add("tokens: [{name: a, hash: " + strings.Repeat("0", 64) + "}]")
	f.Add("store: redis://127.0.0.1:1\n")
	f.Add("{")
	f.Fuzz(func(t *testing.T, next string) {
		if strings.Contains(next, "tokens") || len(next) > 4096 { // a token would lock the test out
			return
		}
		text.Store(next)
		w := answer(t, d, http.MethodPost, "/-/reload", nil)
		text.Store(fuzzed)
		if w.Code != http.StatusOK && w.Code != http.StatusBadRequest && w.Code != http.StatusConflict && w.Code != http.StatusUnprocessableEntity && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%q: %d %s", next, w.Code, w.Body)
		}
		if w := answer(t, d, http.MethodGet, "/v1/status", nil); w.Code != http.StatusOK {
			t.Errorf("after %q: %d %s", next, w.Code, w.Body)
		}
	})
}
