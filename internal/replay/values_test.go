package replay

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// perMinute is a bucket of requests.
func perMinute(n int64) []sim.Limit {
	return []sim.Limit{{Name: "requests", Kind: store.Bucket, Unit: sim.Requests, Size: n, Burst: n, Window: time.Minute}}
}

// replayed replays a log against a limit.
func replayed(t *testing.T, text string, requests int64) *Report {
	t.Helper()
	r, err := New(read(t, "", text), Setup{Assumptions: usual, Limits: perMinute(requests), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	rep, err := r.Run()
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

// Values that a replay cannot use are counted by field, with the line of the first one.
func TestBadValuesAreCounted(t *testing.T) {
	for field, values := range map[string][]string{
		"tokens":      {"-5", "1e300", "9223372036854775808", `"abc"`, "1000000001", "true"},
		"usd":         {"-0.5", "1e9", `"free"`},
		"duration_ms": {"1e18", "-1", `"2s"`, "86400001"},
		"duration_s":  {"86401"},
		"end":         {`"yesterday"`, `"2026-03-04T11:00:00Z"`, `"9999-01-01T00:00:00Z"`},
	} {
		for _, value := range values {
			l := read(t, "", line(0, "a", 200, "")+line(1, "a", 200, fmt.Sprintf(`,%q:%s`, field, value))+line(2, "a", 200, fmt.Sprintf(`,%q:%s`, field, value)))
			if want := []Ignored{{Field: field, Values: 2, Line: 2}}; !slices.Equal(l.Ignored, want) {
				t.Errorf("%s %s: ignored %+v, want %+v", field, value, l.Ignored, want)
			}
			if s := l.Sends[1]; s.Input != 0 || s.USD != 0 || !s.End.Equal(s.Start) {
				t.Errorf("%s %s is used: %+v", field, value, s)
			}
		}
	}
	good := line(0, "a", 200, `,"tokens":1000000000,"usd":0,"duration_ms":86400000`) + line(1, "a", 200, `,"tokens":null,"usd":"","duration_ms":" "`)
	if rep := replayed(t, good, 60); rep.Ignored == nil || len(rep.Ignored) != 0 {
		t.Errorf("good values: ignored %+v", rep.Ignored)
	}
	if rep := replayed(t, line(0, "a", 200, `,"tokens":-1`), 60); len(rep.Ignored) != 1 {
		t.Errorf("the report does not tell: %+v", rep.Ignored)
	}
	if l := read(t, "", `[{"startTime":"2026-03-04T12:00:00Z","endTime":"2026-03-04T11:00:00Z","completionStartTime":"soon","total_tokens":-1,"spend":-1}]`); len(l.Ignored) != 4 {
		t.Errorf("LiteLLM: ignored %+v", l.Ignored)
	}
}

// An event from a clock that was never set is left out and counted, like a torn line.
func TestBadEventsAreCounted(t *testing.T) {
	r := &reader{log: &Log{Format: Events}, tickets: map[string]int{}}
	r.event(&inspect.Event{Kind: inspect.EventSend, Time: time.Unix(9, 0), Ticket: "a"})
	r.event(&inspect.Event{Kind: inspect.EventSend, Time: noon, Ticket: "b", WaitedMS: 1 << 62, Units: map[string]int64{"input_tokens": -5, "output_tokens": 1 << 40, "usd": -1}})
	if r.log.Skipped != 1 || len(r.log.Sends) != 1 || len(r.log.Ignored) != 4 {
		t.Fatalf("%+v", r.log)
	}
	if s := r.log.Sends[0]; s.Input != 0 || s.Output != 0 || s.Priced || !s.Wanted.Equal(noon) {
		t.Errorf("%+v", s)
	}
}

// The hint for an impossible time says what to do about it.
func TestErrorsOfTimesHaveHints(t *testing.T) {
	for _, text := range []string{`{"time":"1970-01-01T00:00:00Z","status":200}`, line(0, "a", 200, "") + `{"time":"2012-01-01T00:00:00Z","status":200}`} {
		_, err := Read("-", "", "", strings.NewReader(text))
		if e, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(e.Hint, "correct the time") {
			t.Errorf("%v", err)
		}
	}
}

// A log of almost ten years is replayed with durations that are right.
func TestLongLogs(t *testing.T) {
	rep := replayed(t, `{"time":"2016-03-05T00:00:00Z","caller":"a","status":200}`+"\n"+line(0, "a", 200, ""), 60)
	if years := rep.Log.DurationS / (365.25 * 86400); years < 9.9 || years > 10 || rep.Gate.DurationS != rep.Log.DurationS {
		t.Errorf("%.0f s in the log, %.0f s with the gate", rep.Log.DurationS, rep.Gate.DurationS)
	}
}

// Limits that refuse nothing agree with a log that rarely refuses, but explain none of its refusals.
func TestLimitsThatExplainNoRefusal(t *testing.T) {
	var rare strings.Builder
	for n := range 300 {
		status := 200
		if n%40 == 7 {
			status = 429
		}
		rare.WriteString(line(float64(n), "a", status, ""))
	}
	if e := replayed(t, rare.String(), 200).Explained; e.Agree < 0.95 || e.Log != 8 || e.Both != 0 || e.Reliable {
		t.Errorf("unexplained refusals: %+v", e)
	}
	if e := replayed(t, line(0, "a", 200, "")+line(1, "a", 200, ""), 200).Explained; !e.Reliable {
		t.Errorf("no refusals: %+v", e)
	}
	for _, c := range []struct {
		e        sim.Explained
		both     int
		reliable bool
	}{
		{sim.Explained{Sends: 1000, Refused: 10, Model: 10, Differ: 4}, 8, true},
		{sim.Explained{Sends: 1000, Refused: 10, Model: 16, Differ: 6}, 10, false},
		{sim.Explained{Sends: 100, Refused: 20, Model: 14, Differ: 6}, 14, false},
		{sim.Explained{Sends: 100, Model: 3, Differ: 3}, 0, true},
	} {
		if got := explained(c.e); got.Both != c.both || got.Reliable != c.reliable {
			t.Errorf("%+v: %+v", c.e, got)
		}
	}
}

// Waits end when a request is sent, in the log and with the gate. A gate that holds nothing adds no wait.
func TestWaitsAreComparable(t *testing.T) {
	rep := replayed(t, line(0, "a", 200, `,"duration_ms":3000`)+line(10, "b", 429, `,"duration_ms":2000`), 600)
	if w := rep.Gate.Classes[0]; w.MeanS != 0 || w.P95S != 0 || w.LongestS != 0 {
		t.Errorf("the gate held nothing, but calls wait: %+v", w)
	}
	if !slices.Contains(rep.Assumptions, "A message takes 500ms each way: a replay assumes no more, although the median refusal took 2s.") {
		t.Errorf("%q", rep.Assumptions)
	}
	rep = replayed(t, line(0, "a", 200, "")+line(1, "a", 429, `,"duration_ms":40`)+line(61, "a", 200, ""), 1)
	if w := rep.Gate.Classes[0]; w.LongestS < 58 || w.LongestS > 60 {
		t.Errorf("the second call waits for the limit: %+v", w)
	}
	if !slices.Contains(rep.Assumptions, "A message takes 20ms each way: half of the median time of a refusal.") {
		t.Errorf("%q", rep.Assumptions)
	}
}
