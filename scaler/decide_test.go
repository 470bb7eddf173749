package scaler_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/scaler"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// in returns a moment after noon.
func in(d time.Duration) *time.Time { t := noon.Add(d); return &t }

// configured are limits of all kinds, as a gate is opened with them.
var configured = []sluice.Limit{
	{Name: "hour", Kind: sluice.Fixed, Size: 6000, Window: time.Hour},
	{Name: "minute", Kind: sluice.Rolling, Size: 80, Window: time.Minute},
	{Name: "burst", Kind: sluice.Bucket, Size: 5, Window: time.Second, Burst: 50},
	{Name: "stated", Kind: sluice.Bucket, Window: time.Minute},
	{Name: "hidden", Kind: sluice.Bucket, Window: time.Minute, Burst: 50},
	{Name: "model", Kind: sluice.Rolling, Window: time.Minute, Per: []sluice.Scope{sluice.PerModel}},
	{Name: "each", Kind: sluice.Rolling, Size: 1, Window: time.Minute, Per: []sluice.Scope{sluice.PerAgent}},
	{Name: "places", Kind: sluice.Concurrency, Size: 2},
	{Name: "tokens", Kind: sluice.Rolling, Size: 1000, Window: time.Minute, Unit: "tokens"},
}

// limit returns the state of a limit.
func limit(name string, size, remaining int64, change ...func(*inspect.LimitStatus)) inspect.LimitStatus {
	l := inspect.LimitStatus{Name: name, Kind: "fixed", Unit: sluice.Requests, Limit: size, Remaining: remaining, Used: size - remaining, Light: "green"}
	for _, c := range configured {
		if c.Name == name {
			l.Kind = c.Kind.String()
			if c.Unit != "" {
				l.Unit = c.Unit
			}
		}
	}
	for _, f := range change {
		f(&l)
	}
	return l
}

func resets(d time.Duration) func(*inspect.LimitStatus) {
	return func(l *inspect.LimitStatus) { l.ResetAt = in(d) }
}

func scope(s string) func(*inspect.LimitStatus) { return func(l *inspect.LimitStatus) { l.Scope = s } }

// shines sets a light that binds.
func shines(color string) func(*inspect.LimitStatus) {
	return func(l *inspect.LimitStatus) { l.Light, l.Binds = color, true }
}

func idle(l *inspect.LimitStatus) { l.Binds = false }

func breaker(s string) func(*inspect.LimitStatus) {
	return func(l *inspect.LimitStatus) { l.Breaker = s }
}

func api(limits ...inspect.LimitStatus) inspect.ResourceStatus {
	return inspect.ResourceStatus{Name: "api", Light: "green", Limits: limits, Waiting: map[string]int{"p0": 1, "p1": 4, "p2": 20}}
}

func phase(s inspect.ResourceStatus, scope, phase string) inspect.ResourceStatus {
	s.Gates = append(s.Gates, inspect.PauseStatus{Scope: scope, Phase: phase})
	return s
}

func light(s inspect.ResourceStatus, color string) inspect.ResourceStatus { s.Light = color; return s }

func ask(mode scaler.Mode, target float64, change ...func(*scaler.Trigger)) scaler.Trigger {
	t := scaler.Trigger{Resource: "api", Mode: mode, Target: target}
	for _, f := range change {
		f(&t)
	}
	return t
}

func class(c string) func(*scaler.Trigger) { return func(t *scaler.Trigger) { t.Class = c } }
func unit(u string) func(*scaler.Trigger)  { return func(t *scaler.Trigger) { t.Unit = u } }
func model(m string) func(*scaler.Trigger) { return func(t *scaler.Trigger) { t.Model = m } }

