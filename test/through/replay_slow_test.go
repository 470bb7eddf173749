//go:build slow

package through_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/replay"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/store"
)

// realPreset is presetFor with sockets and real time.
func realPreset(t *testing.T, o mock.Options) *preset {
	t.Helper()
	p := &preset{t: t, name: o.Provider}
	var err error
	if p.mock, err = mock.New(o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.mock.Close)
	served := httptest.NewServer(p.mock)
	t.Cleanup(served.Close)
	r, _ := provider.Preset(o.Provider)
	if p.gate, err = sluice.Open(t.Context(), sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{o.Provider: r}}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.gate.Close() })
	dialect, _ := provider.Lookup(o.Provider)
	upstream, err := url.Parse(served.URL)
	if err != nil {
		t.Fatal(err)
	}
	base := &http.Transport{MaxIdleConnsPerHost: 100}
	t.Cleanup(base.CloseIdleConnections)
	gate, err := proxy.New(proxy.Options{
		Gate: p.gate, Classes: []string{"p0", "p1", "p2"}, Base: base, Hosts: []string{"127.0.0.1"},
		Resources: map[string]proxy.Resource{o.Provider: {Upstream: upstream, Dialect: dialect, Limits: r.Limits, Deadline: time.Hour}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(gate.Settle)
	door := httptest.NewServer(gate)
	t.Cleanup(door.Close)
	p.gateURL, p.providerURL = door.URL, strings.TrimSuffix(served.URL, "/")
	p.client = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 100}}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// The same as TestReplayPredictsTheGate in real time, over sockets: about a minute.
func TestReplayPredictsARealRun(t *testing.T) {
	o := mock.Options{Provider: "anthropic", Requests: rate(120, time.Minute), Latency: 300 * time.Millisecond, Tail: 100 * time.Millisecond, Seed: 1}
	before := &squad{p: realPreset(t, o), direct: true, calls: 28, workers: 6}
	without := before.run()
	after := &squad{p: realPreset(t, o), calls: 28, workers: 6}
	with := after.run()
	refused := after.p.mock.Stats().Throttled
	rep := foretold(t, before.log.Bytes(), replay.Setup{Limits: []sim.Limit{
		{Name: "requests", Kind: store.Bucket, Unit: sim.Requests, Size: 120, Burst: 120, Window: time.Minute},
	}})
	t.Logf("without the gate %v, %d refused; with it %v, %d refused; foretold %.3f s, %d refused; %d calls, explained %+v",
		without, rep.Log.Throttled, with, refused, rep.Gate.DurationS, rep.Gate.Throttled, rep.Log.Calls, rep.Explained)
	if off := math.Abs(rep.Gate.DurationS-with.Seconds()) / with.Seconds(); off > 0.05 {
		t.Errorf("the duration is foretold as %.1f s and was %v: %.1f%% off", rep.Gate.DurationS, with, off*100)
	}
	if math.Abs(float64(rep.Gate.Throttled)-float64(refused)) > 0.05*float64(refused) {
		t.Errorf("%d refusals are foretold, %d there were", rep.Gate.Throttled, refused)
	}
}
