package metrics

import (
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/sluicehttp"
)

// The cost of a proxied request is reported twice, as an event and as an exchange. It counts once, however its response
// ends.
func TestProxiedCostCountsOnce(t *testing.T) {
	limit := sluice.Limit{Name: "minute", Kind: sluice.Rolling, Size: 1000, Window: time.Minute}
	r, g := open(t, sluice.Config{Resources: api(limit)})
	upstream := httptest.NewServer(http.HandlerFunc(answer))
	t.Cleanup(upstream.Close)
	dialect, ok := provider.Lookup("openai")
	if !ok {
		t.Fatal("there is no openai")
	}
	var mu sync.Mutex
	var micros, estimated int64
	done := make(chan struct{}, 8)
	tr := &sluicehttp.Transport{
		Gate: g, Resource: "api", Dialect: dialect, Limits: []sluice.Limit{limit}, Caller: sluicehttp.Caller{Agent: "a", Class: sluice.P1}, Retry: retry.Policy{Attempts: 1},
		Prices: func(_ string, u *provider.Usage) (int64, bool) { return 1000 * (u.Input + 2*u.Output), true },
		Done: func(x sluicehttp.Exchange) {
			r.Done(x)
			mu.Lock()
			micros += x.Micros
			if !told(&x) {
				estimated += x.Micros
			}
			mu.Unlock()
			done <- struct{}{}
		},
	}
	t.Cleanup(func() { tr.Settle(); tr.CloseIdleConnections() })
	for _, how := range []string{"usage", "silent", "stream", "cut", "refused"} {
		stream := how == "stream" || how == "cut"
		q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, upstream.URL+"/v1/chat/completions?how="+how,
			strings.NewReader(fmt.Sprintf(`{"model":"gpt-5","stream":%v,"messages":[{"role":"user","content":"how are you today, and what will you do?"}]}`, stream)))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		a, err := tr.RoundTrip(q)
		if err != nil {
			t.Fatal(how, err)
		}
		if how == "cut" {
			_, err = io.ReadFull(a.Body, make([]byte, 20))
		} else {
			_, err = io.Copy(io.Discard, a.Body)
		}
		if err != nil {
			t.Error(how, err)
		}
		if err := a.Body.Close(); err != nil {
			t.Error(how, err)
		}
		<-done
	}
	tr.Settle() // what is held for the one that was cut off
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sums := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "sluice_cost_dollars_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "basis" {
					sums[l.GetValue()] += m.GetCounter().GetValue() * micro
				}
			}
		}
	}
	near := func(a float64, b int64) bool { return math.Abs(a-float64(b)) < 0.5 }
	if micros == 0 || estimated == 0 || !near(sums["usage"]+sums["estimate"], micros) || !near(sums["estimate"], estimated) {
		t.Errorf("counted %v, want %d millionths in all, %d of them estimated", sums, micros, estimated)
	}
	has(t, scrape(t, r), `sluice_proxy_requests_total{class="p1",code="2xx",resource="api"} 4`, `sluice_proxy_requests_total{class="p1",code="4xx",resource="api"} 1`,
		`sluice_proxy_aborted_total{class="p1",resource="api"} 1`, `sluice_sends_total{class="p1",resource="api"} 5`)
}

// answer responds as the query asks.
func answer(w http.ResponseWriter, r *http.Request) {
	const usage = `"usage":{"prompt_tokens":100,"completion_tokens":40,"total_tokens":140}`
	piece := `data: {"choices":[{"delta":{"content":"a few words of an answer"}}]}` + "\n\n"
	switch r.URL.Query().Get("how") {
	case "usage":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"choices":[],`+usage+`}`) // who is gone misses nothing
	case "silent":
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"choices":[]}`)
	case "stream":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, piece, "data: {\"choices\":[],"+usage+"}\n\n", "data: [DONE]\n\n")
	case "cut":
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, strings.Repeat(piece, 5))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		http.Error(w, `{"error":{"message":"no"}}`, http.StatusBadRequest)
	}
}
