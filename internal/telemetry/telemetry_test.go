package telemetry_test

import (
	"context"
	"encoding/hex"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collecttrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/telemetry"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
	_ "github.com/sluicehq/sluice/store/memstore"
)

// collector is what a collector is for an exporter: the two services, over gRPC and over HTTP.
type collector struct {
	collecttrace.UnimplementedTraceServiceServer
	mu      sync.Mutex
	spans   []*tracepb.Span
	about   map[string]string // the resource's attributes
	metrics map[string]bool
}

func (c *collector) Export(_ context.Context, r *collecttrace.ExportTraceServiceRequest) (*collecttrace.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rs := range r.GetResourceSpans() {
		c.about = values(rs.GetResource().GetAttributes())
		for _, ss := range rs.GetScopeSpans() {
			c.spans = append(c.spans, ss.GetSpans()...)
		}
	}
	return &collecttrace.ExportTraceServiceResponse{}, nil
}

type metricService struct {
	collectmetrics.UnimplementedMetricsServiceServer
	*collector
}

func (c metricService) Export(_ context.Context, r *collectmetrics.ExportMetricsServiceRequest) (*collectmetrics.ExportMetricsServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, rm := range r.GetResourceMetrics() {
		for _, sm := range rm.GetScopeMetrics() {
			for _, m := range sm.GetMetrics() {
				c.metrics[m.GetName()] = true
			}
		}
	}
	return &collectmetrics.ExportMetricsServiceResponse{}, nil
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var out proto.Message
	switch r.URL.Path {
	case "/v1/traces":
		var q collecttrace.ExportTraceServiceRequest
		if proto.Unmarshal(body, &q) == nil {
			out, _ = c.Export(r.Context(), &q)
		}
	case "/v1/metrics":
		var q collectmetrics.ExportMetricsServiceRequest
		if proto.Unmarshal(body, &q) == nil {
			out, _ = metricService{collector: c}.Export(r.Context(), &q)
		}
	}
	if out == nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	text, _ := proto.Marshal(out)
	w.Header().Set("Content-Type", "application/x-protobuf")
	_, _ = w.Write(text)
}

func values(list []*commonpb.KeyValue) map[string]string {
	out := map[string]string{}
	for _, kv := range list {
		v := kv.GetValue()
		switch v.GetValue().(type) {
		case *commonpb.AnyValue_IntValue:
			out[kv.GetKey()] = strings.TrimPrefix(v.String(), "int_value:")
		case *commonpb.AnyValue_DoubleValue:
			out[kv.GetKey()] = strings.TrimPrefix(v.String(), "double_value:")
		default:
			out[kv.GetKey()] = v.GetStringValue()
		}
	}
	return out
}

