package keda_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/scaler"
	"github.com/sluicehq/sluice/store"
	_ "github.com/sluicehq/sluice/store/memstore"
	_ "github.com/sluicehq/sluice/test/keda/twice"
)

// KEDA logs what the tests provoke.
func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	m.Run()
}

var resources = map[string]sluice.Resource{
	// Its thresholds do not shrink with the time left, so that what is stated decides the color.
	"stock": {
		Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 6000, Window: time.Hour}},
		Light:  sluice.Light{Static: true}, Breaker: sluice.Breaker{Off: true},
	},
	"flow":   {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: 80, Window: time.Minute}}},
	"narrow": {Limits: []sluice.Limit{{Name: "places", Kind: sluice.Concurrency, Size: 1}}},
	"quick": {
		Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Fixed, Size: 6000, Window: time.Hour}},
		Light:  sluice.Light{Off: true}, Breaker: sluice.Breaker{Open: true, Samples: 4},
	},
}

// rig is a scaler on a port of its own, whose clock can be put forward.
type rig struct {
	tb      testing.TB
	gate    *sluice.Gate
	scaler  *scaler.Server
	address string
	ahead   atomic.Int64
}

func start(tb testing.TB, config *tls.Config) *rig {
	tb.Helper()
	return startWith(tb, resources, config)
}

func startWith(tb testing.TB, resources map[string]sluice.Resource, config *tls.Config) *rig {
	tb.Helper()
	gate, err := sluice.Open(context.Background(), sluice.Config{Store: "mem:", Resources: resources})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = gate.Close() })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	r := &rig{tb: tb, gate: gate, address: l.Addr().String()}
	s := scaler.New(scaler.Options{
		Gate: gate, Classes: []string{"p0", "p1", "p2"}, Resources: resources,
		Now: func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
	})
	r.scaler = s
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l, config) }()
	tb.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			tb.Errorf("it ended with %v", err)
		}
	})
	return r
}

// pass lets time pass for the scaler.
func (r *rig) pass(d time.Duration) { r.ahead.Add(int64(d)) }

func (r *rig) resource(name string) inspect.ResourceStatus {
	r.tb.Helper()
	s, err := r.gate.Resource(context.Background(), name)
	if err != nil {
		r.tb.Fatal(err)
	}
	return s
}

// states tells the gate what a provider says of an hour's quota.
func (r *rig) states(resource string, remaining int64, reset time.Duration) {
	r.tb.Helper()
	r.stated(resource, sluice.ObservedLimit{Limit: "hour", Size: 6000, Remaining: remaining, ResetIn: reset})
}

func (r *rig) stated(resource string, what sluice.ObservedLimit) {
	r.tb.Helper()
	err := r.gate.Observe(context.Background(), sluice.Request{Resource: resource, Agent: "somebody"}, sluice.Answer{
		Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{what},
	})
	if err != nil {
		r.tb.Fatal(err)
	}
}

func (r *rig) pause(resource string) {
	r.tb.Helper()
	if err := r.gate.Pause(context.Background(), resource, time.Hour, "maintenance"); err != nil {
		r.tb.Fatal(err)
	}
}

func (r *rig) resume(resource string) {
	r.tb.Helper()
	if err := r.gate.Resume(context.Background(), resource); err != nil {
		r.tb.Fatal(err)
	}
}

// until waits for something that comes with time.
func (r *rig) until(what string, is func() bool) {
	r.tb.Helper()
	tick, late := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-late:
			r.tb.Fatalf("%s has not come within a minute", what)
		}
	}
}

// next is the next word of a push stream.
func (r *rig) next(active <-chan bool) bool {
	r.tb.Helper()
	select {
	case a, open := <-active:
		if !open {
			r.tb.Fatal("the stream has ended")
		}
		return a
	case <-time.After(time.Minute):
		r.tb.Fatal("no word within a minute")
	}
	return false
}
