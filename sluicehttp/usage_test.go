package sluicehttp

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// tenMicros is a price of ten per token, and of one per token read from a cache.
func tenMicros(model string, u *provider.Usage) (int64, bool) {
	return 10*(u.Input+u.Output) + u.CacheRead, model != "unknown"
}

func TestUsageIsSettled(t *testing.T) {
	x := newRig(t)
	x.Prices = tenMicros
	estimated := int64(-1)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		estimated = x.used(t, sluice.OutputTokens)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"usage":{"in":100,"read":1000,"out":50}}`)
	})
	x.do(t, post(t, url, `{"model":"m","max":64000,"special":3}`))
	x.wantQuiet(t)
	x.wantCharged(t, map[string]int64{
		unitInput: 100, sluice.OutputTokens: 50, unitTokens: 1150, unitUSD: 2500, "special": 3, sluice.Requests: 1,
	})
	if estimated != 1024 {
		t.Errorf("%d tokens were reserved, want the first estimate", estimated)
	}
	e := x.told.one(t)
	if e.Usage.Input != 100 || e.Usage.Output != 50 || !e.Usage.Known || e.Micros != 2500 || !e.Priced || e.EstimatedMicros == 0 || e.Estimated.Output != 1024 {
		t.Errorf("told of %+v", e)
	}
	book := x.Estimates()
	if out := book.Output("tester", "m", 0); out != 75 {
		t.Errorf("the next estimate is %d, want what was learned and a margin", out)
	}
	if book.Overall().Calls != 1 {
		t.Error("nothing was learned of the estimate's error")
	}
}

func TestReservedTokensStayCharged(t *testing.T) {
	x := newRig(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"usage":{"in":1,"out":2}}`) })
	body := `{"model":"m","max":5000,"reserved":true}`
	x.do(t, post(t, url, body))
	in := x.told.one(t).Estimated.Input
	x.wantCharged(t, map[string]int64{unitTokens: in + 5000, unitInput: 1, sluice.OutputTokens: 2})
}

