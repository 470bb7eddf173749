package sim_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/sim"
)

func load(t *testing.T, name string) *sim.Scenario {
	t.Helper()
	sc, err := sim.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func report(t *testing.T, sc *sim.Scenario, seed uint64) *sim.Report {
	t.Helper()
	rep, err := sim.Simulate(t.Context(), sc, seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func figures(t *testing.T, rows []sim.Figures, name string) sim.Figures {
	t.Helper()
	for _, f := range rows {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("no row %q", name)
	return sim.Figures{}
}

// Every scenario shows a difference between strategies.
func TestScenariosTellStrategiesApart(t *testing.T) {
	for _, sc := range sim.Builtin() {
		if sc.Name == "scale" {
			continue // TestScale runs it, and a smaller one
		}
		t.Run(sc.Name, func(t *testing.T) {
			rep := report(t, sc, 1)
			for _, name := range []string{"fixed interval 5 s", "exponential", "full jitter", "sdk default", "limiter per process"} {
				if f := figures(t, rep.Strategies, name); f.Throttled < f.Calls/10 {
					t.Errorf("%s is refused only %d times in %d calls", name, f.Throttled, f.Calls)
				}
			}
			for _, rows := range [][]sim.Figures{rep.Strategies, rep.HeavyTail} {
				for _, f := range rows {
					if f.Finished+f.GaveUp != f.Calls || f.Sent < f.Finished {
						t.Errorf("%s: the numbers do not add up: %+v", f.Name, f)
					}
				}
			}
		})
	}
}

func TestSameSeedSameFigures(t *testing.T) {
	for _, name := range []string{"overnight", "six-committers"} {
		sc := load(t, name)
		a, b := report(t, sc, 7), report(t, load(t, name), 7)
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s: two runs with one seed differ:\n%+v\n%+v", name, a, b)
		}
		if reflect.DeepEqual(a.Strategies, report(t, sc, 8).Strategies) {
			t.Errorf("%s: another seed changes nothing", name)
		}
	}
}

// everything uses every part of the file format.
const everything = `
name: everything
provider:
  preset: anthropic
  requests: 60/min
  input_tokens: 40000/min
  output_tokens: 8000/min
  limits:
    - {name: day, size: 5000/day, kind: fixed, first_reset: 1h, unit: requests}
    - {name: inflight, concurrency: 30}
  rejected_count: true
  service: {median: 300ms, sigma: 0.4}
  body: {median: 2s, sigma: 0.5}
  outside: 4/min
price: 0.01
walls: {attempts: 6, deadline: 30m}
agents:
  - {name: chat, count: 2, class: p0, jobs: 20, calls: 2, every: 10s, workers: 3, model: opus, input_tokens: 900, output_tokens: 150, spread: 0.4}
  - {name: batch, class: p2, calls: 80, workers: 8, model: haiku, input_tokens: 1200, output_tokens: 100, spread: 0.4}
`

func TestEverythingAtOnce(t *testing.T) {
	sc, err := sim.Parse("everything.yaml", strings.NewReader(everything))
	if err != nil {
		t.Fatal(err)
	}
	rep := report(t, sc, 1)
	if got, want := len(rep.Strategies), len(sim.Strategies()); got != want {
		t.Fatalf("%d rows for %d strategies", got, want)
	}
	f := figures(t, rep.Strategies, "sluice")
	t.Logf("%+v", f)
	if f.Finished < f.Calls*9/10 {
		t.Errorf("sluice finished %d of %d calls", f.Finished, f.Calls)
	}
}
