package through_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// A session of 100 responses within a strict limit, paused in the middle: it is counted to the token, nothing is refused, and its place
// comes back.
func TestRealtimeSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := roomy()
		limits[0].Size = 30
		s := open(t, strict, limits, nil, nil)
		v := s.connect(realtimePath)
		if h := v.hear(); h.Type != "session.created" {
			t.Fatalf("%+v", h)
		}
		if n := s.used("inflight"); n != 1 {
			t.Errorf("%d places are taken", n)
		}
		for i := range 50 {
			if h := v.ask(i); h.Response.Status != "completed" {
				t.Fatalf("response %d: %+v", i, h)
			}
		}
		if err := s.gate.Pause(t.Context(), "api", 5*time.Minute, "test"); err != nil {
			t.Fatal(err)
		}
		paused, before := time.Now(), s.mock.Stats().Arrived
		v.say(`{"type":"response.create"}`)
		v.say(`{"type":"session.update","session":{"instructions":"be brief"}}`) // passes straight
		if h := v.hear(); h.Type != "session.updated" {
			t.Errorf("%+v", h)
		}
		if n := s.mock.Stats().Arrived; n != before {
			t.Errorf("%d responses were asked for in the pause", n-before)
		}
		time.AfterFunc(20*time.Second, func() { _ = s.gate.Resume(context.Background(), "api") })
		if h := v.until("response.done", "error"); h.Response.Status != "completed" || time.Since(paused) < 20*time.Second {
			t.Fatalf("after %v: %+v", time.Since(paused), h)
		}
		for i := range 49 {
			if h := v.ask(i); h.Response.Status != "completed" {
				t.Fatalf("response %d: %+v", i, h)
			}
		}
		stats := s.mock.Stats()
		if stats.Throttled != 0 || stats.WorstWindow > 30 {
			t.Errorf("%d refused, %d in one window", stats.Throttled, stats.WorstWindow)
		}
		s.sameBooks(100)
		for _, x := range s.responses() {
			if x.Agent != "speaker" || x.Class != "p1" || x.Model != "gpt-realtime" {
				t.Fatalf("%+v", x)
			}
		}
		if err := v.conn.Close(websocket.StatusNormalClosure, "bye"); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		s.idle()
		if strings.Contains(s.log.String(), liveKey) {
			t.Error("the key is in the log")
		}
	})
}

// A refusal pauses everybody, and the client gets its response a little later.
func TestRealtimeRefusalIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := strict
		o.Requests.N = 5
		s := open(t, o, unlimited(), nil, nil)
		v := s.connect(realtimePath)
		for i := range 12 {
			if h := v.ask(i); h.Response.Status != "completed" {
				t.Fatalf("response %d: %+v", i, h)
			}
		}
		if n := s.mock.Stats().Throttled; n == 0 {
			t.Error("nothing was refused: the test shows nothing")
		}
		s.sameBooks(12)
	})
}

// What an event states of limits is believed like what a header states.
func TestRealtimeStatesLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, []sluice.Limit{{Name: "requests", Kind: sluice.Bucket, Window: time.Minute, Unit: "requests", Per: []sluice.Scope{sluice.PerModel}}}, nil, nil)
		v := s.connect(realtimePath)
		v.ask(1)
		synctest.Wait()
		st, err := s.gate.Resource(t.Context(), "api")
		if err != nil {
			t.Fatal(err)
		}
		if len(st.Limits) != 1 || st.Limits[0].Limit != 30 {
			t.Errorf("%+v", st.Limits)
		}
	})
}

