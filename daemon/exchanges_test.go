package daemon_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	chosen = `{"exchange":"an-id-of-a-client-1","resource":"api","url":"http://127.0.0.1:1/x","agent":"a"`
	atHome = "/v1/exchanges/an-id-of-a-client-1"
)

// A client that leaves gives its turn back by the id that it has chosen, whatever it has learned of the turn, and whichever of the two
// requests arrives first.
func TestAnExchangeIsGivenBackByItsID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginAPI(t, "resources: {api: {limits: [{name: hour, size: 100/h}, {name: places, concurrency: 1}]}}\n"+fourTokens)
		free := func(when string) {
			t.Helper()
			if used, places := r.limit("api", "hour").Used, r.limit("api", "places").Used; used != 0 || places != 0 {
				t.Errorf("%s: %d requests and %d places are taken", when, used, places)
			}
		}
		begin := func(token, more string, want int) {
			t.Helper()
			if code, body := r.as(token, "POST", "/v1/exchanges", chosen+more); code != want {
				t.Errorf("%d %s", code, body)
			}
		}
		back := func(token string, want int) {
			t.Helper()
			if code, body := r.as(token, "DELETE", atHome, ""); code != want {
				t.Errorf("%d %s", code, body)
			}
		}

		begin("top", `}`, http.StatusOK) // its reply gets lost
		begin("top", `}`, http.StatusConflict)
		begin("low", `}`, http.StatusConflict)
		back("low", http.StatusForbidden)
		back("top", http.StatusNoContent)
		free("granted")

		other := r.sends("low", "b")
		waits := make(chan struct{})
		go func() {
			defer close(waits)
			begin("top", `}`, http.StatusConflict)
		}()
		synctest.Wait()
		if code, body := r.as("top", "POST", atHome+"/answer", `{"status":200}`); code != http.StatusConflict {
			t.Errorf("a response before the turn: %d %s", code, body)
		}
		back("top", http.StatusNoContent)
		<-waits
		if code, body := r.as("low", "DELETE", "/v1/exchanges/"+other, ""); code != http.StatusNoContent {
			t.Errorf("%d %s", code, body)
		}
		free("waiting")

		back("top", http.StatusNotFound) // overtakes what it gives back
		begin("top", `}`, http.StatusConflict)
		free("before it began")
		begin("low", `}`, http.StatusOK) // another token's
		back("low", http.StatusNoContent)
		time.Sleep(time.Minute)
		begin("top", `}`, http.StatusOK)
		back("top", http.StatusNoContent)
		begin("top", `,"exchange":"short"}`, http.StatusBadRequest)
		begin("top", `,"exchange":"../../../../v1/status"}`, http.StatusBadRequest)
		free("refused")
	})
}

// An exchange whose client has died ends within a minute, and one that gives signs of life goes on.
func TestASilentClientLosesItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginAPI(t, "resources: {api: {limits: [{name: places, concurrency: 1}]}}\n"+fourTokens)
		for _, response := range []string{"", `{"status":200,"headers":{"content-type":"text/event-stream"}}`} {
			id := r.sends("top", "a")
			if response != "" {
				if code, body := r.as("top", "POST", "/v1/exchanges/"+id+"/answer", response); code != http.StatusOK {
					t.Fatalf("%d %s", code, body)
				}
			}
			for range 20 {
				time.Sleep(15 * time.Second)
				if code, body := r.as("top", "POST", "/v1/exchanges/"+id+"/body", `{}`); code != http.StatusNoContent {
					t.Fatalf("%d %s", code, body)
				}
			}
			if n := r.limit("api", "places").Used; n != 1 {
				t.Errorf("%d places are taken", n)
			}
			time.Sleep(61 * time.Second)
			if code, body := r.as("top", "POST", "/v1/exchanges", sends+`,"wait_ms":60000}`); code != http.StatusOK { // the provider may need a while to notice
				t.Errorf("after a client died: %d %s", code, body)
			} else {
				var turn struct{ Exchange string }
				if err := json.Unmarshal([]byte(body), &turn); err != nil {
					t.Fatal(err)
				}
				r.as("top", "DELETE", "/v1/exchanges/"+turn.Exchange, "")
			}
		}
	})
}

