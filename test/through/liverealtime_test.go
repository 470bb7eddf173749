package through_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/sluicehq/sluice"
)

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

// A message that the gate cannot read used to pass as one that starts nothing, and the provider read it as a start.
func TestAMessageThatCannotBeReadStartsNoResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		v.hear()
		for name, message := range map[string]string{
			"deep":   `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `,"type":"response.create","event_id":"mine"}`,
			"twice":  `{"type":"response.create","type":"session.update"}`,
			"broken": `{"type":"response.create"`,
		} {
			v.say(message)
			if h := v.until("error", "response.done"); h.Status != http.StatusBadRequest || h.Error.Code != "invalid_request_error" || !strings.Contains(h.Error.Message, "cannot be read") {
				t.Errorf("%s: %+v", name, h)
			}
		}
		if n := s.mock.Stats().Arrived; n != 0 {
			t.Errorf("%d responses were started", n)
		}
		if h := v.ask(1); h.Response.Status != "completed" { // the connection goes on
			t.Errorf("%+v", h)
		}
		s.sameBooks(1)
	})
}

// The mock answered "Type" like "type", as no provider does.
func TestTheMockTellsCasesApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, strict, roomy(), nil, nil)
		v := s.connect(realtimePath)
		v.hear()
		v.say(`{"Type":"response.create"}`)
		if h := v.until("error", "response.done"); h.Error.Code != "invalid_value" {
			t.Errorf("%+v", h)
		}
		if n := s.mock.Stats().Arrived; n != 0 {
			t.Errorf("%d responses were started", n)
		}
	})
}
