package metrics

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/internal/leaktest"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// open opens a gate whose events are counted and whose state is exported.
func open(tb testing.TB, c sluice.Config) (*Registry, *sluice.Gate) {
	tb.Helper()
	r := New(Options{Estimates: func() estimate.Miss { return estimate.Miss{Input: 0.25, Output: 0.5, Calls: 7} }})
	if c.Store == "" {
		c.Store = "mem:"
	}
	c.Events = r.Event
	st, err := store.Open(context.Background(), c.Store)
	if err != nil {
		tb.Fatal(err)
	}
	g, err := sluice.OpenWithStore(context.Background(), r.Store(st), c)
	if err != nil {
		tb.Fatal(errors.Join(err, st.Close()))
	}
	tb.Cleanup(func() {
		if err := errors.Join(g.Close(), st.Close()); err != nil {
			tb.Error(err)
		}
	})
	r.SetGate(g)
	return r, g
}

func api(limits ...sluice.Limit) map[string]sluice.Resource {
	return map[string]sluice.Resource{"api": {Limits: limits}}
}

func hourly(size int64) sluice.Limit {
	return sluice.Limit{Name: "hour", Kind: sluice.Fixed, Size: size, Window: time.Hour}
}

// scrape returns the lines of a scrape.
func scrape(tb testing.TB, r *Registry) string {
	tb.Helper()
	w := httptest.NewRecorder()
	r.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	body, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != http.StatusOK {
		tb.Fatalf("a scrape: status %d, %v: %s", w.Code, err, body)
	}
	return string(body)
}

// has checks that a scrape contains each of the lines.
func has(tb testing.TB, body string, lines ...string) {
	tb.Helper()
	for _, l := range lines {
		if !strings.Contains("\n"+body, "\n"+l+"\n") {
			name, _, _ := strings.Cut(l, "{")
			name, _, _ = strings.Cut(name, " ")
			tb.Errorf("not told: %s\ntold of it:\n%s", l, grep(body, name))
		}
	}
}

// hasNot checks that no line of a scrape begins like this.
func hasNot(tb testing.TB, body string, starts ...string) {
	tb.Helper()
	for _, s := range starts {
		if strings.Contains("\n"+body, "\n"+s) {
			tb.Errorf("told, and should not be:\n%s", grep(body, s))
		}
	}
}

func grep(body, start string) string {
	var found []string
	for l := range strings.Lines(body) {
		if strings.HasPrefix(l, start) {
			found = append(found, l)
		}
	}
	return strings.Join(found, "")
}

