package sluicehttp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

const hour = time.Hour

// wideLimits are limits that hold no request, one for each counted unit.
func wideLimits() []sluice.Limit {
	limits := []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1000}}
	for _, unit := range []string{sluice.Requests, unitInput, sluice.OutputTokens, unitTokens, unitUSD, "special"} {
		limits = append(limits, sluice.Limit{Name: unit, Kind: sluice.Rolling, Size: 1 << 38, Window: 24 * hour, Unit: unit})
	}
	return limits
}

func openGate(tb testing.TB, r sluice.Resource) *sluice.Gate {
	tb.Helper()
	g, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{"api": r}})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	return g
}

// told collects the exchanges that Done gets.
type told struct {
	mu   sync.Mutex
	list []Exchange
}

func (d *told) done(e Exchange) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.list = append(d.list, e)
}

func (d *told) one(tb testing.TB) Exchange {
	tb.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.list) != 1 {
		tb.Fatalf("%d exchanges were told of, want 1: %+v", len(d.list), d.list)
	}
	return d.list[0]
}

// rig is a transport with a gate of its own.
type rig struct {
	*Transport
	told told
}

func newRig(tb testing.TB, limits ...sluice.Limit) *rig {
	tb.Helper()
	if limits == nil {
		limits = wideLimits()
	}
	x := &rig{}
	x.Transport = &Transport{
		Gate: openGate(tb, sluice.Resource{Limits: limits}), Resource: "api", Dialect: fake{}, Limits: limits,
		Caller: Caller{Agent: "tester"}, Done: x.told.done,
		unhurried: true,
	}
	tb.Cleanup(func() {
		x.Settle()
		x.CloseIdleConnections()
	})
	return x
}

func (x *rig) status(tb testing.TB) inspect.ResourceStatus {
	tb.Helper()
	s, err := x.Gate.Status(context.Background())
	if err != nil {
		tb.Fatal(err)
	}
	return s.Resources[0]
}

// used returns what is charged on a limit, over all of its scopes.
func (x *rig) used(tb testing.TB, limit string) (sum int64) {
	tb.Helper()
	for _, l := range x.status(tb).Limits {
		if l.Name == limit {
			sum += l.Used
		}
	}
	return sum
}

// wantQuiet fails if a ticket is open or a request waits.
func (x *rig) wantQuiet(tb testing.TB) {
	tb.Helper()
	s := x.status(tb)
	if s.InFlight != 0 || x.used(tb, "places") != 0 {
		tb.Errorf("%d tickets are out, %d places are taken", s.InFlight, x.used(tb, "places"))
	}
	for class, n := range s.Waiting {
		if n != 0 {
			tb.Errorf("%d of %s wait", n, class)
		}
	}
}

// wantCharged fails unless exactly these amounts are charged.
func (x *rig) wantCharged(tb testing.TB, want map[string]int64) {
	tb.Helper()
	for limit, n := range want {
		if got := x.used(tb, limit); got != n {
			tb.Errorf("%s: %d charged, want %d", limit, got, n)
		}
	}
}

// serve starts a server and returns its address.
func serve(tb testing.TB, h http.HandlerFunc) string {
	tb.Helper()
	s := httptest.NewServer(h)
	tb.Cleanup(s.Close)
	return s.URL
}

// do sends a request and reads the response.
func (x *rig) do(tb testing.TB, r *http.Request) (*http.Response, string) {
	tb.Helper()
	resp, err := x.RoundTrip(r)
	if err != nil {
		tb.Fatal(err)
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		tb.Fatal(err)
	}
	return resp, string(text)
}

func post(tb testing.TB, url, body string) *http.Request {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		tb.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	return r
}

