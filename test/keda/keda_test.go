package keda_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers"
	"github.com/kedacore/keda/v2/pkg/scalers/scalersconfig"
	v2 "k8s.io/api/autoscaling/v2"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/scaler"
)

// client is KEDA's, for one trigger.
type client struct {
	tb     testing.TB
	scaler scalers.Scaler
}

// config is what KEDA makes of a ScaledObject's trigger.
func config(r *rig, auth map[string]string, pairs ...string) *scalersconfig.ScalerConfig {
	m := map[string]string{}
	for i := 0; i+1 < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	m["scalerAddress"] = r.address
	return &scalersconfig.ScalerConfig{
		ScalableObjectName: "workers", ScalableObjectNamespace: "default", ScalableObjectType: "ScaledObject", TriggerName: "quota", TriggerType: "external",
		TriggerMetadata: m, ResolvedEnv: map[string]string{}, AuthParams: auth, TriggerIndex: 2, MetricType: v2.AverageValueMetricType,
	}
}

func (r *rig) trigger(pairs ...string) *client {
	r.tb.Helper()
	return r.triggerWith(nil, pairs...)
}

func (r *rig) triggerWith(auth map[string]string, pairs ...string) *client {
	r.tb.Helper()
	s, err := scalers.NewExternalScaler(config(r, auth, pairs...))
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
	r.trigger("resource", "stock", "mode", "light", "target", "6", "class", "p0").want("amber, by the light, of p0", 6)
	r.trigger("resource", "stock", "mode", "light", "target", "6", "class", "p2").want("amber, by the light, of p2", 3)
	r.trigger("resource", "flow", "mode", "headroom", "target", "10").want("a flow", 8)
	r.trigger("resource", "flow", "mode", "queue", "target", "10").want("an empty queue", 0)
}

// Red means none; the reset brings them back, as a ramp.
func TestRedAndRecovery(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "stock", "target", "10")
	r.states("stock", 200, 10*time.Second)
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

// What is wrong with a trigger is an error to KEDA, which shows it at the ScaledObject.
func TestUnknownMetadata(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "flow", "tarket", "10")
	if specs := c.scaler.GetMetricSpecForScaling(t.Context()); len(specs) != 0 {
		t.Errorf("metrics of a trigger that is wrong: %v", specs)
	}
	if _, _, err := c.scaler.GetMetricsAndActivity(t.Context(), "s2-sluice-headroom-flow"); err == nil || !strings.Contains(err.Error(), "tarket") {
		t.Errorf("%v, want an error that names the field", err)
	}
}

// Values may come from the environment of the workload, as far as KEDA has found them there.
func TestMetadataFromTheEnvironment(t *testing.T) {
	r := start(t, nil)
	c := config(r, nil, "resource", "flow", "targetFromEnv", "TARGET", "classFromEnv", "NOWHERE")
	c.ResolvedEnv["TARGET"] = "20"
	s, err := scalers.NewExternalScaler(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	(&client{t, s}).want("with a target from the environment", 4)
}

// Those who wait are worth replicas, at once; that they are gone counts when it has lasted.
func TestQueue(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "narrow", "mode", "queue", "target", "2", "class", "p1")
	c.want("with nobody there", 0)
	holder, err := r.gate.Acquire(t.Context(), sluice.Request{Resource: "narrow", Agent: "first", Class: "p1"})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := r.gate.Acquire(ctx, sluice.Request{Resource: "narrow", Agent: "more", Class: "p1"}); err == nil {
				t.Error("two at the same time")
			}
		})
	}
	r.until("the queue", func() bool { return r.resource("narrow").Waiting["p1"] == 3 })
	c.want("with three waiting", 2)
	r.trigger("resource", "narrow", "mode", "queue", "target", "2", "class", "p2").want("of another class", 0)
	cancel()
	wg.Wait()
	if err := holder.Close(); err != nil {
		t.Fatal(err)
	}
	c.want("just after they left", 2)
	r.pass(scaler.Settle)
	c.want("when it has lasted", 0)
}
