package daemon_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

const exchanged = `
listen: unix:gate.sock
resources:
  openai: {provider: openai, upstream: "https://api.openai.com", abort: free, limits: [{name: tpm, unit: tokens, size: 100000/min}, {name: places, concurrency: 1}], light: "off", breaker: "off"}
  alone: {limits: [{name: places, concurrency: 1}], light: "off", breaker: "off"}
  lent: {provider: openai, upstream: "https://lent.example", inject: {header: Authorization, env: KEY}}
  hub: {provider: github, limits: [{name: places, concurrency: 5}]}
`

// limit is the state of a limit.
func (r *rig) limit(resource, name string) inspect.LimitStatus {
	r.Helper()
	st, err := r.gate.Resource(r.Context(), resource)
	if err != nil {
		r.Fatal(err)
	}
	for _, l := range st.Limits {
		if l.Name == name {
			return l
		}
	}
	r.Fatalf("%s has no limit %s", resource, name)
	return inspect.LimitStatus{}
}

// turn begins an exchange, and returns its id.
func (r *rig) turn(body string) string {
	r.Helper()
	code, out := r.call("POST", "/v1/exchanges", body)
	if code != http.StatusOK {
		r.Fatalf("%d %v", code, out)
	}
	return out["exchange"].(string)
}

func (r *rig) report(id, to, body string) (int, map[string]any) {
	r.Helper()
	return r.call("POST", "/v1/exchanges/"+id+"/"+to, body)
}

func quote(s string) string {
	text, _ := json.Marshal(s)
	return string(text)
}

const chat = `{"url":"https://api.openai.com/v1/chat/completions","method":"POST","headers":{"content-type":"application/json"},"agent":"a","body":`

