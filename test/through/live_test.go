package through_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/sluicehttp"
)

// liveKey is a key that must turn up nowhere.
const liveKey = "sk-canary-realtime"

// studio is a provider of realtime connections behind a gate.
type studio struct {
	*testing.T
	mock    *mock.Server
	gate    *sluice.Gate
	proxy   *proxy.Proxy
	net     *wires
	client  *http.Client
	limits  []sluice.Limit
	log     bytes.Buffer
	mu      sync.Mutex
	done    []sluicehttp.Exchange
	dialect string
}

// roomy are limits that nothing reaches.
func roomy() []sluice.Limit {
	return []sluice.Limit{
		{Name: "requests", Kind: sluice.Rolling, Size: 100_000, Window: time.Minute},
		{Name: "tokens", Kind: sluice.Bucket, Unit: "tokens", Size: 1 << 30, Window: time.Minute},
		{Name: "inflight", Kind: sluice.Concurrency, Size: 4},
	}
}

// unlimited are limits of which the provider states none.
func unlimited() []sluice.Limit { return roomy()[2:] }

// open starts a provider and a gate with limits. Each of the functions changes something, and nil leaves it as it is.
func open(t *testing.T, o mock.Options, limits []sluice.Limit, change func(*proxy.Options), before func(http.Handler) http.Handler) *studio {
	t.Helper()
	s := &studio{T: t, net: newWires(), limits: limits, dialect: o.Provider}
	var err error
	if s.mock, err = mock.New(o); err != nil {
		t.Fatal(err)
	}
	s.gate, err = sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"api": {Limits: limits}}})
	if err != nil {
		t.Fatal(err)
	}
	dialect, _ := provider.Lookup(o.Provider)
	po := proxy.Options{
		Gate: s.gate, Classes: []string{"p0", "p1", "p2"}, Base: s.net.transport(t), Hosts: []string{"gate"},
		Resources: map[string]proxy.Resource{"api": {
			Upstream: &url.URL{Scheme: "http", Host: "provider"}, Dialect: dialect, Limits: limits, Deadline: 10 * time.Minute,
			Prices: provider.DefaultPrices().Micros,
		}},
		Done:     func(x sluicehttp.Exchange) { s.mu.Lock(); s.done = append(s.done, x); s.mu.Unlock() },
		Requests: slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Log:      slog.New(slog.NewTextHandler(&s.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&po)
	}
	if s.proxy, err = proxy.New(po); err != nil {
		t.Fatal(err)
	}
	var upstream http.Handler = s.mock
	if before != nil {
		upstream = before(upstream)
	}
	s.net.serve(t, "provider", upstream)
	s.net.serve(t, "gate", s.proxy)
	s.client = &http.Client{Transport: s.net.transport(t)}
	t.Cleanup(s.mock.Close)
	t.Cleanup(func() { _ = s.gate.Close() })
	t.Cleanup(s.proxy.Settle)
	return s
}

// voice is a client's side of a realtime connection.
type voice struct {
	*studio
	conn *websocket.Conn
}

const realtimePath = "/@speaker:p1/api/v1/realtime?model=gpt-realtime"

// connect opens a connection at a path of the gate, with headers given as names and values.
func (s *studio) connect(path string, header ...string) *voice {
	s.Helper()
	conn, resp, err := s.dial(path, header...)
	if err != nil {
		s.Fatalf("%v %+v", err, resp)
	}
	s.Cleanup(func() { _ = conn.CloseNow() })
	return &voice{s, conn}
}

func (s *studio) dial(path string, header ...string) (*websocket.Conn, *http.Response, error) {
	h := http.Header{"Authorization": {"Bearer " + liveKey}}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	var protocols []string
	if p := h.Get("Sec-Websocket-Protocol"); p != "" {
		protocols = strings.Split(p, ",")
		h.Del("Sec-Websocket-Protocol")
	}
	conn, resp, err := websocket.Dial(s.Context(), "ws://gate"+path, &websocket.DialOptions{HTTPClient: s.client, HTTPHeader: h, Subprotocols: protocols})
	if err == nil {
		conn.SetReadLimit(64 << 20)
	}
	return conn, resp, err
}