func TestDecide(t *testing.T) {
	half := resets(30 * time.Minute)
	for _, c := range []struct {
		name   string
		status inspect.ResourceStatus
		ask    scaler.Trigger
		want   scaler.Demand
	}{
		{"a stock lasts until its reset", api(limit("hour", 6000, 3000, half)), ask("headroom", 10), scaler.Demand{Replicas: 10}},
		{"more time, fewer", api(limit("hour", 6000, 3000, resets(time.Hour))), ask("headroom", 10), scaler.Demand{Replicas: 5}},
		{"rounded down", api(limit("hour", 6000, 3299, half)), ask("headroom", 10), scaler.Demand{Replicas: 10}},
		{"a reset that nobody knows is a window ahead", api(limit("hour", 6000, 3000)), ask("headroom", 10), scaler.Demand{Replicas: 5}},
		{"the last minute counts as one", api(limit("hour", 6000, 100, resets(time.Second))), ask("headroom", 10), scaler.Demand{Replicas: 10}},
		{"a reset that has been", api(limit("hour", 6000, 100, resets(-time.Second))), ask("headroom", 10), scaler.Demand{Replicas: 10}},
		{"a little left feeds one", api(limit("hour", 6000, 3, half)), ask("headroom", 10), scaler.Demand{Replicas: 1}},
		{"nothing left", api(limit("hour", 6000, 0, half)), ask("headroom", 10), scaler.Demand{Off: "exhausted"}},
		{"more used than there is", api(limit("hour", 6000, -5, half)), ask("headroom", 10), scaler.Demand{Off: "exhausted"}},
		{"a rolling window's rate, though used up", api(limit("minute", 80, 0)), ask("headroom", 10), scaler.Demand{Replicas: 8}},
		{"a bucket's rate, not what it holds", api(limit("burst", 50, 0)), ask("headroom", 10), scaler.Demand{Replicas: 30}},
		{"a bucket that answers tell of", api(limit("stated", 60, 60)), ask("headroom", 10), scaler.Demand{Replicas: 6}},
		{"a bucket whose rate is not told", api(limit("hidden", 60, 60)), ask("headroom", 10), scaler.Demand{Replicas: 1}},
		{"a slow flow feeds one", api(limit("minute", 80, 80)), ask("headroom", 1000), scaler.Demand{Replicas: 1}},
		{"the tightest", api(limit("hour", 6000, 3000, half), limit("minute", 80, 80)), ask("headroom", 10), scaler.Demand{Replicas: 8}},
		{"exact division", api(limit("minute", 3, 3)), ask("headroom", 0.1), scaler.Demand{Replicas: 30}},
		{"at most a million", api(limit("minute", 1<<50, 1<<50)), ask("headroom", 1), scaler.Demand{Replicas: 1_000_000}},
		{"nothing known", api(), ask("headroom", 10), scaler.Demand{Replicas: 1}},
		{"a size that is not known", api(limit("hour", 0, 0)), ask("headroom", 10), scaler.Demand{Replicas: 1}},
		{"places have no rate", api(limit("places", 2, 0), limit("minute", 80, 80)), ask("headroom", 10), scaler.Demand{Replicas: 8}},
		{"an agent's own limit binds no other", api(limit("each", 1, 0, scope("a")), limit("minute", 80, 80)), ask("headroom", 10), scaler.Demand{Replicas: 8}},
		{"models together", api(limit("model", 40, 0, scope("a")), limit("model", 20, 0, scope("b"))), ask("headroom", 10), scaler.Demand{Replicas: 6}},
		{"one model", api(limit("model", 40, 0, scope("a")), limit("model", 20, 0, scope("b"))), ask("headroom", 10, model("b")), scaler.Demand{Replicas: 2}},
		{"one model, with a key", api(limit("model", 40, 0, scope("a,k")), limit("model", 20, 0, scope("b,k"))), ask("headroom", 10, model("a")), scaler.Demand{Replicas: 4}},
		{"one model and what all share", api(limit("model", 40, 0, scope("a")), limit("minute", 10, 0)), ask("headroom", 10, model("a")), scaler.Demand{Replicas: 1}},
		{"requests unless told", api(limit("tokens", 1000, 0), limit("minute", 80, 0)), ask("headroom", 10), scaler.Demand{Replicas: 8}},
		{"what the first counts, without requests", api(limit("places", 2, 2), limit("tokens", 1000, 0)), ask("headroom", 10), scaler.Demand{Replicas: 100}},
		{"a unit", api(limit("tokens", 1000, 0), limit("minute", 80, 0)), ask("headroom", 10, unit("tokens")), scaler.Demand{Replicas: 100}},

		{"the queue of all", api(), ask("queue", 10), scaler.Demand{Replicas: 3}},
		{"the queue of a class", api(), ask("queue", 10, class("p1")), scaler.Demand{Replicas: 1}},
		{"a class that nobody is in", api(), ask("queue", 10, class("p9")), scaler.Demand{}},

		{"green", api(limit("hour", 9, 9)), ask("light", 5), scaler.Demand{Replicas: 5}},
		{"amber is half", light(api(), "amber"), ask("light", 5), scaler.Demand{Replicas: 3}},
		{"amber is at least one", light(api(), "amber"), ask("light", 1), scaler.Demand{Replicas: 1}},
		{"amber does not hold the highest", light(api(), "amber"), ask("light", 5, class("p0")), scaler.Demand{Replicas: 5}},
		{"the light as it is shown", light(api(), "red"), ask("light", 5), scaler.Demand{Off: "red"}},
		{"the light of a unit", light(api(limit("hour", 9, 0, shines("red")), limit("tokens", 9, 9)), "red"), ask("light", 5, unit("tokens")), scaler.Demand{Replicas: 5}},

		{"amber with a lower class", api(limit("hour", 6000, 3000, half, shines("amber"))), ask("headroom", 10, class("p2")), scaler.Demand{Replicas: 1}},
		{"amber with the highest class", api(limit("hour", 6000, 3000, half, shines("amber"))), ask("headroom", 10, class("p0")), scaler.Demand{Replicas: 10}},
		{"amber with no class", api(limit("hour", 6000, 3000, half, shines("amber"))), ask("headroom", 10), scaler.Demand{Replicas: 10}},
		{"amber and a queue", api(limit("hour", 6000, 3000, half, shines("amber"))), ask("queue", 2, class("p2")), scaler.Demand{Replicas: 1}},
		{"red", api(limit("hour", 6000, 3000, half, shines("red"))), ask("headroom", 10), scaler.Demand{Off: "red"}},
		{"red and a queue", api(limit("hour", 6000, 3000, half, shines("red"))), ask("queue", 2), scaler.Demand{Off: "red"}},
		{"red that holds nobody", api(limit("minute", 80, 0, shines("red"), idle)), ask("headroom", 10), scaler.Demand{Replicas: 8}},
		{"red on another unit", api(limit("tokens", 9, 0, shines("red")), limit("minute", 80, 0)), ask("headroom", 10, unit("requests")), scaler.Demand{Replicas: 8}},
		{"red for one model of two", api(limit("model", 40, 0, scope("a"), shines("red")), limit("model", 20, 0, scope("b"))), ask("headroom", 10), scaler.Demand{Replicas: 6}},
		{"red for that model", api(limit("model", 40, 0, scope("a"), shines("red")), limit("model", 20, 0, scope("b"))), ask("headroom", 10, model("a")), scaler.Demand{Off: "red"}},
		{"an open breaker", api(limit("hour", 6000, 3000, half, breaker("open"))), ask("queue", 2), scaler.Demand{Off: "breaker"}},
		{"a gliding breaker", api(limit("hour", 6000, 3000, half, breaker("gliding"))), ask("headroom", 10), scaler.Demand{Replicas: 10}},

		{"paused", phase(api(limit("minute", 80, 80)), "", "paused"), ask("light", 5), scaler.Demand{Off: "paused"}},
		{"a pause goes first", phase(light(api(), "red"), "", "paused"), ask("light", 5), scaler.Demand{Off: "paused"}},
		{"another model is paused", phase(api(), "model=b", "paused"), ask("light", 5, model("a")), scaler.Demand{Replicas: 5}},
		{"some model is paused", phase(api(), "model=b", "paused"), ask("light", 5), scaler.Demand{Replicas: 5}},
		{"the model is paused", phase(api(), "model=a", "paused"), ask("light", 5, model("a")), scaler.Demand{Off: "paused"}},
		{"probing", phase(api(), "", "probing"), ask("light", 5), scaler.Demand{Replicas: 5, Probing: true}},
		{"ramping", phase(api(), "", "ramping"), ask("light", 5), scaler.Demand{Replicas: 5, Ramping: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := scaler.Decide(scaler.Situation{Status: c.status, Limits: configured, Highest: "p0", Now: noon}, c.ask)
			if err != nil || got != c.want {
				t.Errorf("%+v, %v; want %+v", got, err, c.want)
			}
		})
	}
}