// Whoever dies, nothing is left of the connection.
func TestRealtimeDies(t *testing.T) {
	slow := strict
	slow.Pace = time.Second
	for name, kill := range map[string]func(s *studio, v *voice){
		"client":   func(_ *studio, v *voice) { _ = v.conn.CloseNow() },
		"provider": func(s *studio, _ *voice) { s.mock.Close() },
		"gate":     func(s *studio, _ *voice) { s.proxy.Settle() },
		"goodbye":  func(_ *studio, v *voice) { _ = v.conn.Close(websocket.StatusNormalClosure, "") },
	} {
		for _, at := range []string{"idle", "held", "answering"} {
			t.Run(name+" "+at, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					s := open(t, slow, roomy(), nil, nil)
					v := s.connect(realtimePath)
					v.hear()
					switch at {
					case "held":
						if err := s.gate.Pause(t.Context(), "api", 5*time.Minute, "test"); err != nil {
							t.Fatal(err)
						}
						v.say(`{"type":"response.create"}`)
						synctest.Wait()
					case "answering":
						v.say(`{"type":"response.create"}`)
						v.until("response.output_text.delta")
					}
					killed := make(chan struct{})
					go func() { kill(s, v); close(killed) }()
					if name == "provider" || name == "gate" {
						var err error
						for err == nil {
							_, _, err = v.conn.Read(t.Context())
						}
						if code := websocket.CloseStatus(err); code != websocket.StatusGoingAway {
							t.Errorf("the client reads %v", err)
						}
					}
					<-killed
					time.Sleep(time.Minute) // a response that was broken off keeps its ticket for a while
					synctest.Wait()
					s.idle()
					if n := len(s.responses()); at != "idle" && n != 1 {
						t.Errorf("%d responses were counted", n)
					}
				})
			})
		}
	}
}

// A response that waits can be cancelled. The provider never hears of it.
func TestRealtimeCancelWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		v.hear()
		if err := s.gate.Pause(t.Context(), "api", 5*time.Minute, "test"); err != nil {
			t.Fatal(err)
		}
		v.say(`{"type":"response.create","event_id":"first"}`)
		v.say(`{"type":"response.cancel"}`)
		if h := v.hear(); h.Type != "error" || h.Error.EventID != "first" || !strings.Contains(h.Error.Message, "cancelled") {
			t.Errorf("%+v", h)
		}
		if err := s.gate.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		if h := v.ask(1); h.Response.Status != "completed" {
			t.Errorf("%+v", h)
		}
		if n := s.mock.Stats().Arrived; n != 1 {
			t.Errorf("%d responses were asked for", n)
		}
	})
}

// A response that runs is cancelled by the provider, and costs what was made of it.
func TestRealtimeCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := strict
		slow.Pace = time.Second
		s := open(t, slow, roomy(), nil, nil)
		v := s.connect(realtimePath)
		v.say(`{"type":"response.create"}`)
		v.until("response.output_text.delta")
		v.say(`{"type":"response.cancel"}`)
		if h := v.until("response.done"); h.Response.Status != "cancelled" {
			t.Errorf("%+v", h)
		}
		s.sameBooks(1)
	})
}

// Several responses may be under way, each with its own ticket.
func TestRealtimeTwoResponses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		v.hear()
		v.say(`{"type":"response.create","response":{"conversation":"none","instructions":"one"}}`)
		v.say(`{"type":"response.create","response":{"conversation":"none","instructions":"two, which is longer"}}`)
		v.say(`{"type":"response.create","response":{"instructions":"three"}}`)
		v.say(`{"type":"response.create","event_id":"four"}`) // one of the conversation is under way
		done, failed := 0, 0
		for done < 3 || failed < 1 {
			switch h := v.until("response.done", "error"); {
			case h.Type == "response.done" && h.Response.Status == "completed":
				done++
			case h.Type == "error" && h.Error.Code == "conversation_already_has_active_response" && h.Error.EventID == "four":
				failed++
			default:
				t.Fatalf("%+v", h)
			}
		}
		synctest.Wait()
		ok := 0
		for _, x := range s.responses() {
			if x.Status == http.StatusOK {
				ok++
			}
		}
		if ok != 3 || len(s.responses()) != 4 {
			t.Errorf("%d of %d responses are counted", ok, len(s.responses()))
		}
	})
}

// A response that the provider starts by itself is counted too.
func TestRealtimeResponseNobodyAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		for range 3 {
			v.say(`{"type":"input_audio_buffer.append","audio":"` + strings.Repeat("AAAA", 1000) + `"}`)
			v.say(`{"type":"input_audio_buffer.commit"}`)
			v.until("response.done")
		}
		synctest.Wait()
		s.sameBooks(3)
		_ = v.conn.CloseNow()
		synctest.Wait()
		s.idle()
	})
}