func (v *voice) say(event string) {
	v.Helper()
	if err := v.conn.Write(v.Context(), websocket.MessageText, []byte(event)); err != nil {
		v.Fatal(err)
	}
}

// happening is an event of the provider, as far as tests look at it.
type happening struct {
	Type       string          `json:"type"`
	ResponseID string          `json:"response_id"`
	Stream     string          `json:"stream_id"`
	Status     int             `json:"status"`
	Content    json.RawMessage `json:"serverContent"`
	Response   struct {
		ID     string `json:"id"`
		Status string `json:"status"`
	} `json:"response"`
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		EventID string `json:"event_id"`
	} `json:"error"`
}

// hear reads the next event.
func (v *voice) hear() happening {
	v.Helper()
	_, message, err := v.conn.Read(v.Context())
	if err != nil {
		v.Fatal(err)
	}
	var h happening
	if err := json.Unmarshal(message, &h); err != nil {
		v.Fatalf("%v: %s", err, message)
	}
	return h
}

// until reads events up to one of a type.
func (v *voice) until(kinds ...string) happening {
	v.Helper()
	for range 10_000 {
		h := v.hear()
		for _, kind := range kinds {
			if h.Type == kind {
				return h
			}
		}
	}
	v.Fatalf("no %v", kinds)
	return happening{}
}

// ask has one response, and returns its end.
func (v *voice) ask(i int) happening {
	v.Helper()
	v.say(fmt.Sprintf(`{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"question %d"}]}}`, i))
	v.say(fmt.Sprintf(`{"type":"response.create","event_id":"ask-%d"}`, i))
	return v.until("response.done", "error")
}

// used is what is charged to a limit.
func (s *studio) used(limit string) int64 {
	s.Helper()
	st, err := s.gate.Resource(context.WithoutCancel(s.Context()), "api")
	if err != nil {
		s.Fatal(err)
	}
	for _, l := range st.Limits {
		if l.Name == limit {
			return l.Used
		}
	}
	return -1
}

// idle checks that nothing is held.
func (s *studio) idle() {
	s.Helper()
	st, err := s.gate.Resource(context.WithoutCancel(s.Context()), "api")
	if err != nil {
		s.Fatal(err)
	}
	waiting := 0
	for _, n := range st.Waiting {
		waiting += n
	}
	if st.InFlight != 0 || waiting != 0 || s.used("inflight") > 0 {
		s.Errorf("%d tickets are out, %d wait, %d places are taken", st.InFlight, waiting, s.used("inflight"))
	}
}

// responses are the exchanges that are responses, and not connections.
func (s *studio) responses() (list []sluicehttp.Exchange) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.done {
		if x.Status != http.StatusSwitchingProtocols {
			list = append(list, x)
		}
	}
	return list
}

// sameBooks compares the gate's books with the provider's, to the token.
func (s *studio) sameBooks(want int64) {
	s.Helper()
	var sum, theirs mock.Usage
	for _, x := range s.responses() {
		if x.Status != http.StatusOK || !x.Usage.Known || x.Err != nil {
			s.Errorf("a response has status %d, usage known %v: %v", x.Status, x.Usage.Known, x.Err)
		}
		sum.Requests++
		sum.InputTokens += x.Usage.Input
		sum.OutputTokens += x.Usage.Output
	}
	for _, u := range s.mock.Stats().Ledger {
		theirs.Requests += u.Requests
		theirs.InputTokens += u.InputTokens
		theirs.OutputTokens += u.OutputTokens
	}
	if sum != theirs || sum.Requests != want {
		s.Errorf("the gate counts %+v, the provider %+v, want %d responses", sum, theirs, want)
	}
}

var strict = mock.Options{Provider: "openai", Requests: sim.Rate{N: 30, Window: time.Minute}, Algorithm: "rolling", Latency: 50 * time.Millisecond}