// collect starts a collector and returns it with its address.
func collect(t *testing.T, protocol string) (*collector, string) {
	t.Helper()
	c := &collector{metrics: map[string]bool{}}
	if protocol != "grpc" {
		s := httptest.NewServer(c)
		t.Cleanup(s.Close)
		return c, s.URL
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer()
	collecttrace.RegisterTraceServiceServer(s, c)
	collectmetrics.RegisterMetricsServiceServer(s, metricService{collector: c})
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return c, "http://" + l.Addr().String()
}

const answer = `{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":10,"output_tokens":5}}`

// One call through the gate is one span: its parent is the client's span, and the provider gets the gate's.
func TestACallIsASpan(t *testing.T) {
	for _, protocol := range []string{"http/protobuf", "grpc"} {
		t.Run(protocol, func(t *testing.T) {
			c, url := collect(t, protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", url)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", protocol)
			t.Setenv("OTEL_RESOURCE_ATTRIBUTES", "team=search")
			figures := prometheus.NewRegistry()
			figures.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "sluice_own_figure"}, func() float64 { return 1 }))
			tele, err := telemetry.Open(t.Context(), telemetry.Options{Getenv: os.Getenv, Version: "v1", Figures: figures, Provider: func(string) string { return "anthropic" }})
			if err != nil || tele == nil {
				t.Fatal(tele, err)
			}
			var told string
			upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				told = r.Header.Get("Traceparent")
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, answer)
			}))
			defer upstream.Close()
			gate, err := sluice.Open(t.Context(), sluice.Config{Resources: map[string]sluice.Resource{"claude": {Limits: []sluice.Limit{{Name: "l", Size: 100, Window: time.Minute}}}}})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = gate.Close() }()
			dialect, _ := provider.Lookup("anthropic")
			client := &http.Client{Transport: &sluicehttp.Transport{
				Gate: gate, Resource: "claude", Dialect: dialect, Caller: sluicehttp.Caller{Agent: "indexer", Class: "p1"}, Trace: tele.Trace(),
			}}
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, upstream.URL+"/v1/messages", strings.NewReader(`{"model":"claude-sonnet-4-5","max_tokens":10,"messages":[{"role":"user","content":"canary-body"}]}`))
			req.Header.Set("X-Api-Key", "canary-key")
			const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
			req.Header.Set("Traceparent", parent)
			resp, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			if err := tele.Close(); err != nil {
				t.Fatal(err)
			}
			if len(c.spans) != 1 {
				t.Fatalf("%d spans", len(c.spans))
			}
			s := c.spans[0]
			if s.GetName() != "chat claude-sonnet-4-5" || s.GetKind() != tracepb.Span_SPAN_KIND_CLIENT {
				t.Errorf("the span is %v %v", s.GetName(), s.GetKind())
			}
			id := hex.EncodeToString
			if id(s.GetTraceId()) != parent[3:35] || id(s.GetParentSpanId()) != parent[36:52] {
				t.Errorf("it belongs to %x of %x", s.GetParentSpanId(), s.GetTraceId())
			}
			if want := "00-" + id(s.GetTraceId()) + "-" + id(s.GetSpanId()) + "-01"; told != want {
				t.Errorf("the provider was told %s, want %s", told, want)
			}
			var events []string
			last := s.GetStartTimeUnixNano() - uint64(time.Second)
			for _, e := range s.GetEvents() {
				events = append(events, e.GetName())
				if e.GetTimeUnixNano() < last {
					t.Errorf("%s is earlier than the event before", e.GetName())
				}
				last = e.GetTimeUnixNano()
			}
			if got := strings.Join(events, " "); got != "queued granted sent answered" {
				t.Errorf("the events are %s", got)
			}
			got := values(s.GetAttributes())
			for name, want := range map[string]string{
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.response.model": "claude-sonnet-4-5",
				"gen_ai.usage.input_tokens": "10", "gen_ai.usage.output_tokens": "5", "http.response.status_code": "200",
				"sluice.resource": "claude", "sluice.agent": "indexer", "sluice.class": "p1", "sluice.verdict": "ok",
			} {
				if got[name] != want {
					t.Errorf("%s is %q, want %q", name, got[name], want)
				}
			}
			if text := s.String(); strings.Contains(text, "canary") {
				t.Errorf("the span has what it must not have: %s", text)
			}
			if c.about["service.name"] != "sluice" || c.about["service.version"] != "v1" || c.about["team"] != "search" {
				t.Errorf("the resource is %v", c.about)
			}
			for _, name := range []string{"gen_ai.client.token.usage", "gen_ai.client.operation.duration", "sluice_own_figure"} {
				if !c.metrics[name] {
					t.Errorf("there is no metric %s among %v", name, c.metrics)
				}
			}
		})
	}
}

// Without the variables nothing is sent, and wrong values are reported.
func TestWhatTheEnvironmentSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		env  map[string]string
		want string // in the error; "on" or "off" if there is none
	}{
		"nothing":      {nil, "off"},
		"endpoint":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_METRICS_EXPORTER": "none"}, "on"},
		"of traces":    {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://127.0.0.1:1"}, "on"},
		"disabled":     {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, "off"},
		"none":         {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none", "OTEL_METRICS_EXPORTER": "none"}, "off"},
		"exporter":     {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin"}, `OTEL_TRACES_EXPORTER: "zipkin" is not supported`},
		"protocol":     {map[string]string{"OTEL_METRICS_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}, `OTEL_EXPORTER_OTLP_PROTOCOL: "http/json" is not supported`},
		"own protocol": {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "x"}, `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "x" is not supported`},
	} {
		tele, err := telemetry.Open(t.Context(), telemetry.Options{Getenv: func(name string) string { return c.env[name] }})
		got := "off"
		switch {
		case err != nil:
			got = err.Error()
		case tele != nil:
			got = "on"
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if (tele.Trace() == nil) != (tele == nil) {
			t.Errorf("%s: traces do not follow", name)
		}
		if err := tele.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
