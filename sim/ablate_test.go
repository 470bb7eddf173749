package sim

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func ablated(t *testing.T, src string) (*Variant, map[string]*Variant) {
	t.Helper()
	sc, err := Parse("test.yaml", strings.NewReader(src))
	if err != nil {
		t.Fatal(err)
	}
	a, err := Ablate(t.Context(), sc, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if a.Class != "p0" || len(a.Without) != len(mechanisms) {
		t.Errorf("class %s, %d rows", a.Class, len(a.Without))
	}
	by := map[string]*Variant{}
	for i := range a.Without {
		v := &a.Without[i]
		t.Logf("%+v, %v", v, even(v))
		by[v.Name] = v
	}
	t.Logf("full: %+v, %v", a.Full, even(&a.Full))
	return &a.Full, by
}

// even returns Jain's index, or 0 if there is none.
func even(v *Variant) float64 {
	if v.Jain == nil {
		return 0
	}
	return *v.Jain
}

// The gate gets no refusals; without its guard it does. Without fair order, greedy agents pass the others, and p0
// waits.
func TestAblateShowsWhatGuardAndOrderDo(t *testing.T) {
	t.Parallel()
	full, without := ablated(t, `
name: greedy
provider:
  limits: [{name: minute, size: 60/min}]
agents:
  - {name: web, class: p0, start: 1m, jobs: 20, every: 3s}
  - {name: greedy, class: p2, calls: 240, workers: 40}
  - {name: modest, class: p2, calls: 120, workers: 4}
`)
	if full.Throttled != 0 || full.Jain == nil || *full.Jain < 0.9 {
		t.Errorf("the full gate: %+v", full)
	}
	if v := without["arrival guard"]; v.Throttled == 0 || v.Same {
		t.Errorf("without its guard nothing is refused: %+v", v)
	}
	if v := without["fair order"]; v.Jain == nil || *v.Jain > *full.Jain-0.2 || v.WaitMean < 2*full.WaitMean || v.WaitP95 < full.WaitP95 {
		t.Errorf("first come, first served is as fair: %+v", v)
	}
	if v := without["usage"]; !v.Same {
		t.Errorf("without tokens there is nothing to learn from: %+v", v)
	}
}

// When others use the key too, the provider refuses requests, and the pause after that changes the run. Only responses
// say when a window resets.
func TestAblateShowsWhatResponsesTell(t *testing.T) {
	t.Parallel()
	full, without := ablated(t, `
name: shared-key
provider:
  limits: [{name: minute, size: 60/min, burst: 10}]
  headers: false
  outside: 30/min
agents:
  - {name: web, class: p0, calls: 200, workers: 20}
`)
	if v := without["shared pause"]; full.Throttled == 0 || v.Throttled == 0 || v.Same {
		t.Errorf("%d refused with the pause, %d without: it changes nothing", full.Throttled, v.Throttled)
	}
	full, without = ablated(t, `
name: resets
provider:
  limits: [{name: window, size: 100/10m, kind: fixed, first_reset: 3m}]
agents:
  - {name: web, class: p0, calls: 150, workers: 20}
`)
	if v := without["headers"]; v.Makespan < 1.5*full.Makespan {
		t.Errorf("headers save no time: %.0f s with them, %.0f s without", full.Makespan, v.Makespan)
	}
}

// The first row equals the strategy in a simulation, and a seed always gives the same rows.
func TestAblateMeasuresTheSameGate(t *testing.T) {
	t.Parallel()
	sc, err := Load("overnight")
	if err != nil {
		t.Fatal(err)
	}
	a, err := Ablate(t.Context(), sc, 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	f := alone(t, sc, LightTail, 2)
	if v := a.Full; v.Finished != f.Finished || v.Throttled != f.Throttled || v.Utilization != f.Utilization || v.Makespan != f.Makespan {
		t.Errorf("%+v, but simulate says %+v", v, f)
	}
	runs := 0
	again, err := Ablate(t.Context(), sc, 2, func(p Progress) { runs = max(runs, p.Done+1) })
	if err != nil || !reflect.DeepEqual(a, again) || runs != 1+len(mechanisms) {
		t.Errorf("another run with the same seed differs, or tells of %d runs: %v", runs, err)
	}
}

func TestFairnessByHand(t *testing.T) {
	t.Parallel()
	sc := &Scenario{Fleet: []Agent{{Class: 1}, {Class: 1}, {Class: 1}, {Class: 0}}}
	f := newFairness(sc)
	calls := make([]*call, len(sc.Fleet))
	for i := range sc.Fleet {
		calls[i] = &call{agent: &agent{Agent: &sc.Fleet[i], index: i}}
	}
	serve := func(agent, n int) {
		for range n {
			f.satisfied(calls[agent], true)
		}
	}
	f.demanded(&arrival{agent: calls[0].agent, n: 100})
	f.demanded(&arrival{agent: calls[1].agent, n: 100})
	serve(0, 30) // the slice in which they arrived does not count
	if f.index() != nil {
		t.Errorf("%v before there was a slice", *f.index())
	}
	serve(0, 20)
	serve(1, 10)
	if got, want := f.index(), 30.0*30/(2*(400+100)); got == nil || math.Abs(*got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
	f.demanded(&arrival{agent: calls[3].agent, n: 1}) // an agent alone in its class has no index
	serve(3, 1)
	if f.slices != 1 {
		t.Errorf("%d slices", f.slices)
	}
}
