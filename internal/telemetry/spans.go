package telemetry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sluicehttp"
)

// spans creates one span for each exchange, and records its metrics.
type spans struct {
	tracer   trace.Tracer // nil means no spans
	provider func(resource string) string

	tokens   metric.Int64Histogram   // nil means no metrics
	duration metric.Float64Histogram // nil means no metrics
}

// w3c reads and writes the headers traceparent and tracestate.
var w3c propagation.TraceContext

func (s *spans) measure(m metric.Meter) (err error) {
	if s.tokens, err = m.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Tokens of a call, in and out."),
		metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304)); err != nil {
		return err
	}
	s.duration, err = m.Float64Histogram("gen_ai.client.operation.duration", metric.WithUnit("s"), metric.WithDescription("How long a call took, with the time it was held."),
		metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92))
	return err
}

// Trace returns the function that begins the span of an exchange, for [sluicehttp.Transport]. It is nil if nothing is
// traced.
func (t *Telemetry) Trace() func(*http.Request, http.Header) func(sluicehttp.Exchange) {
	if t == nil {
		return nil
	}
	return t.spans.begin
}

func (s *spans) begin(r *http.Request, header http.Header) func(sluicehttp.Exchange) {
	operation := operationOf(r.URL.Path)
	if s.tracer == nil {
		return func(x sluicehttp.Exchange) { s.count(r.Context(), operation, &x) }
	}
	// The client's span is in its headers; the context belongs to its connection.
	ctx := w3c.Extract(context.WithoutCancel(r.Context()), propagation.HeaderCarrier(r.Header))
	ctx, span := s.tracer.Start(ctx, "sluice", trace.WithSpanKind(trace.SpanKindClient))
	w3c.Inject(ctx, propagation.HeaderCarrier(header))
	return func(x sluicehttp.Exchange) {
		s.end(span, operation, &x)
		s.count(ctx, operation, &x)
	}
}

// end records the result of the exchange in its span.
func (s *spans) end(span trace.Span, operation string, x *sluicehttp.Exchange) {
	defer span.End()
	if !span.IsRecording() {
		return
	}
	span.SetName(nameOf(operation, x))
	for _, e := range []struct {
		name string
		at   time.Time
	}{{"queued", x.Began}, {"granted", x.Granted}, {"sent", x.Sent}, {"answered", x.Answered}} {
		if !e.at.IsZero() {
			span.AddEvent(e.name, trace.WithTimestamp(e.at))
		}
	}
	span.SetAttributes(s.attributes(operation, x)...)
	span.SetAttributes(
		attribute.String("sluice.agent", x.Agent), attribute.String("sluice.class", x.Class), attribute.Int64("sluice.waited_ms", x.Waited.Milliseconds()),
		attribute.String("sluice.verdict", x.Verdict.String()),
	)
	for name, value := range map[string]string{
		"sluice.user": x.User, "sluice.request_id": x.RequestID, "sluice.ticket": x.Ticket, "gen_ai.response.id": x.UpstreamID,
	} {
		if value != "" {
			span.SetAttributes(attribute.String(name, value))
		}
	}
	if x.Attempts > 1 {
		span.SetAttributes(attribute.Int("http.request.resend_count", x.Attempts-1))
	}
	if x.Usage.Known {
		span.SetAttributes(attribute.Int64("gen_ai.usage.input_tokens", input(&x.Usage)), attribute.Int64("gen_ai.usage.output_tokens", x.Usage.Output))
		if x.Usage.CacheRead > 0 {
			span.SetAttributes(attribute.Int64("gen_ai.usage.cache_read.input_tokens", x.Usage.CacheRead))
		}
	}
	if x.Priced {
		span.SetAttributes(attribute.Float64("sluice.cost_usd", float64(x.Micros)/1e6))
	}
	if what := errorType(x); what != "" {
		span.SetStatus(codes.Error, what)
	}
}

// count records the exchange, if metrics are sent.
func (s *spans) count(ctx context.Context, operation string, x *sluicehttp.Exchange) {
	if s.tokens == nil || operation == "" {
		return
	}
	all := s.attributes(operation, x)
	s.duration.Record(ctx, (x.Waited + x.Took).Seconds(), metric.WithAttributes(all...))
	if !x.Usage.Known {
		return
	}
	record := func(kind string, n int64) {
		s.tokens.Record(ctx, n, metric.WithAttributes(append(all[:len(all):len(all)], attribute.String("gen_ai.token.type", kind))...))
	}
	record("input", input(&x.Usage))
	record("output", x.Usage.Output)
}

// attributes returns the attributes of spans and metrics: each has few values, except for names of models.
func (s *spans) attributes(operation string, x *sluicehttp.Exchange) []attribute.KeyValue {
	list := []attribute.KeyValue{attribute.String("sluice.resource", x.Resource)}
	if operation != "" {
		list = append(list, attribute.String("gen_ai.operation.name", operation))
		if s.provider != nil {
			if name := providerName(s.provider(x.Resource)); name != "" {
				list = append(list, attribute.String("gen_ai.provider.name", name))
			}
		}
		if x.Model != "" {
			list = append(list, attribute.String("gen_ai.request.model", x.Model))
		}
		if x.Usage.Model != "" {
			list = append(list, attribute.String("gen_ai.response.model", x.Usage.Model))
		}
	}
	if x.Status != 0 {
		list = append(list, attribute.Int("http.response.status_code", x.Status))
	}
	if what := errorType(x); what != "" {
		list = append(list, attribute.String("error.type", what))
	}
	return list
}

// input returns the number of input tokens, cached ones included.
func input(u *provider.Usage) int64 { return u.Input + u.CacheRead + u.CacheWrite + u.CacheLong }

func nameOf(operation string, x *sluicehttp.Exchange) string {
	switch {
	case operation == "":
		return "sluice " + x.Resource
	case x.Model == "":
		return operation
	}
	return operation + " " + x.Model
}

// operationOf returns what a call does, from the end of its path; "" if it does not call a model.
func operationOf(path string) string {
	path = strings.TrimSuffix(path, "/")
	for _, o := range []struct{ end, is string }{
		{"/messages", "chat"}, {"/chat/completions", "chat"}, {"/responses", "chat"}, {"/converse", "chat"}, {"/converse-stream", "chat"},
		{"/completions", "text_completion"}, {"/embeddings", "embeddings"}, {":embedContent", "embeddings"},
		{":generateContent", "generate_content"}, {":streamGenerateContent", "generate_content"},
	} {
		if strings.HasSuffix(path, o.end) {
			return o.is
		}
	}
	return ""
}

// providerName returns the conventions' name of a provider.
func providerName(dialect string) string {
	switch dialect {
	case "gemini":
		return "gcp.gemini"
	case "azure":
		return "azure.ai.openai"
	case "bedrock":
		return "aws.bedrock"
	case "generic":
		return ""
	}
	return dialect
}

// errorType returns a word for an error: one of few values, and never text from a client.
func errorType(x *sluicehttp.Exchange) string {
	var refused *sluice.Error
	switch {
	case x.Aborted:
		return "aborted"
	case errors.As(x.Err, &refused) && refused.Reason != "":
		return "sluice." + refused.Reason
	case x.Err != nil:
		return "unreachable"
	case x.Status >= http.StatusBadRequest:
		return fmt.Sprint(x.Status)
	}
	return ""
}
