package through_test

import (
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

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

// A warm-up of the connection (Codex sends one before each turn) takes no turn, passes while others wait, and is counted by
// nothing. Its events are not taken for those of the response that follows.
func TestWarmUpsTakeNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := roomy()
		limits[0].Size = 2
		s := open(t, strict, limits[:2], nil, nil)
		v := s.connect("/@codex:p2/api/v1/responses")
		warm := func() {
			t.Helper()
			v.say(`{"type":"response.create","generate":false,"model":"gpt-6.1-sol","input":"hi"}`)
			if h := v.until("response.completed", "error"); h.Response.Status != "completed" {
				t.Fatalf("%+v", h)
			}
		}
		began := time.Now()
		for i := range 2 {
			warm()
			v.say(fmt.Sprintf(`{"type":"response.create","model":"gpt-6.1-sol","input":"question %d"}`, i))
			if h := v.until("response.completed", "error"); h.Response.Status != "completed" {
				t.Fatalf("%+v", h)
			}
		}
		warm() // the limit is full
		if err := s.gate.Pause(t.Context(), "api", time.Hour, "test"); err != nil {
			t.Fatal(err)
		}
		warm()
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("a warm-up waited: all took %v", took)
		}
		synctest.Wait()
		st, err := s.gate.Resource(t.Context(), "api")
		if stats := s.mock.Stats(); err != nil || st.Sent != 2 || stats.Accepted != 2 || stats.Free != 1+4 { // the connection is free too
			t.Errorf("the gate sent %d, the provider accepted %d and counts %d as free (%v)", st.Sent, stats.Accepted, stats.Free, err)
		}
		free := 0
		for _, x := range s.responses() {
			if x.Free {
				free++
			} else if !x.Usage.Known || x.Usage.Output == 0 {
				t.Errorf("the usage of a response: %+v", x)
			}
		}
		if free != 4 || len(s.responses()) != 6 {
			t.Errorf("%d of %d exchanges were free", free, len(s.responses()))
		}
		if err := s.gate.Resume(t.Context(), "api"); err != nil {
			t.Fatal(err)
		}
		s.idle()
	})
}