// OpenAI reserves the larger of max_tokens and its estimate of the input. The gate charged their sum, and used 60% of a
// limit on small calls.
func TestTheLargerOfInputAndOutputIsReserved(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"usage":{"in":1,"out":2}}`) })
	for _, c := range []struct {
		name, body string
		want       func(input, output, bytes int64) int64
	}{
		{"output", `{"model":"m","max":5000,"reserved":true,"larger":true}`, func(_, _, _ int64) int64 { return 5000 }},
		{"input", `{"model":"` + strings.Repeat("m", 90) + `","max":2,"reserved":true,"larger":true}`,
			func(input, _, bytes int64) int64 { return max(input, (bytes+3)/4) }},
		{"no maximum", `{"model":"m","reserved":true,"larger":true}`, func(input, output, _ int64) int64 { return input + output }},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := newRig(t)
			x.do(t, post(t, url, c.body))
			e := x.told.one(t)
			x.wantCharged(t, map[string]int64{unitTokens: c.want(e.Estimated.Input, e.Estimated.Output, int64(len(c.body)))})
		})
	}
}

func TestRefusedCallsUseNothing(t *testing.T) {
	x := newRig(t)
	x.Prices, x.Retry.Attempts = tenMicros, 1
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "no", http.StatusBadRequest) })
	x.do(t, post(t, url, `{"model":"unknown"}`))
	x.wantCharged(t, map[string]int64{unitInput: 0, sluice.OutputTokens: 0, unitTokens: 0, unitUSD: 0, sluice.Requests: 1})
	if e := x.told.one(t); e.Micros != 0 || e.Priced || x.Estimates().Overall().Calls != 0 {
		t.Errorf("told of %+v", e)
	}
}

func TestUnreadableUsageKeepsTheEstimate(t *testing.T) {
	x := newRig(t)
	x.Prices = tenMicros
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Accept-Encoding"); got != "gzip" {
			t.Errorf("it accepts %q", got)
		}
		w.Header().Set("Content-Encoding", "br")
		fmt.Fprint(w, `{"usage":{"in":100,"out":50}}`)
	})
	r := post(t, url, `{"model":"m","max":100}`)
	r.Header.Set("Accept-Encoding", "br, gzip, deflate")
	x.do(t, r)
	if e := x.told.one(t); e.Usage.Known || e.Micros != e.EstimatedMicros || e.Micros == 0 {
		t.Errorf("told of %+v", e)
	}
	x.wantCharged(t, map[string]int64{sluice.OutputTokens: 100})
	if got := r.Header.Get("Accept-Encoding"); got != "br, gzip, deflate" {
		t.Errorf("the client's own header was changed to %q", got)
	}
}

// event writes a piece of a stream and flushes it.
func event(w http.ResponseWriter, data string) {
	fmt.Fprintf(w, "data: %s\n\n", data)
	w.(http.Flusher).Flush()
}

func TestUsageOfAStream(t *testing.T) {
	for _, packed := range []bool{false, true} {
		x := newRig(t)
		url := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
			var to io.Writer = w
			flush := func() {}
			if packed {
				w.Header().Set("Content-Encoding", "gzip")
				z := gzip.NewWriter(w)
				defer z.Close()
				to, flush = z, func() { _ = z.Flush() }
			}
			fmt.Fprint(to, "data: {\"usage\":{\"in\":100,\"out\":1}}\n\n")
			for range 300 {
				fmt.Fprint(to, "data: {\"text\":\"word \"}\n\n")
				flush()
				w.(http.Flusher).Flush()
			}
			fmt.Fprint(to, "data: {\"usage\":{\"in\":100,\"out\":300}}\n\n")
		})
		r := post(t, url, `{"model":"m","stream":true}`)
		r.Header.Set("Accept-Encoding", "gzip")
		_, text := x.do(t, r)
		if packed {
			z, err := gzip.NewReader(strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := io.ReadAll(z)
			if err != nil {
				t.Fatal(err)
			}
			text = string(plain)
		}
		if strings.Count(text, "word ") != 300 {
			t.Errorf("the client read %d bytes", len(text))
		}
		x.wantQuiet(t)
		x.wantCharged(t, map[string]int64{unitInput: 100, sluice.OutputTokens: 300})
		if e := x.told.one(t); !e.Usage.Final || e.Aborted {
			t.Errorf("packed %v: told of %+v", packed, e)
		}
	}
}

// A body that cannot be decompressed is passed on unchanged.
func TestBrokenCompressionPasses(t *testing.T) {
	x := newRig(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		fmt.Fprint(w, strings.Repeat("this is no gzip at all", 10_000))
	})
	r := post(t, url, `{"model":"m"}`)
	r.Header.Set("Accept-Encoding", "gzip")
	if _, text := x.do(t, r); len(text) != 220_000 {
		t.Errorf("%d bytes", len(text))
	}
	x.wantQuiet(t)
}

// An aborted response settles the usage seen so far, and holds its concurrency for as long as such responses take.
func TestAbortedStreamSettlesWhatWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newRig(t)
		x.Prices = tenMicros
		goOn := make(chan struct{})
		first, second := `{"usage":{"in":100,"out":1}}`, `{"text":"`+strings.Repeat("four", 100)+`"}`
		all := len("data: \n\n")*2 + len(first) + len(second)
		x.pipeServer(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			event(w, first)
			if wait(r.Context(), 20*time.Second) != nil {
				return
			}
			event(w, second)
			select {
			case <-goOn:
				event(w, `{"usage":{"in":100,"out":100}}`)
			case <-r.Context().Done():
			}
		})
		defer close(goOn)
		call := func(read int) (*http.Response, context.CancelFunc) {
			ctx, cancel := context.WithCancel(t.Context())
			resp, err := x.RoundTrip(post(t, "http://host/", `{"model":"m","stream":true}`).WithContext(ctx))
			if err != nil {
				t.Fatal(err)
			}
			if read > 0 {
				if _, err := io.ReadFull(resp.Body, make([]byte, read)); err != nil {
					t.Fatal(err)
				}
			}
			return resp, cancel
		}
		// One that is read to its end: four bytes are a token, and it takes 20 seconds.
		resp, cancel := call(all)
		goOn <- struct{}{}
		if _, err := io.ReadAll(resp.Body); err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		cancel()
		x.wantCharged(t, map[string]int64{sluice.OutputTokens: 100, "places": 0})

		// One whose client leaves after all of the text.
		resp, cancel = call(all)
		cancel()
		resp.Body.Close()
		synctest.Wait()
		x.wantCharged(t, map[string]int64{"places": 1})
		time.Sleep(time.Minute)
		x.wantCharged(t, map[string]int64{"places": 0, unitInput: 200, sluice.OutputTokens: 200, unitUSD: 4000})
		x.wantQuiet(t)
		if e := x.told.list[1]; !e.Aborted || e.Usage.Output != 100 || e.Usage.Final || e.Micros != 2000 {
			t.Errorf("told of %+v", e)
		}

		// One that leaves early, and the transport settles before its time.
		resp, _ = call(len(first) + 8)
		resp.Body.Close()
		x.wantCharged(t, map[string]int64{"places": 1})
		x.Settle()
		x.wantCharged(t, map[string]int64{"places": 0, unitInput: 300, sluice.OutputTokens: 201})

		// Where the provider is known to stop, the place is free at once.
		x.Abort = true
		resp, _ = call(len(first) + 8)
		resp.Body.Close()
		x.wantQuiet(t)
	})
}

// A response that is not a stream need not be read to its end: it was complete before it began.
func TestAnswerThatIsNotReadToItsEnd(t *testing.T) {
	x := newRig(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, `{"usage":{"in":1,"out":2}}`)
		w.(http.Flusher).Flush()
		fmt.Fprint(w, strings.Repeat(" ", 100_000))
	})
	resp, err := x.RoundTrip(post(t, url, `{"model":"m"}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 26)); err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	resp.Body.Close()
	x.wantQuiet(t)
	x.wantCharged(t, map[string]int64{sluice.OutputTokens: 2})
	if e := x.told.one(t); e.Aborted || e.Usage.Output != 2 {
		t.Errorf("told of %+v", e)
	}
}

