// Package telemetry sends traces and metrics to an OpenTelemetry collector, with the conventions for generative AI. It
// does nothing unless the standard environment variables ask for it. docs/telemetry.md lists what is sent.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	promclient "github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetricgrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
)

// Options configures telemetry.
type Options struct {
	Getenv  func(name string) string
	Log     *slog.Logger
	Version string
	// Figures are existing metrics to send too. Nil means none.
	Figures promclient.Gatherer
	// Provider returns the dialect of a resource.
	Provider func(resource string) string
}

// maxSeries bounds the series of a metric, because clients choose the names of models.
const maxSeries = 2000

// flushWithin is how long sending the last spans and figures may take.
const flushWithin = 5 * time.Second

// signal is one of the two kinds of telemetry.
type signal string

const (
	traces  signal = "TRACES"
	metrics signal = "METRICS"
)

// wanted returns the protocol of a signal, or "" if the environment does not ask for the signal.
func wanted(s signal, getenv func(string) string) (protocol string, err error) {
	if strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return "", nil
	}
	name := "OTEL_" + string(s) + "_EXPORTER"
	switch exporter := getenv(name); exporter {
	case "none":
		return "", nil
	case "otlp":
	case "":
		if getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && getenv("OTEL_EXPORTER_OTLP_"+string(s)+"_ENDPOINT") == "" {
			return "", nil
		}
	default:
		return "", fmt.Errorf("%s: %.40q is not supported: otlp or none", name, exporter)
	}
	name = "OTEL_EXPORTER_OTLP_" + string(s) + "_PROTOCOL"
	protocol = getenv(name)
	if protocol == "" {
		name = "OTEL_EXPORTER_OTLP_PROTOCOL"
		protocol = getenv(name)
	}
	switch protocol {
	case "":
		return "http/protobuf", nil
	case "http/protobuf", "grpc":
		return protocol, nil
	}
	return "", fmt.Errorf("%s: %.40q is not supported: http/protobuf or grpc", name, protocol)
}

// Telemetry sends spans and metrics. A nil *Telemetry does nothing.
type Telemetry struct {
	spans *spans
	stop  []func(context.Context) error
}

// Open starts what the environment asks for. It returns nil if that is nothing.
func Open(ctx context.Context, o Options) (*Telemetry, error) {
	byTrace, err := wanted(traces, o.Getenv)
	if err != nil {
		return nil, err
	}
	byMetric, err := wanted(metrics, o.Getenv)
	if err != nil || byTrace == "" && byMetric == "" {
		return nil, err
	}
	// Attributes from the environment override these.
	res, err := resource.New(ctx, resource.WithAttributes(semconv.ServiceName("sluice"), semconv.ServiceVersion(o.Version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if o.Log != nil { // otherwise the library writes to standard error
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { o.Log.Warn("telemetry: " + err.Error()) }))
	}
	t := &Telemetry{spans: &spans{provider: o.Provider}}
	if byTrace != "" {
		exporter, err := traceExporter(ctx, byTrace)
		if err != nil {
			return nil, fmt.Errorf("traces cannot be sent: %w", err)
		}
		p := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(res))
		t.stop = append(t.stop, p.Shutdown)
		t.spans.tracer = p.Tracer(scope)
	}
	if byMetric != "" {
		exporter, err := metricExporter(ctx, byMetric)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("metrics cannot be sent: %w", err), t.Close())
		}
		var read []sdkmetric.PeriodicReaderOption
		if o.Figures != nil {
			read = append(read, sdkmetric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(o.Figures))))
		}
		p := sdkmetric.NewMeterProvider(sdkmetric.WithReader(sdkmetric.NewPeriodicReader(exporter, read...)), sdkmetric.WithResource(res), sdkmetric.WithCardinalityLimit(maxSeries))
		t.stop = append(t.stop, p.Shutdown)
		if err := t.spans.measure(p.Meter(scope)); err != nil {
			return nil, errors.Join(err, t.Close())
		}
	}
	return t, nil
}

// scope is the instrumentation scope of the spans.
const scope = "github.com/sluicehq/sluice"

func traceExporter(ctx context.Context, protocol string) (sdktrace.SpanExporter, error) {
	if protocol == "grpc" {
		return otlptracegrpc.New(ctx)
	}
	return otlptracehttp.New(ctx)
}

func metricExporter(ctx context.Context, protocol string) (sdkmetric.Exporter, error) {
	if protocol == "grpc" {
		return otlpmetricgrpc.New(ctx)
	}
	return otlpmetrichttp.New(ctx)
}

// Close sends the remaining data and stops.
func (t *Telemetry) Close() (err error) {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushWithin)
	defer cancel()
	for _, stop := range t.stop {
		err = errors.Join(err, stop(ctx))
	}
	return err
}
