package mock_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// clock is a clock that tests set.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: sim.Epoch.Std()} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func perMinute(n int64) sim.Rate { return sim.Rate{N: n, Window: time.Minute} }

// server returns a provider without delays.
func server(t testing.TB, o mock.Options) *mock.Server {
	t.Helper()
	if o.Pace == 0 {
		o.Pace = -1
	}
	s, err := mock.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// send sends a request to the server. Headers are "Name: value".
func send(s http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

// decoded returns a JSON body as a map.
func decoded(t testing.TB, body []byte) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatalf("%v in %q", err, body)
	}
	return v
}

// at follows names and indexes into a JSON value. It returns nil if the path does not exist.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

// event is one event of a stream.
type event struct {
	name string
	data string
}

func events(t testing.TB, body []byte) (all []event) {
	t.Helper()
	var e event
	for lines := bufio.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "":
			all = append(all, e)
			e = event{}
		case strings.HasPrefix(line, "event: "):
			e.name = line[7:]
		case strings.HasPrefix(line, "data: "):
			e.data = line[6:]
		default:
			t.Fatalf("line %q in a stream", line)
		}
	}
	return all
}

func names(all []event) string {
	var list []string
	for _, e := range all {
		list = append(list, e.name)
	}
	return strings.Join(list, " ")
}

func TestOptionsThatMakeNoSense(t *testing.T) {
	for _, o := range []mock.Options{
		{}, {Provider: "acme"}, {Provider: "generic", Algorithm: "leaky"}, {Provider: "generic", InputTokens: perMinute(1)},
		{Provider: "github", OutputTokens: perMinute(1)}, {Provider: "generic", Concurrency: -1}, {Provider: "generic", Latency: -1},
		{Provider: "generic", Tail: 1000 * time.Hour}, {Provider: "generic", Published: true, Requests: perMinute(1)},
		{Provider: "openai", InputTokens: perMinute(1), OutputTokens: sim.Rate{N: 1, Window: time.Hour}},
		{Provider: "generic", Requests: sim.Rate{N: -1, Window: time.Minute}}, {Provider: "generic", Requests: sim.Rate{N: 1}},
	} {
		if _, err := mock.New(o); !errors.Is(err, mock.ErrOptions) {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

func TestStatsHaveTheShapeOfTheContract(t *testing.T) {
	s := server(t, mock.Options{Provider: "anthropic", Requests: perMinute(2)})
	for range 3 {
		send(s, "POST", "/v1/messages", `{"model":"m","max_tokens":7,"messages":[{"role":"user","content":"hi"}]}`, "X-Agent-Id: w7")
	}
	w := send(s, "GET", "/_mock/stats", "")
	want := `{"arrived":3,"accepted":2,"throttled":1,"worst_window":2,"by_agent":{"w7":2},"failed":0,"free":0,"aborted":0,"in_flight":0,` +
		`"ledger":{"m":{"requests":2,"input_tokens":16,"output_tokens":14,"cache_read_tokens":0,"cache_write_tokens":0}}}`
	if got := strings.TrimSpace(w.Body.String()); got != want || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if w := send(s, "POST", "/_mock/reset", ""); w.Code != 200 {
		t.Errorf("reset: %d", w.Code)
	}
	want = `{"arrived":0,"accepted":0,"throttled":0,"worst_window":0,"by_agent":{},"failed":0,"free":0,"aborted":0,"in_flight":0,"ledger":{}}`
	if got := strings.TrimSpace(send(s, "GET", "/_mock/stats", "").Body.String()); got != want {
		t.Errorf("after a reset: %s", got)
	}
	for _, c := range [][2]string{{"POST", "/_mock/stats"}, {"GET", "/_mock/reset"}} {
		if w := send(s, c[0], c[1], ""); w.Code != 405 || w.Header().Get("Allow") == "" {
			t.Errorf("%v: %d", c, w.Code)
		}
	}
}

func TestSameRequestSameAnswer(t *testing.T) {
	for provider, c := range map[string]struct{ path, body string }{
		"anthropic": {"/v1/messages", `{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"hi"}]}`},
		"openai":    {"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`},
		"gemini":    {"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
		"github":    {"/repos/o/r/issues", `{"title":"x"}`},
		"generic":   {"/any", `{}`},
	} {
		a := send(server(t, mock.Options{Provider: provider}), "POST", c.path, c.body)
		b := send(server(t, mock.Options{Provider: provider, Seed: 9}), "POST", c.path, strings.ReplaceAll(c.body, ",", ",\n "))
		if provider == "generic" { // its response has the request's size
			b = send(server(t, mock.Options{Provider: provider}), "POST", c.path, c.body)
		}
		if a.Code >= 300 || a.Body.String() != b.Body.String() {
			t.Errorf("%s: %d %s\nand then %s", provider, a.Code, a.Body, b.Body)
		}
	}
	s := server(t, mock.Options{Provider: "anthropic"})
	one := send(s, "POST", "/v1/messages", `{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"one"}]}`)
	two := send(s, "POST", "/v1/messages", `{"model":"m","max_tokens":500,"messages":[{"role":"user","content":"two"}]}`)
	if one.Body.String() == two.Body.String() {
		t.Error("other words have the same answer")
	}
}

func TestLatencyAndTail(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took := func(o mock.Options) time.Duration {
			o.Provider = "generic"
			s := server(t, o)
			begin := time.Now()
			send(s, "GET", "/", "")
			return time.Since(begin)
		}
		if d := took(mock.Options{}); d != 0 {
			t.Errorf("%v without latency", d)
		}
		if d := took(mock.Options{Latency: 200 * time.Millisecond}); d != 200*time.Millisecond {
			t.Errorf("%v, want 200 ms", d)
		}
		o := mock.Options{Latency: time.Second, Tail: time.Second, Seed: 3}
		if a, b := took(o), took(o); a != b || a <= time.Second {
			t.Errorf("the same seed gives %v and %v", a, b)
		}
		s := server(t, mock.Options{Provider: "generic", Tail: time.Second})
		begin := time.Now()
		for range 2000 {
			send(s, "GET", "/", "")
		}
		if mean := time.Since(begin) / 2000; mean < 900*time.Millisecond || mean > 1100*time.Millisecond {
			t.Errorf("the mean of the tail is %v, want 1 s", mean)
		}
	})
}

func TestStreamsAreSpreadOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, mock.Options{Provider: "openai", Pace: 10 * time.Millisecond})
		body := `{"model":"m","max_tokens":40,"stream":true,"messages":[{"role":"user","content":"a long one"}]}`
		begin := time.Now()
		w := send(s, "POST", "/v1/chat/completions", body)
		pieces := len(events(t, w.Body.Bytes())) - 3 // besides the first, the last and [DONE]
		if d := time.Since(begin); pieces < 1 || d != time.Duration(pieces-1)*10*time.Millisecond {
			t.Errorf("%d pieces took %v", pieces, d)
		}
		begin = time.Now()
		send(s, "POST", "/v1/chat/completions", body, "X-Mock: slow=1s")
		if d := time.Since(begin); d != time.Duration(pieces-1)*time.Second {
			t.Errorf("%d slow pieces took %v", pieces, d)
		}
	})
}