// Messages that are too long end the connection, others pass whatever they are.
func TestRealtimeMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		v.hear()
		if err := v.conn.Write(t.Context(), websocket.MessageBinary, []byte{0, 1, 2, 255}); err != nil { // what the provider makes of it is its business
			t.Fatal(err)
		}
		if h := v.hear(); h.Type != "error" {
			t.Errorf("%+v", h)
		}
		w, err := v.conn.Writer(t.Context(), websocket.MessageText) // in several frames
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{`{"type":"resp`, `onse.create","event`, `_id":"parts"}`} {
			if _, err := w.Write([]byte(part)); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if h := v.until("response.done", "error"); h.Response.Status != "completed" {
			t.Errorf("%+v", h)
		}
		huge := bytes.Repeat([]byte(" "), 33<<20)
		_ = v.conn.Write(t.Context(), websocket.MessageText, huge)
		_, _, err = v.conn.Read(t.Context())
		if err == nil {
			t.Error("a huge message passes")
		}
		synctest.Wait()
		s.idle()
		s.sameBooks(1)
	})
}

// A client is answered when it pings while its response waits.
func TestRealtimePing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		if err := s.gate.Pause(t.Context(), "api", 5*time.Minute, "test"); err != nil {
			t.Fatal(err)
		}
		v.say(`{"type":"response.create"}`)
		read := make(chan error, 1)
		go func() {
			var err error
			for err == nil {
				_, _, err = v.conn.Read(t.Context())
			}
			read <- err
		}()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := v.conn.Ping(ctx); err != nil {
			t.Error(err)
		}
		_ = v.conn.CloseNow()
		<-read
		synctest.Wait()
		s.idle()
	})
}

// Who waits too long is told so in the provider's words, and the connection goes on.
func TestRealtimeDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		v.hear()
		if err := s.gate.Pause(t.Context(), "api", 20*time.Minute, "test"); err != nil {
			t.Fatal(err)
		}
		v.say(`{"type":"response.create","event_id":"late"}`)
		if h := v.hear(); h.Type != "error" || h.Error.Code != "rate_limit_exceeded" || h.Error.EventID != "late" || h.Status != http.StatusTooManyRequests {
			t.Errorf("%+v", h)
		}
		if err := s.gate.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		if h := v.ask(1); h.Response.Status != "completed" {
			t.Errorf("%+v", h)
		}
	})
}

// A provider that never answers keeps neither the client nor the ticket for good.
func TestRealtimeSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath, "X-Mock", "hang")
		v.hear()
		v.say(`{"type":"response.create","event_id":"lost"}`)
		if h := v.hear(); h.Type != "error" || h.Error.EventID != "lost" || h.Status != http.StatusGatewayTimeout {
			t.Errorf("%+v", h)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		st, err := s.gate.Resource(t.Context(), "api")
		if err != nil || st.InFlight != 1 { // the connection's
			t.Errorf("%d tickets are out: %v", st.InFlight, err)
		}
	})
}

// A client that does not read is cut off, and holds nothing.
func TestRealtimeSlowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		v.hear()
		v.say(`{"type":"response.create"}`)
		time.Sleep(5 * time.Minute) // nothing is buffered here
		synctest.Wait()
		s.idle()
	})
}

// Connections wait for places, and give them back.
func TestRealtimePlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := roomy()
		limits[2].Size = 1
		s := open(t, strict, limits, nil, nil)
		first := s.connect(realtimePath)
		time.AfterFunc(30*time.Second, func() { _ = first.conn.CloseNow() })
		began := time.Now()
		second := s.connect(realtimePath)
		second.hear()
		if d := time.Since(began); d < 30*time.Second {
			t.Errorf("the second waited for %v", d)
		}
		time.Sleep(time.Hour) // longer than a ticket lives that nobody keeps
		if n := s.used("inflight"); n != 1 {
			t.Errorf("%d places are taken", n)
		}
		if h := second.ask(1); h.Response.Status != "completed" {
			t.Errorf("%+v", h)
		}
	})
}