func acquire(tb testing.TB, g *sluice.Gate, req sluice.Request) sluice.Ticket {
	tb.Helper()
	req.Resource = "api"
	t, err := g.Try(context.Background(), req)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

// busy returns the registry of a gate at which every counted event has happened.
func busy(tb testing.TB) *Registry {
	tb.Helper()
	r, g := open(tb, sluice.Config{
		Resources: map[string]sluice.Resource{
			"api": {Limits: []sluice.Limit{hourly(10), {Name: "each", Kind: sluice.Concurrency, Size: 4, Per: []sluice.Scope{sluice.PerAgent}}}},
		},
		Budgets: []sluice.Budget{{Name: "day", Micros: 2e6, Period: sluice.BudgetDay}},
	})
	ctx := context.Background()
	if err := g.Heartbeat(ctx, sluice.JoinRequest{Agent: "keeper", Class: sluice.P0}); err != nil {
		tb.Fatal(err)
	}
	first := acquire(tb, g, sluice.Request{Agent: "a", Class: sluice.P1})
	if _, err := first.Answer(sluice.Answer{Verdict: store.VerdictOK, Status: 200}); err != nil {
		tb.Fatal(err)
	}
	if err := first.Close(); err != nil {
		tb.Fatal(err)
	}
	paid := acquire(tb, g, sluice.Request{Agent: "a", Class: sluice.P1, Retry: true, Cost: []sluice.Amount{{Unit: sluice.USD, N: 1e6}}})
	if err := paid.Close(sluice.Amount{Unit: "input_tokens", N: 100}, sluice.Amount{Unit: sluice.OutputTokens, N: 20}, sluice.Amount{Unit: sluice.USD, N: 500_000}); err != nil {
		tb.Fatal(err)
	}
	if err := acquire(tb, g, sluice.Request{Agent: "b", Class: sluice.P0}).Cancel(); err != nil {
		tb.Fatal(err)
	}
	if _, err := g.Try(ctx, sluice.Request{Resource: "api", Agent: "a", Class: sluice.P1, Cost: []sluice.Amount{{Unit: sluice.Requests, N: 11}}}); err == nil {
		tb.Fatal("more than the limit holds was let through")
	}
	last := acquire(tb, g, sluice.Request{Agent: "a", Class: sluice.P1})
	if _, err := last.Answer(sluice.Answer{Verdict: store.VerdictThrottled, Status: 429, RetryAfter: time.Minute}); err != nil {
		tb.Fatal(err)
	}
	r.Event(inspect.Event{Kind: inspect.EventWouldWait, Resource: "api", Class: "p2", Reason: "limit", Limit: "hour"})
	r.Event(inspect.Event{Kind: inspect.EventSend, Resource: "api", Class: "p2", WaitedMS: 1500, Reason: "limit", Limit: "hour"})
	r.Event(inspect.Event{Kind: inspect.EventResume, Resource: "api"})
	r.Event(inspect.Event{Kind: inspect.EventBudget, Resource: "api", Limit: "day"})
	r.Event(inspect.Event{Kind: inspect.EventLeaseLost, Agent: "a"})
	r.Event(inspect.Event{Kind: inspect.EventStoreLost, Resource: "api"})
	r.Event(inspect.Event{Kind: inspect.EventStoreBack, Resource: "api", ForMS: 2500, Count: 3})
	r.Done(sluicehttp.Exchange{
		Resource: "api", Class: "p1", Ticket: "api.1-1", Status: 200, Took: 700 * time.Millisecond, Micros: 90, Aborted: true,
		Estimated: provider.Usage{Output: 150}, Usage: provider.Usage{Known: true, Final: true, Output: 100, CacheRead: 7, CacheWrite: 2, CacheLong: 1},
	})
	r.Done(sluicehttp.Exchange{Resource: "api", Class: "p1", Ticket: "api.1-2", Status: 200, Micros: 250_000, Retry: true})
	r.Done(sluicehttp.Exchange{Resource: "api", Class: "no such class"})
	return r
}

// A client that states no class sends in the class of its agent.
func TestExchangeWithoutAClassCountsForTheAgents(t *testing.T) {
	r, _ := open(t, sluice.Config{Resources: api(), Agents: map[string]sluice.Agent{"chat": {Class: sluice.P0}}})
	r.Done(sluicehttp.Exchange{Resource: "api", Agent: "chat", Ticket: "api.1-1", Status: 200, Aborted: true, Micros: 2_000_000, Usage: provider.Usage{CacheRead: 7}})
	has(t, scrape(t, r),
		`sluice_proxy_requests_total{class="p0",code="2xx",resource="api"} 1`,
		`sluice_proxy_aborted_total{class="p0",resource="api"} 1`,
		`sluice_cache_tokens_total{class="p0",operation="read",resource="api"} 7`,
		`sluice_cost_dollars_total{basis="estimate",class="p0",resource="api"} 2`,
	)
}

func TestCounts(t *testing.T) {
	body := scrape(t, busy(t))
	has(t, body,
		`sluice_sends_total{class="p1",resource="api"} 3`,
		`sluice_sends_total{class="p0",resource="api"} 1`,
		`sluice_retries_total{class="p1",resource="api"} 1`,
		`sluice_cancels_total{class="p0",resource="api"} 1`,
		`sluice_answers_total{class="p1",resource="api",verdict="ok"} 1`,
		`sluice_answers_total{class="p1",resource="api",verdict="throttled"} 1`,
		`sluice_throttled_total{class="p1",resource="api"} 1`,
		`sluice_throttled_total{class="p0",resource="api"} 0`,
		`sluice_refused_total{class="p1",limit="hour",reason="capacity",resource="api"} 1`,
		`sluice_would_wait_total{class="p2",limit="hour",reason="limit",resource="api"} 1`,
		`sluice_held_total{class="p2",limit="hour",reason="limit",resource="api"} 1`,
		`sluice_pauses_total{by="provider",resource="api"} 1`,
		`sluice_resumes_total{resource="api"} 1`,
		`sluice_budget_exhausted_total{budget="day"} 1`,
		`sluice_leases_lost_total 1`,
		`sluice_store_outages_total{resource="api"} 1`,
		`sluice_store_outage_seconds_total{resource="api"} 2.5`,
		`sluice_store_outage_sends_total{resource="api"} 3`,
		`sluice_tokens_total{class="p1",kind="input",resource="api"} 100`,
		`sluice_tokens_total{class="p1",kind="output",resource="api"} 20`,
		`sluice_cost_dollars_total{basis="usage",class="p1",resource="api"} 0.5`,
		`sluice_cost_dollars_total{basis="estimate",class="p1",resource="api"} 0.25`,
		`sluice_retry_cost_dollars_total{class="p1",resource="api"} 0.75`,
		`sluice_proxy_requests_total{class="p1",code="2xx",resource="api"} 2`,
		`sluice_proxy_requests_total{class="unknown",code="none",resource="api"} 1`,
		`sluice_proxy_aborted_total{class="p1",resource="api"} 1`,
		`sluice_cache_tokens_total{class="p1",operation="read",resource="api"} 7`,
		`sluice_cache_tokens_total{class="p1",operation="write",resource="api"} 3`,
	)
}

func TestHistograms(t *testing.T) {
	body := scrape(t, busy(t))
	has(t, body,
		`sluice_wait_seconds_bucket{class="p2",resource="api",le="1"} 0`,
		`sluice_wait_seconds_bucket{class="p2",resource="api",le="2.5"} 1`,
		`sluice_wait_seconds_bucket{class="p2",resource="api",le="600"} 1`,
		`sluice_wait_seconds_sum{class="p2",resource="api"} 1.5`,
		`sluice_wait_seconds_count{class="p1",resource="api"} 3`,
		`sluice_proxy_answer_seconds_bucket{resource="api",le="1"} 2`,
		`sluice_estimate_output_error_ratio_sum{resource="api"} 0.5`,
		`sluice_store_read_seconds_count 1`,
	)
}

func TestState(t *testing.T) {
	body := scrape(t, busy(t))
	has(t, body,
		`sluice_store_up 1`,
		`sluice_store_outage{resource="api"} 0`,
		`sluice_store_read_failures_total 0`,
		`sluice_light{resource="api"} 0`,
		`sluice_observing{resource="api"} 0`,
		`sluice_waiting_requests{class="p0",resource="api"} 0`,
		`sluice_in_flight_requests{resource="api"} 1`,
		`sluice_paused{resource="api"} 1`,
		`sluice_gates{phase="paused",resource="api"} 1`,
		`sluice_throttled_in_a_row{resource="api"} 1`,
		`sluice_throttled_last_week{resource="api"} 1`,
		`sluice_pool_sends_total{resource="api"} 3`,
		`sluice_pool_retries_total{resource="api"} 1`,
		`sluice_pool_throttled_total{resource="api"} 1`,
		`sluice_pool_wait_seconds_total{resource="api"} 0`,
		`sluice_limit_size{limit="hour",resource="api",scope="",unit="requests"} 10`,
		`sluice_limit_used{limit="hour",resource="api",scope="",unit="requests"} 3`,
		`sluice_limit_remaining{limit="hour",resource="api",scope="",unit="requests"} 7`,
		`sluice_limit_outside{limit="hour",resource="api",scope="",unit="requests"} 0`,
		`sluice_limit_breaker{limit="hour",resource="api",scope="",unit="requests"} 0`,
		`sluice_limit_used{limit="each",resource="api",scope="agent=a",unit="requests"} 1`,
		`sluice_budget_size_dollars{budget="day",per="fleet",period="day",who=""} 2`,
		`sluice_budget_used_dollars{budget="day",per="fleet",period="day",who=""} 0.500001`,
		`sluice_agents{class="p2",state="active"} 0`,
		`sluice_leases{class="p0"} 1`,
		`sluice_leases{class="p1"} 0`,
		`sluice_cycles 0`,
		`sluice_estimate_error_ratio{kind="input"} 0.25`,
		`sluice_estimate_error_ratio{kind="output"} 0.5`,
		`sluice_estimate_calls_total 7`,
	)
	for _, name := range []string{"sluice_paused_until_timestamp_seconds", "sluice_last_throttled_timestamp_seconds", "sluice_budget_reset_timestamp_seconds"} {
		if grep(body, name+"{") == "" {
			t.Errorf("%s is not told", name)
		}
	}
}

func TestLint(t *testing.T) {
	families, err := busy(t).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	problems, err := promlint.NewWithMetricFamilies(families).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

// TestAllTold checks that every metric is exported for a gate at which every counted event has happened.
func TestAllTold(t *testing.T) {
	r := busy(t)
	body := scrape(t, r)
	once := map[string]bool{}
	for _, f := range r.families {
		if once[f.name] {
			t.Errorf("%s is there twice", f.name)
		}
		once[f.name] = true
		switch f.name {
		case "sluice_limit_reset_timestamp_seconds": // the window has not been told to have one
			continue
		}
		if _, rest, _ := strings.Cut(f.name, "_"); strings.HasPrefix(rest, "log_") || strings.HasPrefix(rest, "pool_rules") || rest == "replica_divergence_total" {
			continue // see TestTheLogOfAPool
		}
		if !strings.Contains(body, "# TYPE "+f.name+" ") {
			t.Errorf("%s is not told", f.name)
		}
	}
}

// A scraper that asks for OpenMetrics gets it, and others get the text that they know.
func TestOpenMetricsIsOffered(t *testing.T) {
	r := New(Options{})
	for accept, kind := range map[string]string{
		"application/openmetrics-text; version=1.0.0, text/plain;q=0.5": "application/openmetrics-text; version=1.0.0",
		"": "text/plain; version=0.0.4",
	} {
		w := httptest.NewRecorder()
		q := httptest.NewRequest(http.MethodGet, "/metrics", nil)
		q.Header.Set("Accept", accept)
		r.Handler().ServeHTTP(w, q)
		body := w.Body.String()
		if !strings.HasPrefix(w.Header().Get("Content-Type"), kind) || strings.HasSuffix(body, "# EOF\n") != (accept != "") {
			t.Errorf("%q gets %q, which ends with %q", accept, w.Header().Get("Content-Type"), body[max(len(body)-40, 0):])
		}
	}
}