func TestAFlowOfUnknownLengthIsAnError(t *testing.T) {
	s := scaler.Situation{Status: api(limit("minute", 80, 80)), Now: noon}
	if d, err := scaler.Decide(s, ask("headroom", 10)); err == nil || !strings.Contains(err.Error(), "limit minute") || !strings.Contains(err.Error(), "api") {
		t.Errorf("%+v, %v; want an error that names resource and limit", d, err)
	}
	if d, err := scaler.Decide(s, ask("queue", 25)); err != nil || d.Replicas != 1 {
		t.Errorf("%+v, %v: a queue needs no rate", d, err)
	}
}

// In every state, replicas together use no more than what is left, unless there is only one. Less left or a higher
// target never means more replicas. A stopped trigger gets none.
func TestHeadroomIsNeverMoreThanThereIs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.Int64Range(1, 1_000_000).Draw(t, "size")
		left := rapid.Int64Range(0, size).Draw(t, "left")
		minutes := rapid.Float64Range(0, 24*60).Draw(t, "minutes")
		target := rapid.Float64Range(0.01, 1000).Draw(t, "target")
		color := rapid.SampledFrom([]string{"green", "amber", "red"}).Draw(t, "light")
		state := rapid.SampledFrom([]string{"", "gliding", "open"}).Draw(t, "breaker")
		class := rapid.SampledFrom([]string{"", "p0", "p1"}).Draw(t, "class")
		decide := func(left int64, target float64) scaler.Demand {
			s := api(limit("hour", size, left, shines(color), breaker(state), resets(time.Duration(minutes*float64(time.Minute)))))
			d, err := scaler.Decide(scaler.Situation{Status: s, Limits: configured, Highest: "p0", Now: noon}, ask("headroom", target, func(t *scaler.Trigger) { t.Class = class }))
			if err != nil {
				t.Fatal(err)
			}
			return d
		}
		d := decide(left, target)
		stopped := color == "red" || state == "open" || left == 0
		if stopped != (d.Off != "") || (d.Replicas == 0) != stopped {
			t.Fatalf("%+v, want none exactly if it is stopped", d)
		}
		if need := float64(d.Replicas) * target * max(minutes, 1); d.Replicas > 1 && need > float64(left)*1.000001 {
			t.Fatalf("%d replicas need %v of %d", d.Replicas, need, left)
		}
		if more := decide(left-left/3, target); more.Replicas > d.Replicas {
			t.Fatalf("%d replicas with less left, %d with more", more.Replicas, d.Replicas)
		}
		if more := decide(left, target*1.5); more.Replicas > d.Replicas {
			t.Fatalf("%d replicas that need more each, %d that need less", more.Replicas, d.Replicas)
		}
	})
}
