package keda_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/kedacore/keda/v2/pkg/scalers"

	"github.com/sluicehq/sluice"
)

// pushed is what KEDA's client hears on a push stream.
type pushed struct {
	r      *rig
	active chan bool
	ended  atomic.Bool
}

// push opens a stream that lasts as long as the test.
func (r *rig) push(auth map[string]string, pairs ...string) *pushed {
	r.tb.Helper()
	s, err := scalers.NewExternalPushScaler(config(r, auth, pairs...))
	if err != nil {
		r.tb.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &pushed{r: r, active: make(chan bool)}
	go func() {
		defer p.ended.Store(true)
		s.Run(ctx, p.active)
	}()
	r.tb.Cleanup(func() {
		cancel()
		for range p.active { // it is closed when the stream is
		}
		_ = s.Close(context.Background())
	})
	return p
}

func (p *pushed) want(when string, active bool) {
	p.r.tb.Helper()
	if got := p.r.next(p.active); got != active {
		p.r.tb.Fatalf("%s: told %v, want %v", when, got, active)
	}
}

// A pause means none, the push stream tells when it is over, and a ramp follows.
func TestPauseAndPush(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "flow", "target", "10")
	c.want("before the pause", 8)
	p := r.push(nil, "resource", "flow", "target", "10")
	p.want("before the pause", true)
	r.pause("flow")
	c.want("in the pause", 0)
	p.want("in the pause", false)
	r.resume("flow")
	p.want("after the pause", true)
	c.ramp(r, "after the pause", 1, 2, 4, 8, 8)
	if p.ended.Load() {
		t.Error("the stream has ended")
	}
}

// The daemon takes a new configuration: what KEDA has open goes on, and hears of the new gate.
func TestNewConfiguration(t *testing.T) {
	r := start(t, nil)
	c := r.trigger("resource", "flow", "target", "10")
	c.want("before", 8)
	p := r.push(nil, "resource", "flow", "target", "10")
	p.want("before", true)
	half := map[string]sluice.Resource{"flow": {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 40, Window: time.Minute}}}}
	gate, err := sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: half})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = gate.Close() })
	r.scaler.Follow(gate, []string{"p0", "p1", "p2"}, half)
	if err := r.gate.Close(); err != nil {
		t.Fatal(err)
	}
	r.gate = gate
	c.want("after", 4)
	r.pause("flow")
	p.want("in a pause of the new gate", false)
	c.want("in a pause of the new gate", 0)
	if p.ended.Load() {
		t.Error("the stream has ended")
	}
}

// KEDA is told within a second that there may be replicas again. Each round begins when the stream has just looked, so
// that the next look is as far away as it can be. On a machine that is busy with other things a round may take
// longer, so one of them counts; scaler's own tests measure it in virtual time.
func TestActivationIsToldWithinASecond(t *testing.T) {
	r := start(t, nil)
	p := r.push(nil, "resource", "flow", "target", "10")
	p.want("at first", true)
	best := time.Duration(0)
	for round := range 5 {
		r.pause("flow")
		p.want("in a pause", false)
		resumed := time.Now()
		r.resume("flow")
		p.want("after a pause", true)
		d := time.Since(resumed)
		t.Logf("told %v after the end of a pause", d.Round(time.Millisecond))
		if round == 0 || d < best {
			best = d
		}
	}
	if best >= time.Second {
		t.Errorf("told after %v at best, want within a second", best)
	}
}