// The responses API over a WebSocket, several conversations at a time: it is counted to the token.
func TestResponsesSocket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := roomy()
		limits[0].Size = 30
		s := open(t, strict, limits, nil, nil)
		v := s.connect("/@codex:p2/api/v1/responses")
		for i := range 10 {
			v.say(fmt.Sprintf(`{"type":"response.create","model":"gpt-6.1-sol","input":"question %d"}`, i))
			if h := v.until("response.completed", "error"); h.Response.Status != "completed" {
				t.Fatalf("%+v", h)
			}
		}
		for i := range 4 {
			v.say(fmt.Sprintf(`{"type":"response.create","stream_id":"s%d","model":"gpt-6.1-sol","input":"the same question"}`, i))
		}
		seen := map[string]bool{}
		for range 4 {
			h := v.until("response.completed", "error")
			seen[h.Stream] = h.Response.Status == "completed"
		}
		if len(seen) != 4 || !seen["s0"] || !seen["s3"] {
			t.Errorf("%v", seen)
		}
		synctest.Wait()
		s.sameBooks(14)
		for _, x := range s.responses() {
			if x.Agent != "codex" || x.Class != "p2" || x.Model != "gpt-6.1-sol" {
				t.Fatalf("%+v", x)
			}
		}
	})
}

// A refusal of the responses API is an event with a status. It is waited out.
func TestResponsesSocketRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := strict
		o.Requests.N = 4
		s := open(t, o, unlimited(), nil, nil)
		v := s.connect("/api/v1/responses")
		for i := range 10 {
			v.say(fmt.Sprintf(`{"type":"response.create","model":"gpt-6.1-sol","input":"question %d"}`, i))
			if h := v.until("response.completed", "error"); h.Response.Status != "completed" {
				t.Fatalf("%+v", h)
			}
		}
		if n := s.mock.Stats().Throttled; n == 0 {
			t.Error("nothing was refused: the test shows nothing")
		}
		s.sameBooks(10)
		v.say(`{"type":"response.create","input":"no model"}`)
		if h := v.until("response.completed", "error"); h.Status != http.StatusBadRequest {
			t.Errorf("%+v", h)
		}
	})
}

// A connection that the provider refuses is refused with the provider's own answer, and other upgrades with the gate's.
func TestRealtimeHandshakeRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		for path, want := range map[string]int{"/api/v1/realtime": http.StatusBadRequest, "/api/v1/other": http.StatusNotImplemented, "/api/v1/chat/completions": http.StatusNotImplemented} {
			conn, resp, err := s.dial(path)
			if err == nil {
				_ = conn.CloseNow()
			}
			if err == nil || resp == nil || resp.StatusCode != want {
				t.Errorf("%s: %v %+v", path, err, resp)
			}
		}
		s.idle()
	})
}

// A key that comes as a protocol is a key, and turns up nowhere.
func TestRealtimeKeyAsProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var got []http.Header
		s := open(t, strict, roomy(), nil, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				mu.Lock()
				got = append(got, r.Header.Clone())
				mu.Unlock()
				h.ServeHTTP(w, r)
			})
		})
		v := s.connect(realtimePath, "Authorization", "", "Sec-Websocket-Protocol", "realtime,openai-insecure-api-key."+liveKey)
		if v.conn.Subprotocol() != "realtime" {
			t.Errorf("protocol %q", v.conn.Subprotocol())
		}
		v.ask(1)
		if h := got[0]; h.Get("Authorization") != "Bearer "+liveKey || strings.Contains(h.Get("Sec-Websocket-Protocol"), liveKey) {
			t.Errorf("%v", h)
		}
		synctest.Wait()
		if strings.Contains(s.log.String(), liveKey) {
			t.Error("the key is in the log")
		}
	})
}