func get(tb testing.TB, url string) *http.Request {
	tb.Helper()
	r, err := http.NewRequestWithContext(tb.Context(), http.MethodGet, url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// fake is a dialect whose calls describe themselves.
type fake struct{ provider.Generic }

type fakeCall struct {
	Model                          string
	Max                            int64
	Stream, Reserved, Hidden, Free bool
	Larger                         bool
	Plain                          bool // not one that takes tokens
	Special                        int64
}

// fakeEvent is a response, or a piece of one.
type fakeEvent struct {
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
	Usage *struct{ In, Read, Out int64 }
}

func (fake) Name() string    { return "fake" }
func (fake) Address() string { return "" }

func (fake) Ask(c *provider.Call) provider.ParsedRequest {
	var call fakeCall
	if json.Unmarshal(c.Body, &call) != nil && c.Whole {
		return provider.ParsedRequest{}
	}
	if _, model, ok := strings.Cut(c.Path, "/models/"); ok {
		call.Model = model
	}
	a := provider.ParsedRequest{
		Model: call.Model, Tokens: !call.Plain && !call.Free, Text: int64(len(c.Body)), MaxOutput: call.Max, Stream: call.Stream,
		Reserved: call.Reserved, Larger: call.Larger, Hidden: call.Hidden, Free: call.Free,
	}
	if call.Special > 0 {
		a.Cost = []sluice.Amount{{Unit: "special", N: call.Special}}
	}
	return a
}

func (fake) Key(h map[string][]string) string { return http.Header(h).Get("Authorization") }

func (fake) Usage(asked *provider.ParsedRequest, contentType string) provider.UsageReader {
	return &fakeReader{stream: strings.HasPrefix(contentType, "text/event-stream")}
}

func (fake) Spent(u *provider.Usage) []sluice.Amount {
	return []sluice.Amount{{Unit: unitInput, N: u.Input}, {Unit: sluice.OutputTokens, N: u.Output}} // what is read from a cache is free
}

func (fake) Refuse(int, string) (string, []byte) { return "", nil }

func (fake) Rename(c *provider.Call, model string) (string, []byte, bool) {
	if strings.Contains(model, "bad") {
		return "", nil, false
	}
	if before, _, ok := strings.Cut(c.Path, "/models/"); ok {
		return before + "/models/" + model, c.Body, true
	}
	i := bytes.Index(c.Body, []byte(`"auto"`))
	if i < 0 {
		return "", nil, false
	}
	body := append(bytes.Clone(c.Body[:i]), `"`+model+`"`...)
	return c.Path, append(body, c.Body[i+len(`"auto"`):]...), true
}

func (fake) AskUsage(body []byte) []byte {
	return append(bytes.TrimSuffix(bytes.Clone(body), []byte("}")), `,"tell":true}`...)
}

func (fake) OnlyUsage(data []byte) bool { return bytes.Contains(data, []byte(`"only"`)) }

// fakeReader reads whole lines and keeps an incomplete one.
type fakeReader struct {
	stream bool
	buf    []byte
	usage  provider.Usage
	failed provider.Observation
}

func (r *fakeReader) Write(p []byte) {
	r.buf = append(r.buf, p...)
	for {
		line, rest, ok := bytes.Cut(r.buf, []byte("\n"))
		if !ok {
			if !r.stream {
				r.take(r.buf, true)
			}
			return
		}
		r.buf = rest
		r.take(bytes.TrimPrefix(line, []byte("data: ")), !r.stream)
	}
}

func (r *fakeReader) take(data []byte, final bool) {
	var e fakeEvent
	if json.Unmarshal(data, &e) != nil {
		return
	}
	r.usage.Seen += int64(len(e.Text))
	if e.Usage != nil {
		r.usage.Input, r.usage.CacheRead, r.usage.Known = e.Usage.In, e.Usage.Read, true
		r.usage.Output = max(r.usage.Output, e.Usage.Out)
		r.usage.Final = final || e.Usage.Out > 1
	}
	if e.Error != "" {
		r.failed = provider.Observation{Verdict: store.VerdictOverloaded, Cause: "said so"}
	}
}

func (r *fakeReader) Usage() provider.Usage        { return r.usage }
func (r *fakeReader) Failed() provider.Observation { return r.failed }

// pipeNet is a network within the process, for virtual time.
type pipeNet struct {
	conns chan net.Conn
	done  chan struct{}
	delay time.Duration // of each connection
}

// pipeServer starts a server on its own network, and makes x use it. Call it in a synctest bubble.
func (x *rig) pipeServer(tb testing.TB, h http.HandlerFunc) *pipeNet {
	tb.Helper()
	n := &pipeNet{conns: make(chan net.Conn), done: make(chan struct{})}
	server := &http.Server{Handler: h}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(n)
	}()
	base := Tuned()
	base.DialContext, base.Proxy = n.dial, nil
	x.Base, x.unhurried = base, false
	tb.Cleanup(func() {
		base.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return n
}

func (n *pipeNet) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	if err := wait(ctx, n.delay); err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.done:
		return nil, errors.New("no server")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *pipeNet) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *pipeNet) Close() error {
	close(n.done)
	return nil
}

func (n *pipeNet) Addr() net.Addr { return &net.TCPAddr{} }