// The daemon finds the resource by the address, reserves what the call may take, and charges what its response states.
func TestAnExchangeIsGatedAsAProxiedCall(t *testing.T) {
	r := begin(t, "openai", exchanged, map[string]string{"KEY": "k"})
	id := r.turn(chat + quote(`{"model":"gpt-5","max_completion_tokens":5000,"messages":[{"role":"user","content":"hi"}]}`) + `}`)
	if used := r.limit("openai", "tpm").Used; used < 500 {
		t.Errorf("%d tokens are reserved", used)
	}
	if n := r.limit("openai", "places").Used; n != 1 {
		t.Errorf("%d places are taken", n)
	}
	if code, out := r.call("POST", "/v1/exchanges", `{"url":"https://api.openai.com/v1/chat/completions","method":"POST","wait_ms":300,"agent":"b","body":`+quote(messages("gpt-5"))+`}`); code != http.StatusTooManyRequests || out["why"] != "deadline" {
		t.Errorf("a second one gets %d %v", code, out)
	}
	if code, out := r.report(id, "answer", `{"status":200,"headers":{"content-type":"application/json"},"ended":"complete","body":`+quote(`{"model":"gpt-5","choices":[],"usage":{"prompt_tokens":40,"completion_tokens":2,"total_tokens":42}}`)+`}`); code != http.StatusOK || out["send_again"] != false {
		t.Fatalf("%d %v", code, out)
	}
	if n := r.limit("openai", "places").Used; n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// A stream is settled when it ends, is left or breaks, and its usage is read from its pieces.
func TestAStreamIsReportedInPieces(t *testing.T) {
	r := begin(t, "openai", strings.Replace(exchanged, "name: tpm, unit: tokens", "name: itpm, unit: input_tokens", 1), map[string]string{"KEY": "k"})
	for _, ended := range []string{"complete", "left", "broken"} {
		before := r.limit("openai", "itpm").Used
		id := r.turn(chat + quote(`{"model":"gpt-5","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`) + `}`)
		if code, out := r.report(id, "answer", `{"status":200,"headers":{"content-type":"text/event-stream"}}`); code != http.StatusOK || out["send_again"] != false {
			t.Fatalf("%d %v", code, out)
		}
		for _, piece := range []string{"data: {\"choices\":[{\"delta\":{\"content\":\"hello\"}}]}\n\n", "data: {\"choices\":[],\"usage\":{\"prompt_tok", "ens\":77,\"completion_tokens\":3}}\n\ndata: [DONE]\n\n"} {
			if code, out := r.report(id, "body", `{"body":`+quote(piece)+`}`); code != http.StatusNoContent {
				t.Fatalf("%d %v", code, out)
			}
		}
		if n := r.limit("openai", "places").Used; n != 1 {
			t.Errorf("%s: %d places are taken before the end", ended, n)
		}
		if code, out := r.report(id, "body", `{"ended":"`+ended+`"}`); code != http.StatusNoContent {
			t.Fatalf("%d %v", code, out)
		}
		if n := r.limit("openai", "places").Used; n != 0 {
			t.Errorf("%s: %d places are taken", ended, n)
		}
		if got := r.limit("openai", "itpm").Used - before; got < 70 || got > 80 {
			t.Errorf("%s: %d input tokens are charged, 77 were used", ended, got)
		}
		if code, _ := r.report(id, "body", `{}`); code != http.StatusNotFound {
			t.Errorf("%s: an exchange that has ended gets %d", ended, code)
		}
	}
}

// A refusal is judged by its body, and the daemon says when to send again.
func TestAnExchangeIsSentAgain(t *testing.T) {
	r := begin(t, "openai", exchanged, map[string]string{"KEY": "k"})
	id := r.turn(`{"resource":"hub","url":"https://api.github.com/user"}`)
	if code, out := r.report(id, "answer", `{"status":403,"headers":{"retry-after":"1"},"ended":"complete","body":"{\"message\":\"You have exceeded a secondary rate limit\"}"}`); code != http.StatusOK || out["send_again"] != true {
		t.Fatalf("%d %v", code, out)
	}
	if code, out := r.report(id, "answer", `{"status":200,"ended":"complete"}`); code != http.StatusOK || out["send_again"] != false {
		t.Fatalf("%d %v", code, out)
	}
	id = r.turn(`{"resource":"hub","url":"https://api.github.com/user","once":true}`)
	if code, out := r.report(id, "answer", `{"status":429,"headers":{"retry-after":"1"},"ended":"complete"}`); code != http.StatusOK || out["send_again"] != false {
		t.Fatalf("%d %v", code, out)
	}
	report, err := r.gate.Report(r.Context(), time.Now().Add(-time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range report.Resources {
		if one.Name == "hub" && (one.Total.FirstSends != 2 || one.Total.Retries != 1) {
			t.Errorf("%+v", one.Total)
		}
	}
}

// What was not sent costs nothing. What was sent and failed keeps its charge.
func TestAnExchangeThatIsNotSent(t *testing.T) {
	r := begin(t, "openai", strings.Replace(exchanged, "places, concurrency: 1}], light: \"off\", breaker: \"off\"}\n  lent", "hour, size: 10/h}], light: \"off\", breaker: \"off\", guard: \"off\"}\n  lent", 1), map[string]string{"KEY": "k"})
	const ask = `{"resource":"alone","url":"http://127.0.0.1:1/x","method":"POST","agent":"a"}`
	if code, out := r.call("DELETE", "/v1/exchanges/"+r.turn(ask), ""); code != http.StatusNoContent {
		t.Fatalf("%d %v", code, out)
	}
	if used := r.limit("alone", "hour").Used; used != 0 {
		t.Errorf("%d are used", used)
	}
	for i, how := range []string{`{"error":"connection refused"}`, `{"error":"aborted","ended":"left"}`} {
		if code, out := r.report(r.turn(ask), "answer", how); code != http.StatusOK || out["send_again"] != false {
			t.Fatalf("%d %v", code, out)
		}
		if used := r.limit("alone", "hour").Used; used != int64(i+1) {
			t.Errorf("after %s %d are used", how, used)
		}
	}
}

// A client that goes away while it waits takes nothing.
func TestAnExchangeWhoseClientLeaves(t *testing.T) {
	r := begin(t, "openai", exchanged, map[string]string{"KEY": "k"})
	first := r.turn(`{"resource":"alone","url":"http://127.0.0.1:1/x","agent":"a"}`)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	wait.Go(func() {
		defer func() { _ = recover() }() // the handler of a client that is gone
		q := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/v1/exchanges", strings.NewReader(`{"resource":"alone","url":"http://127.0.0.1:1/x","agent":"b"}`))
		r.daemon.ServeHTTP(httptest.NewRecorder(), q)
	})
	for n := 0; n == 0; time.Sleep(time.Millisecond) {
		st, err := r.gate.Resource(t.Context(), "alone")
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range st.Waiting {
			n += int(w)
		}
	}
	cancel()
	wait.Wait()
	if code, out := r.report(first, "answer", `{"status":200,"ended":"complete"}`); code != http.StatusOK {
		t.Fatalf("%d %v", code, out)
	}
	if n := r.limit("alone", "places").Used; n != 0 {
		t.Errorf("%d places are taken", n)
	}
}

// What cannot be gated is refused with a reason.
func TestExchangesThatCannotBe(t *testing.T) {
	r := begin(t, "openai", exchanged, map[string]string{"KEY": "k"})
	for body, want := range map[string]struct {
		code int
		says string
	}{
		`{"url":"https://unknown.example/x"}`:                                         {404, "no resource has the address https://unknown.example"},
		`{"url":"/x","resource":"alone"}`:                                             {400, "whole"},
		`{"url":"https://lent.example/v1/models"}`:                                    {400, "API key of lent"},
		`{"resource":"nowhere","url":"http://127.0.0.1:1/"}`:                          {404, "nowhere"},
		`{"resource":"alone","url":"http://127.0.0.1:1/","class":"p9"}`:               {400, "p9"},
		`{"resource":"alone","url":"http://127.0.0.1:1/","method":"A B"}`:             {400, "method"},
		`{"resource":"alone","url":"http://127.0.0.1:1/","body":{"base64":"*"}}`:      {400, "base64"},
		`{"url":"https://api.openai.com/v1/responses","method":"POST","body":"{\"a"}`: {400, "model"},
	} {
		code, out := r.call("POST", "/v1/exchanges", body)
		if detail, _ := out["detail"].(string); code != want.code || !strings.Contains(detail, want.says) {
			t.Errorf("%s: %d %v", body, code, out)
		}
	}
	id := r.turn(`{"resource":"alone","url":"http://127.0.0.1:1/x"}`)
	for body, code := range map[string]int{`{"status":99}`: 400, `{"status":200,"ended":"soon"}`: 400} {
		if got, out := r.report(id, "answer", body); got != code {
			t.Errorf("%s: %d %v", body, got, out)
		}
	}
	if code, _ := r.report(id, "body", `{}`); code != http.StatusConflict {
		t.Errorf("a body before the response: %d", code)
	}
	if code, _ := r.call("DELETE", "/v1/exchanges/"+id, ""); code != http.StatusNoContent {
		t.Errorf("%d", code)
	}
}

// A daemon that ends settles the exchanges that nobody can report on any more.
func TestExchangesEndWithTheDaemon(t *testing.T) {
	r := begin(t, "openai", exchanged, map[string]string{"KEY": "k"})
	r.turn(`{"resource":"alone","url":"http://127.0.0.1:1/x"}`)
	r.daemon.Settle()
	if n := r.limit("alone", "places").Used; n > 1 {
		t.Errorf("%d places are taken", n)
	}
}