// Open exchanges of lower tokens leave as much of each limit free as their tickets do, and one of them reserves at most half.
func TestExchangesOfLowerTokensLeaveRoom(t *testing.T) {
	for _, limit := range []string{"{name: l, concurrency: 8}", "{name: l, size: 8/min}", "{name: l, size: 800/min, unit: output_tokens}"} {
		synctest.Test(t, func(t *testing.T) {
			r := beginAPI(t, "resources: {api: {provider: openai, limits: ["+limit+"], light: \"off\", guard: \"off\"}}\n"+fourTokens)
			take := func(token, wait, most string) (int, string) {
				body := `{"model":"gpt-5","max_completion_tokens":` + most + `,"messages":[]}`
				return r.as(token, "POST", "/v1/exchanges", `{"resource":"api","agent":"a","wait_ms":`+wait+`,"method":"POST","url":"https://api.openai.com/v1/chat/completions","headers":{"content-type":"application/json"},"body":`+quote(body)+`}`)
			}
			end := func(token, body string) {
				t.Helper()
				var turn struct{ Exchange string }
				if err := json.Unmarshal([]byte(body), &turn); err != nil {
					t.Fatal(err)
				}
				if code, body := r.as(token, "DELETE", "/v1/exchanges/"+turn.Exchange, ""); code != http.StatusNoContent {
					t.Errorf("%d %s", code, body)
				}
			}
			code, all := take("low", "0", "800")
			if used := r.limit("api", "l").Used; code != http.StatusOK || used > 400 {
				t.Errorf("%s: one reserves %d: %d %s", limit, used, code, all)
			}
			end("low", all)
			var first string
			for i := range 7 {
				code, body := take([]string{"low", "other"}[i%2], "1", "100")
				if code != http.StatusOK {
					t.Fatal(limit, i, code, body)
				}
				if i == 0 {
					first = body
				}
			}
			if code, body := take("low", "1000", "100"); code != http.StatusTooManyRequests || !strings.Contains(body, "one eighth") {
				t.Errorf("%s: the eighth: %d %s", limit, code, body)
			}
			if code, body := r.as("low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0,"units":{"requests":1,"output_tokens":100}}`); code != http.StatusTooManyRequests || !strings.Contains(body, "one eighth") {
				t.Errorf("%s: a ticket: %d %s", limit, code, body)
			}
			if code, body := take("top", "1", "100"); code != http.StatusOK {
				t.Errorf("%s: the highest class: %d %s", limit, code, body)
			}
			got := make(chan string)
			go func() {
				code, body := take("other", "120000", "100")
				if code != http.StatusOK {
					t.Errorf("%s: after one has ended: %d %s", limit, code, body)
				}
				got <- body
			}()
			synctest.Wait()
			end("low", first)
			<-got
		})
	}
}

// Reports that come twice, too early or too late are refused, and the exchange goes on as if they had not come.
func TestReportsOutOfPlace(t *testing.T) {
	r := begin(t, "openai", exchanged, map[string]string{"KEY": "k"})
	id := r.turn(`{"resource":"alone","url":"http://127.0.0.1:1/x"}`)
	if code, out := r.report(id, "answer", `{"status":200,"headers":{"content-type":"text/event-stream"},"body":"data: 1"}`); code != http.StatusOK {
		t.Fatalf("%d %v", code, out)
	}
	for _, again := range []string{`{"status":200,"body":"twice"}`, `{"status":429,"ended":"complete"}`, `{"error":"twice"}`} {
		if code, out := r.report(id, "answer", again); code != http.StatusConflict {
			t.Errorf("%s: %d %v", again, code, out)
		}
	}
	for _, bad := range []string{`{"body":{"base64":"?"}}`, `{"body":7}`, `{"ended":"twice"}`, `[]`, `{"x":1}`, `{"body":`, "\x00"} {
		if code, out := r.report(id, "body", bad); code != http.StatusBadRequest {
			t.Errorf("%s: %d %v", bad, code, out)
		}
	}
	if code, out := r.report(id, "body", `{"body":"more","ended":"complete"}`); code != http.StatusNoContent {
		t.Errorf("%d %v", code, out)
	}
	for _, to := range []string{"answer", "body"} {
		if code, out := r.report(id, to, `{"status":200}`[:map[string]int{"answer": 14, "body": 0}[to]]); code != http.StatusNotFound {
			t.Errorf("%s after the end: %d %v", to, code, out)
		}
	}
	if code, _ := r.call("DELETE", "/v1/exchanges/"+id, ""); code != http.StatusNotFound {
		t.Errorf("given back after the end: %d", code)
	}
	if n := r.limit("alone", "places").Used; n != 0 {
		t.Errorf("%d places are taken", n)
	}
	for _, id := range []string{"nothing", strings.Repeat("x", 100_000), "%2e%2e"} {
		if code, out := r.report(id, "body", `{}`); code != http.StatusNotFound {
			t.Errorf("%.10s: %d %v", id, code, out)
		}
	}
}