// A client that disconnects in the middle of a response leaves no slot taken.
func TestAbortsLeaveNothing(t *testing.T) {
	s := server(t, mock.Options{Provider: "anthropic", Requests: perMinute(1000), Concurrency: 50})
	h := httptest.NewServer(s)
	client := h.Client()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", h.URL+"/v1/messages",
				strings.NewReader(`{"model":"m","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"hi there"}]}`))
			r.Header.Set("X-Mock", "slow=1h")
			resp, err := client.Do(r)
			if err != nil {
				t.Error(err)
				return
			}
			_, err = io.ReadFull(resp.Body, make([]byte, 100))
			if err != nil {
				t.Error(err)
			}
			resp.Body.Close()
		})
	}
	all.Wait()
	h.Close() // waits for every handler
	st := s.Stats()
	if st.Accepted != 50 || st.Aborted != 50 || st.InFlight != 0 {
		t.Errorf("%+v", st)
	}
	if u := st.Ledger["m"]; u.OutputTokens != 50*8 { // one piece of each
		t.Errorf("%+v", u)
	}
	for range 50 {
		if w := send(s, "POST", "/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`); w.Code != 200 {
			t.Fatalf("a place is still taken: %d %s", w.Code, w.Body)
		}
	}
}

// A client that has the whole response finds its slot free.
func TestPlaceIsFreeWhenTheAnswerIsThere(t *testing.T) {
	s := server(t, mock.Options{Provider: "openai", Concurrency: 1})
	h := httptest.NewServer(s)
	defer h.Close()
	for i := range 100 {
		body := `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`
		if i%2 == 0 {
			body = strings.Replace(body, "true", "false", 1)
		}
		resp, err := h.Client().Post(h.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("request %d: %d %v", i, resp.StatusCode, err)
		}
	}
}

func FuzzRequests(f *testing.F) {
	f.Add("/v1/messages", `{"model":"m","max_tokens":5,"stream":true,"tools":[{"name":"t","input_schema":{"properties":{"a":{"type":"integer"}}}}],"tool_choice":{"type":"any"},"messages":[{"role":"user","content":[{"type":"text","text":"x"}]}]}`, "gzip")
	f.Add("/v1/responses", `{"model":"m","input":[{"role":"user","content":"use the tool"}],"tools":[{"name":"t","parameters":null}]}`, "trailers, no-usage")
	f.Add("/v1/chat/completions", `{"model":"m","messages":[{}],"tools":[{}],"tool_choice":{"function":{"name":"x"}}}`, "body=10")
	f.Add("/v1beta/models/m:streamGenerateContent", `{"contents":[{"parts":[{"text":"x"}]}],"generationConfig":{"maxOutputTokens":3}}`, "gzip")
	f.Add("/repos/o/r/issues?page=-3&per_page=0", `{"title":"<&>"}`, "cache-read=3")
	f.Add("/graphql", `{"query":"{viewer{login} rateLimit{cost}}"}`, "error-in-200")
	var all []*mock.Server
	for _, p := range mock.Providers {
		all = append(all, server(f, mock.Options{Provider: p}))
	}
	f.Fuzz(func(t *testing.T, path, body, fault string) {
		if strings.Contains(fault, "hang") || strings.Contains(fault, "close") || strings.Contains(fault, "slow") || strings.ContainsAny(fault, "KMGT") {
			return // it would never end, or would end with a panic
		}
		target, err := http.NewRequest("GET", "http://x/"+strings.TrimPrefix(path, "/"), nil)
		if err != nil || len(fault) > 100 || strings.Contains(fault, "body=") && len(fault) > 11 {
			return
		}
		for _, s := range all {
			for _, method := range []string{"GET", "POST", "HEAD"} {
				r := httptest.NewRequest(method, "http://x/", strings.NewReader(body))
				r.URL = target.URL
				r.Header.Set("X-Mock", fault)
				w := httptest.NewRecorder()
				s.ServeHTTP(w, r)
				if w.Code < 200 || w.Code > 599 {
					t.Errorf("%s %s: status %d", method, path, w.Code)
				}
			}
			if st := s.Stats(); st.InFlight != 0 || st.Arrived != st.Accepted+st.Throttled+st.Failed {
				t.Errorf("%+v", st)
			}
		}
	})
}
