package keda_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	v2 "k8s.io/api/autoscaling/v2"

	"github.com/sluicehq/sluice/scaler"
)

// client is KEDA's, for one trigger.
type client struct {
	tb     testing.TB
	scaler scalers.Scaler
}

// config is what KEDA makes of a ScaledObject's trigger.
func config(r *rig, auth map[string]string, pairs ...string) *scalersconfig.ScalerConfig {
	m := map[string]string{"scalerAddress": r.address}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return &scalersconfig.ScalerConfig{
		ScalableObjectName: "workers", ScalableObjectNamespace: "default", ScalableObjectType: "ScaledObject", TriggerName: "quota", TriggerType: "external",
		TriggerMetadata: m, ResolvedEnv: map[string]string{}, AuthParams: auth, TriggerIndex: 2, MetricType: v2.AverageValueMetricType,
	}
}

func (r *rig) trigger(pairs ...string) *client {
	r.tb.Helper()
	s, err := scalers.NewExternalScaler(config(r, nil, pairs...))
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { _ = s.Close(context.Background()) })
	return &client{r.tb, s}
}

// replicas is what the cluster makes of the metric: the value by the target, rounded up.
func (c *client) replicas() int64 {
	c.tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	specs := c.scaler.GetMetricSpecForScaling(ctx)
	if len(specs) != 1 {
		c.tb.Fatalf("%d metrics, want one", len(specs))
	}
	values, active, err := c.scaler.GetMetricsAndActivity(ctx, specs[0].External.Metric.Name)
	if err != nil || len(values) != 1 {
		c.tb.Fatalf("%v, %v", values, err)
	}
	value, target := values[0].Value.MilliValue(), specs[0].External.Target.AverageValue.MilliValue()
	n := (value + target - 1) / target
	if active != (n > 0) {
		c.tb.Errorf("active is %v with %d replicas", active, n)
	}
	return n
}

func (c *client) want(when string, n int64) {
	c.tb.Helper()
	if got := c.replicas(); got != n {
		c.tb.Errorf("%s: %d replicas, want %d", when, got, n)
	}
}

// ramp expects the numbers after a stop, one step of the ramp after the other.
func (c *client) ramp(r *rig, when string, numbers ...int64) {
	c.tb.Helper()
	for _, n := range numbers {
		c.want(when, n)
		r.pass(scaler.RampStep)
	}
}

func TestGreenAndAmber(t *testing.T) {
	r := start(t, nil)
	all, highest, lower := r.trigger("resource", "stock", "target", "10"), r.trigger("resource", "stock", "target", "10", "class", "p0"), r.trigger("resource", "stock", "target", "10", "class", "p2")
	light := r.trigger("resource", "stock", "mode", "light", "target", "6")
	r.states("stock", 3150, 30*time.Minute)
	for _, c := range []*client{all, highest, lower} {
		c.want("green", 10)
	}
	light.want("green, by the light", 6)
	r.states("stock", 950, 30*time.Minute)
	all.want("amber", 3)
	highest.want("amber, of p0", 3)
	lower.want("amber, of p2", 1)
	light.want("amber, by the light", 3)
	r.trigger("resource", "flow", "mode", "headroom", "target", "10").want("a flow", 8)
	r.trigger("resource", "flow", "mode", "queue", "target", "10").want("an empty queue", 0)
}

// Red means none; the reset brings them back, as a ramp.
func TestRedAndRecovery(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "stock", "target", "10")
	r.states("stock", 200, 3*time.Second)
	c.want("red", 0)
	r.until("the reset", func() bool { return r.resource("stock").Light == "green" })
	r.pass(scaler.Quiet)
	c.ramp(r, "after the reset", 1, 2, 4, 8)
}

func TestBreaker(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "quick", "target", "10")
	remaining := int64(6000)
	r.until("the breaker", func() bool {
		r.states("quick", remaining, 50*time.Minute)
		remaining -= 100
		return r.resource("quick").Limits[0].Breaker == "open"
	})
	c.want("while the breaker is open", 0)
	r.states("quick", 6000, time.Hour) // a reset that moves is another window
	if b := r.resource("quick").Limits[0].Breaker; b != "" {
		t.Fatalf("the breaker is %s", b)
	}
	r.pass(scaler.Quiet)
	c.ramp(r, "after the breaker", 1, 2, 4, 8)
}

// A pause means none, the push stream tells when it is over, and a ramp follows.
func TestPauseAndPush(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "flow", "target", "10")
	c.want("before the pause", 8)
	r.pause("flow")
	c.want("in the pause", 0)

	push, err := scalers.NewExternalPushScaler(config(r, nil, "resource", "flow", "target", "10"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	active := make(chan bool)
	var ended atomic.Bool
	go func() { push.Run(ctx, active); ended.Store(true) }()
	t.Cleanup(func() {
		cancel()
		for range active {
		}
		_ = push.Close(context.Background())
	})
	if r.next(active) {
		t.Fatal("active while paused")
	}
	resumed := time.Now()
	r.resume("flow")
	if !r.next(active) {
		t.Fatal("told that it is not active, after the pause")
	}
	if d := time.Since(resumed); d >= time.Second {
		t.Errorf("told %v after the pause, want within a second", d)
	}
	c.ramp(r, "after the pause", 1, 2, 4, 8, 8)
	if ended.Load() {
		t.Error("the stream has ended")
	}
}

// KEDA's certificates are texts in its authentication parameters.
func TestTLS(t *testing.T) {
	cert, pem := certificate(t)
	r := start(t, &cert)
	s, err := scalers.NewExternalScaler(config(r, map[string]string{"caCert": pem}, "resource", "flow", "target", "10", "enableTLS", "true"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	(&client{t, s}).want("over TLS", 8)
}

// What is wrong with a trigger is an error to KEDA, which shows it at the ScaledObject.
func TestUnknownMetadata(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "flow", "tarket", "10")
	if specs := c.scaler.GetMetricSpecForScaling(t.Context()); len(specs) != 0 {
		t.Errorf("metrics of a trigger that is wrong: %v", specs)
	}
	if _, _, err := c.scaler.GetMetricsAndActivity(t.Context(), "s2-sluice-headroom-flow"); err == nil || !contains(err.Error(), "tarket") {
		t.Errorf("%v, want an error that names the field", err)
	}
}