// When a gate drains, a connection ends after its response, and no other comes in.
func TestRealtimeDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := strict
		slow.Pace = time.Second
		s := open(t, slow, roomy(), nil, nil)
		idle, busy := s.connect(realtimePath), s.connect(realtimePath)
		idle.hear()
		busy.say(`{"type":"response.create"}`)
		busy.until("response.output_text.delta")
		drained := make(chan struct{})
		go func() { s.proxy.DrainSockets(t.Context()); close(drained) }()
		if _, _, err := idle.conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("the idle one reads %v", err)
		}
		if _, resp, err := s.dial(realtimePath); err == nil || resp.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("another one came in: %v", err)
		}
		if h := busy.until("response.done"); h.Response.Status != "completed" {
			t.Errorf("%+v", h)
		}
		var closed websocket.CloseError
		if _, _, err := busy.conn.Read(t.Context()); !errors.As(err, &closed) || closed.Code != websocket.StatusGoingAway {
			t.Errorf("the busy one reads %v", err)
		}
		<-drained
		s.sameBooks(1)
		s.idle()
	})
}

const livePath = "/@speaker:p1/api/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent"

// turn has one turn of Gemini, and reports that it came to its end.
func (v *voice) turn(message string) error {
	v.Helper()
	v.say(message)
	for range 10_000 {
		_, message, err := v.conn.Read(v.Context())
		if err != nil {
			return err
		}
		if strings.Contains(string(message), `"turnComplete":true`) {
			return nil
		}
	}
	return errors.New("the turn does not end")
}

// Gemini's Live API: messages in binary frames, no ids, refusals by closing. It is counted to the token and held like the others.
func TestGeminiLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := []sluice.Limit{
			{Name: "requests", Kind: sluice.Rolling, Size: 30, Window: time.Minute},
			{Name: "input_tokens", Kind: sluice.Rolling, Unit: "input_tokens", Size: 1 << 30, Window: time.Minute},
			{Name: "inflight", Kind: sluice.Concurrency, Size: 4},
		}
		o := strict
		o.Provider = "gemini"
		s := open(t, o, limits, nil, nil)
		v := s.connect(livePath+"?key="+liveKey, "Authorization", "")
		v.say(`{"setup":{"model":"models/gemini-3.8-live","generationConfig":{"maxOutputTokens":100}}}`)
		if _, message, err := v.conn.Read(t.Context()); err != nil || !strings.Contains(string(message), "setupComplete") {
			t.Fatalf("%s %v", message, err)
		}
		for i := range 40 {
			message := fmt.Sprintf(`{"clientContent":{"turns":[{"role":"user","parts":[{"text":"question %d"}]}],"turnComplete":true}}`, i)
			switch i % 4 {
			case 1:
				message = fmt.Sprintf(`{"realtimeInput":{"text":"question %d"}}`, i)
			case 2:
				message = `{"realtimeInput":{"activityEnd":{}}}`
			case 3:
				message = fmt.Sprintf(`{"toolResponse":{"functionResponses":[{"id":"%d","name":"f","response":{}}]}}`, i)
			}
			if i > 35 {
				message = `{"realtimeInput":{"audioStreamEnd":true}}` // the provider answers by itself
			}
			if err := v.turn(message); err != nil {
				t.Fatalf("turn %d: %v", i, err)
			}
		}
		synctest.Wait()
		s.sameBooks(40)
		for _, x := range s.responses() {
			if x.Agent != "speaker" || x.Model != "models/gemini-3.8-live" {
				t.Fatalf("%+v", x)
			}
		}
		if n := s.mock.Stats().Throttled; n != 0 {
			t.Errorf("%d refused", n)
		}
		_ = v.conn.CloseNow()
		synctest.Wait()
		s.idle()
		if strings.Contains(s.log.String(), liveKey) {
			t.Error("the key is in the log")
		}
	})
}

// Gemini refuses by closing the connection. That pauses the resource, and the client gets the same.
func TestGeminiLiveRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := strict
		o.Provider, o.Requests.N = "gemini", 2
		s := open(t, o, roomy(), nil, nil)
		v := s.connect(livePath)
		v.say(`{"setup":{"model":"models/gemini-3.8-live"}}`)
		var err error
		turns := 0
		for ; err == nil && turns < 10; turns++ {
			err = v.turn(`{"clientContent":{"turns":[],"turnComplete":true}}`)
		}
		var closed websocket.CloseError
		if !errors.As(err, &closed) || closed.Code != websocket.StatusInternalError || !strings.Contains(closed.Reason, "quota") || turns != 3 {
			t.Errorf("%d turns: %v", turns, err)
		}
		synctest.Wait()
		st, err := s.gate.Resource(t.Context(), "api")
		if err != nil || len(st.Gates) == 0 && st.PausedUntil == nil {
			t.Errorf("%+v %v", st, err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		s.idle()
	})
}