func TestErrorWithinAStreamIsTold(t *testing.T) {
	x := newRig(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, `{"text":"so far so good"}`)
		event(w, `{"error":"overloaded"}`)
	})
	x.do(t, post(t, url, `{"model":"m","stream":true}`))
	if s := x.status(t); s.PausedUntil == nil && len(s.Gates) == 0 {
		t.Errorf("nobody is held: %+v", s)
	}
	if e := x.told.one(t); e.Verdict != store.VerdictOverloaded || e.Status != 200 {
		t.Errorf("told of %+v", e)
	}
}

func TestHiddenUsageIsAskedForAndCutOut(t *testing.T) {
	x := newRig(t)
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if want := `{"model":"m","stream":true,"hidden":true,"tell":true}`; string(body) != want || r.ContentLength != int64(len(want)) {
			t.Errorf("%s arrived, of length %d", body, r.ContentLength)
		}
		if r.Header.Get("Accept-Encoding") != "identity" {
			t.Errorf("it accepts %q", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Type", "text/event-stream")
		event(w, `{"text":"a"}`)
		event(w, `{"only":1,"usage":{"in":7,"out":9}}`)
		event(w, `[DONE]`)
	})
	r := post(t, url, `{"model":"m","stream":true,"hidden":true}`)
	r.Header.Set("Accept-Encoding", "gzip, br")
	_, text := x.do(t, r)
	if text != "data: {\"text\":\"a\"}\n\ndata: [DONE]\n\n" {
		t.Errorf("the client read %q", text)
	}
	x.wantCharged(t, map[string]int64{unitInput: 7, sluice.OutputTokens: 9})
}

// A call that the provider does not meter is sent once, without a turn, also while the resource is paused. What comes back
// says nothing about the calls that are metered.
func TestFreeCallsTakeNoTurn(t *testing.T) {
	x := newRig(t)
	status, arrived := http.StatusOK, 0
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		arrived++
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(status)
	})
	var told []Exchange
	x.Done = func(ex Exchange) { told = append(told, ex) }
	for _, status = range []int{200, 404, 404, 404, 404, 404, 429, 429, 503, 500, 401} {
		if resp, _ := x.do(t, post(t, url, `{"free":true}`)); resp.StatusCode != status {
			t.Errorf("the client got %d in place of %d", resp.StatusCode, status)
		}
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	r := post(t, gone.URL, `{"free":true}`)
	if resp, err := x.RoundTrip(r); err == nil {
		_ = resp.Body.Close()
		t.Error("nothing listens there")
	}
	if s := x.status(t); arrived != 11 || s.Sent != 0 || s.Throttled != 0 || s.PausedUntil != nil || s.State != inspect.StateIdle {
		t.Errorf("%d arrived; sent %d, throttled %d, paused until %v, %s: %s", arrived, s.Sent, s.Throttled, s.PausedUntil, s.State, s.Reason)
	}
	for _, ex := range told {
		if !ex.Free || ex.Ticket != "" || ex.Attempts != 1 {
			t.Errorf("%+v", ex)
		}
	}
	if err := x.Gate.Pause(t.Context(), "api", time.Hour, "test"); err != nil {
		t.Fatal(err)
	}
	status = http.StatusOK
	if resp, _ := x.do(t, post(t, url, `{"free":true}`)); resp.StatusCode != http.StatusOK {
		t.Errorf("a pause held it: %d", resp.StatusCode)
	}
}