// Whatever a client sends is bounded, and so is what all of them make the daemon hold.
func TestExchangesAreBounded(t *testing.T) {
	r := begin(t, "openai", exchanged, map[string]string{"KEY": "k"})
	const open = `{"resource":"hub","url":"https://api.github.com/user"`
	long := strings.Repeat("x", 300<<10)
	for body, want := range map[string]int{
		open + `,"headers":{"a":"` + long + `"}}`:                        http.StatusBadRequest,
		open + `,"method":"` + long + `"}`:                               http.StatusBadRequest,
		`{"resource":"hub","url":"https://api.github.com/` + long + `"}`: http.StatusBadRequest,
		open + `,"agent":"` + long + `"}`:                                http.StatusBadRequest,
		open + `,"body":"` + strings.Repeat("x", 48<<20) + `"}`:          http.StatusRequestEntityTooLarge,
	} {
		if code, out := r.call("POST", "/v1/exchanges", body); code != want {
			t.Errorf("%.80s: %d %.200v", body, code, out)
		}
	}
	id := r.turn(open + `}`)
	if code, out := r.report(id, "body", `{"body":"`+strings.Repeat("x", 4<<20)+`"}`); code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %v", code, out)
	}
	if code, out := r.report(id, "answer", `{"status":200,"headers":{"a":"`+long+`"}}`); code != http.StatusBadRequest {
		t.Errorf("%d %v", code, out)
	}
	ask := func(size int64) (int, string) { // says that it sends so much
		q := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/v1/exchanges", strings.NewReader(open+`}`))
		q.ContentLength = size
		w := httptest.NewRecorder()
		r.daemon.ServeHTTP(w, q)
		return w.Code, w.Body.String()
	}
	code, first := ask(100 << 20)
	if code != http.StatusOK {
		t.Fatalf("%d %s", code, first)
	}
	for _, size := range []int64{48 << 20, -1} {
		if code, body := ask(size); code != http.StatusTooManyRequests || !strings.Contains(body, "memory") {
			t.Errorf("%d bytes: %d %s", size, code, body)
		}
	}
	if code, body := ask(1000); code != http.StatusOK {
		t.Errorf("a small one: %d %s", code, body)
	}
	var turn struct{ Exchange string }
	if err := json.Unmarshal([]byte(first), &turn); err != nil {
		t.Fatal(err)
	}
	if code, _ := r.call("DELETE", "/v1/exchanges/"+turn.Exchange, ""); code != http.StatusNoContent {
		t.Errorf("%d", code)
	}
	if code, body := ask(48 << 20); code != http.StatusOK {
		t.Errorf("after one has ended: %d %s", code, body)
	}
}

// An exchange goes on through a reload that changes its resource or takes it away. One of an observed resource waits for nothing, and
// one of a paused resource is refused.
func TestExchangesOfOtherConfigurations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "resources: {api: {limits: [{name: places, concurrency: 1}]}, rest: {limits: [{name: one, size: 100/h}]}}\n"
		r := reloadable(t, text)
		ask := func(resource, wait string) (int, map[string]any) {
			return r.call("POST", "/v1/exchanges", `{"resource":"`+resource+`","url":"http://127.0.0.1:1/","agent":"a","wait_ms":`+wait+`}`)
		}
		begin := func(resource string) string {
			t.Helper()
			code, out := ask(resource, "1")
			if code != http.StatusOK {
				t.Fatalf("%d %v", code, out)
			}
			return "/v1/exchanges/" + out["exchange"].(string)
		}
		first := begin("api")
		r.text = strings.Replace(text, "{limits: [{name: places, concurrency: 1}]}", `{mode: observe, limits: [{name: places, concurrency: 1}]}`, 1)
		r.must("POST", "/-/reload", "")
		observed := []string{begin("api"), begin("api"), begin("api")}
		r.must("POST", first+"/answer", `{"status":200}`)
		r.must("POST", first+"/body", `{"body":"x","ended":"complete"}`)
		for _, at := range observed {
			if out := r.must("POST", at+"/answer", `{"status":429,"headers":{"retry-after":"1"},"ended":"complete"}`); out["send_again"] != false {
				t.Errorf("%v", out)
			}
		}
		second := begin("api")
		r.text = "resources: {rest: {limits: [{name: one, size: 100/h}]}}\n"
		r.must("POST", "/-/reload", "")
		r.must("POST", second+"/answer", `{"status":200,"ended":"complete"}`)
		if code, out := ask("api", "1"); code != http.StatusNotFound {
			t.Errorf("a resource that has gone: %d %v", code, out)
		}
		running := begin("rest")
		r.must("POST", "/v1/resources/rest/pause", `{"for_ms":60000}`)
		if code, out := ask("rest", "1000"); code != http.StatusTooManyRequests || !strings.Contains(out["detail"].(string), "paused") {
			t.Errorf("a paused resource: %d %v", code, out)
		}
		r.must("POST", running+"/answer", `{"status":200,"ended":"complete"}`)
		if code, out := ask("rest", "120000"); code != http.StatusOK {
			t.Errorf("after the pause: %d %v", code, out)
		}
	})
}