// A provider that says what makes no sense does no harm: what it says passes, and nothing is left when the connection ends.
func TestRealtimeProviderMisbehaves(t *testing.T) {
	big := strings.Repeat("x", 33<<20)
	for name, script := range map[string][]string{
		"an end without a beginning": {`{"type":"response.done","response":{"id":"r1","status":"completed","usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}}`},
		"an end twice":               {`{"type":"response.created","response":{"id":"r1"}}`, `{"type":"response.done","response":{"id":"r1"}}`, `{"type":"response.done","response":{"id":"r1"}}`},
		"other responses":            {`{"type":"response.created","response":{"id":"a"}}`, `{"type":"response.created","response":{"id":"b"}}`, `{"type":"response.done","response":{"id":"c"}}`, `{"type":"response.done","response":{"id":"b"}}`},
		"no end":                     {`{"type":"response.created","response":{"id":"r1"}}`, `{"type":"response.output_text.delta","response_id":"r1","delta":"x"}`},
		"only a beginning":           {`{"type":"response.created","response":{"id":"r1"}}`},
		"an error of nobody":         {`{"type":"error","error":{"type":"server_error","message":"x"}}`, `{"type":"response.created","response":{"id":"r1"}}`, `{"type":"response.done","response":{"id":"r1"}}`},
		"an error of others":         {`{"type":"error","error":{"type":"server_error","event_id":"another"}}`, `{"type":"response.done","response":{"id":"r1"}}`},
		"a failure after the start":  {`{"type":"response.created","response":{"id":"r1"}}`, `{"type":"response.output_text.delta","response_id":"r1","delta":"x"}`, `{"type":"response.done","response":{"id":"r1","status":"failed","status_details":{"error":{"code":"server_error"}}}}`},
		"nonsense":                   {`{`, `[]`, `null`, `"x"`, ``, "\xff\xfe", `{"type":7}`, `{"type":"response.done"}`, `{"type":"rate_limits.updated","rate_limits":7}`, `{"type":"codex.rate_limits","rate_limits":{"primary":{"used_percent":"a"}}}`},
		"negative limits":            {`{"type":"rate_limits.updated","rate_limits":[{"name":"requests","limit":-1,"remaining":-5,"reset_seconds":-3}]}`},
		"a huge message":             {`{"type":"response.created","response":{"id":"r1"}}`, big},
		"silence":                    nil,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := open(t, strict, roomy(), nil, func(http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						conn, err := websocket.Accept(w, r, nil)
						if err != nil {
							return
						}
						defer func() { _ = conn.CloseNow() }()
						for {
							if _, _, err := conn.Read(context.WithoutCancel(r.Context())); err != nil {
								return
							}
							for _, message := range script {
								if conn.Write(context.WithoutCancel(r.Context()), websocket.MessageText, []byte(message)) != nil {
									return
								}
							}
						}
					})
				})
				v := s.connect(realtimePath)
				seen := make(chan int)
				go func() {
					n := 0
					for {
						if _, _, err := v.conn.Read(t.Context()); err != nil {
							seen <- n
							return
						}
						n++
					}
				}()
				v.say(`{"type":"response.create","event_id":"mine"}`)
				time.Sleep(time.Minute)
				if name != "a huge message" {
					v.say(`{"type":"response.create","event_id":"mine too"}`)
				}
				time.Sleep(15 * time.Minute)
				synctest.Wait()
				_ = v.conn.CloseNow()
				n := <-seen
				if want := 2 * len(script); n < want && name != "a huge message" {
					t.Errorf("%d of %d messages came", n, want)
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				s.idle()
			})
		})
	}
}