// An estimate larger than a limit does not block a request for good.
func TestEstimateAboveCapacity(t *testing.T) {
	x := newRig(t, sluice.Limit{Name: "small", Kind: sluice.Rolling, Size: 500, Window: hour, Unit: sluice.OutputTokens},
		sluice.Limit{Name: "tiny", Kind: sluice.Rolling, Size: 5, Window: hour, Unit: unitInput})
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"usage":{"in":2,"out":30}}`) })
	x.do(t, post(t, url, `{"model":"m","max":9000}`))
	x.wantCharged(t, map[string]int64{"small": 30, "tiny": 2})
}

func TestRouting(t *testing.T) {
	x := newRig(t)
	x.Route = func(_ context.Context, c Caller, asked *provider.ParsedRequest) (string, error) {
		if c.Agent != "tester" {
			t.Errorf("routed for %+v", c)
		}
		return map[string]string{"auto": "longer-name", "bad": "really-bad", "same": "same", "path": "other"}[asked.Model], nil
	}
	var got string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = r.URL.Path + " " + string(body)
		if int64(len(body)) != r.ContentLength {
			t.Errorf("%d bytes of %d", len(body), r.ContentLength)
		}
	})
	resp, _ := x.do(t, post(t, url+"/x", `{"model":"auto","max":1}`))
	if got != `/x {"model":"longer-name","max":1}` || resp.Header.Get(HeaderModel) != "longer-name" || x.told.one(t).Model != "longer-name" {
		t.Errorf("%s arrived, %q was said", got, resp.Header.Get(HeaderModel))
	}
	long := `{"model":"auto"}` + strings.Repeat(" ", provider.MaxCall)
	if x.do(t, post(t, url+"/x", long)); len(got) != len(long)+len("/x longer-name")-len("auto") {
		t.Errorf("%d bytes arrived, of %d", len(got), len(long))
	}
	resp, _ = x.do(t, post(t, url+"/models/path", `{}`))
	if got != "/models/other {}" || resp.Header.Get(HeaderModel) != "other" {
		t.Errorf("%s arrived", got)
	}
	resp, _ = x.do(t, post(t, url+"/x", `{"model":"same"}`))
	if resp.Header.Get(HeaderModel) != "" {
		t.Error("it was not routed, and says so")
	}
	sent := x.status(t).Sent
	if _, err := x.RoundTrip(post(t, url, `{"model":"bad"}`)); err == nil || x.status(t).Sent != sent {
		t.Errorf("the error is %v", err)
	}
}

func TestKeysAreToldApartByFingerprint(t *testing.T) {
	x := newRig(t, sluice.Limit{Name: "each", Kind: sluice.Rolling, Size: 10, Window: hour, Per: []sluice.Scope{sluice.PerKey}})
	x.Fingerprint = func(key string) string { return "print-of-" + key[:1] }
	url := serve(t, func(http.ResponseWriter, *http.Request) {})
	for _, key := range []string{"a-secret", "b-secret", "a-secret"} {
		r := get(t, url)
		r.Header.Set("Authorization", key)
		x.do(t, r)
	}
	for _, l := range x.status(t).Limits {
		if strings.Contains(l.Scope, "secret") || strings.Contains(l.Scope, "-a") && l.Used != 2 {
			t.Errorf("limit %+v", l)
		}
	}
	if n := len(x.status(t).Limits); n != 2 {
		t.Errorf("%d scopes, want 2", n)
	}
}

func TestEncodingsThatCanBeRead(t *testing.T) {
	for list, want := range map[string]bool{
		"gzip": true, "br, gzip": true, "gzip;q=0.5, br": true, "br": false, "gzip;q=0": false, "gzip; q=0.000": false, "*": false, "": false, "x-gzip2": false,
	} {
		if takesGzip(list) != want {
			t.Errorf("%q takes gzip: %v", list, !want)
		}
	}
}

// A real OpenAI stream whose client did not ask for usage.
func TestOpenAIStreamWithoutUsage(t *testing.T) {
	x := newRig(t)
	x.Dialect, _ = provider.Lookup("openai")
	x.Prices = tenMicros
	chunk := `{"id":"c","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{"content":"Paris"},"finish_reason":null}],"usage":null}`
	end := `{"id":"c","object":"chat.completion.chunk","model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":null}`
	usage := `{"id":"c","object":"chat.completion.chunk","model":"gpt-4o","choices":[],"usage":{"prompt_tokens":14,"completion_tokens":3,"total_tokens":17}}`
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if !strings.Contains(string(body), `"include_usage":true`) || int64(len(body)) != r.ContentLength {
			t.Errorf("%s arrived, of length %d", body, r.ContentLength)
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, data := range []string{chunk, chunk, end, usage, "[DONE]"} {
			event(w, data)
		}
	})
	_, text := x.do(t, post(t, url+"/v1/chat/completions", `{"model":"gpt-4o","stream":true,"max_tokens":100,"messages":[{"role":"user","content":"Where?"}]}`))
	want := "data: " + strings.Join([]string{chunk, chunk, end, "[DONE]"}, "\n\ndata: ") + "\n\n"
	if text != want {
		t.Errorf("the client read %s", text)
	}
	e := x.told.one(t)
	if e.Usage.Input != 14 || e.Usage.Output != 3 || e.Micros != 170 || e.Aborted {
		t.Errorf("told of %+v", e)
	}
	x.wantCharged(t, map[string]int64{unitTokens: 100, unitUSD: 170})
}
