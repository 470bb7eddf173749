package retry_test

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/retry"
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

func always(r float64) func() float64 { return func() float64 { return r } }

func TestNext(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		policy  retry.Policy
		failure retry.Failure
		random  float64
		want    retry.Decision
	}{
		{"first retry draws below base", retry.Policy{}, retry.Failure{Sent: 1}, 0.5,
			retry.Decision{Wait: 500 * ms, Reason: retry.Backoff, High: sec, Left: 600 * sec}},
		{"jitter may be nothing at all", retry.Policy{}, retry.Failure{Sent: 1}, 0,
			retry.Decision{Reason: retry.Backoff, High: sec, Left: 600 * sec}},
		{"range doubles", retry.Policy{}, retry.Failure{Sent: 4}, 0.5,
			retry.Decision{Wait: 4 * sec, Reason: retry.Backoff, High: 8 * sec, Left: 600 * sec}},
		{"range is capped", retry.Policy{Attempts: 20}, retry.Failure{Sent: 6}, 0.5,
			retry.Decision{Wait: 15 * sec, Reason: retry.Backoff, High: 30 * sec, Left: 600 * sec}},
		{"base above cap", retry.Policy{Base: time.Minute}, retry.Failure{Sent: 1}, 0.5,
			retry.Decision{Wait: 15 * sec, Reason: retry.Backoff, High: 30 * sec, Left: 600 * sec}},

		{"hint wins over class", retry.Policy{}, retry.Failure{Sent: 1, Class: "p0", Hint: 20 * sec, Hinted: true}, 0.25,
			retry.Decision{Wait: 20250 * ms, Reason: retry.Hint, Low: 20 * sec, High: 21 * sec, Left: 600 * sec}},
		{"hint of zero is a hint", retry.Policy{}, retry.Failure{Sent: 5, Hinted: true}, 0.5,
			retry.Decision{Wait: 500 * ms, Reason: retry.Hint, High: sec, Left: 600 * sec}},
		{"negative hint counts as now", retry.Policy{}, retry.Failure{Sent: 5, Hint: -sec, Hinted: true}, 0,
			retry.Decision{Reason: retry.Hint, High: sec, Left: 600 * sec}},
		{"hint that was not given is not read", retry.Policy{}, retry.Failure{Sent: 1, Hint: 20 * sec}, 0,
			retry.Decision{Reason: retry.Backoff, High: sec, Left: 600 * sec}},

		{"p0 first", retry.Policy{}, retry.Failure{Sent: 1, Class: "p0"}, 0.5,
			retry.Decision{Wait: 750 * ms, Reason: retry.Priority, Low: 500 * ms, High: sec, Left: 600 * sec}},
		{"p0 last", retry.Policy{}, retry.Failure{Sent: 5, Class: "p0"}, 0.5,
			retry.Decision{Wait: 2750 * ms, Reason: retry.Priority, Low: 500 * ms, High: 5 * sec, Left: 600 * sec}},
		{"p1 second", retry.Policy{}, retry.Failure{Sent: 2, Class: "p1"}, 0.5,
			retry.Decision{Wait: 5 * sec, Reason: retry.Priority, Low: 2 * sec, High: 8 * sec, Left: 600 * sec}},
		{"p2 fourth", retry.Policy{}, retry.Failure{Sent: 4, Class: "p2"}, 0,
			retry.Decision{Wait: 5 * sec, Reason: retry.Priority, Low: 5 * sec, High: 60 * sec, Left: 600 * sec}},
		{"class without a window", retry.Policy{}, retry.Failure{Sent: 1, Class: "batch"}, 0.5,
			retry.Decision{Wait: 500 * ms, Reason: retry.Backoff, High: sec, Left: 600 * sec}},
		{"windows switched off", retry.Policy{Windows: map[string]retry.Window{}}, retry.Failure{Sent: 1, Class: "p0"}, 0.5,
			retry.Decision{Wait: 500 * ms, Reason: retry.Backoff, High: sec, Left: 600 * sec}},
		{"window upside down keeps its maximum", retry.Policy{Windows: map[string]retry.Window{"p0": {Min: 9 * sec, Max: 3 * sec}}},
			retry.Failure{Sent: 1, Class: "p0"}, 0.5,
			retry.Decision{Wait: 3 * sec, Reason: retry.Priority, Low: 3 * sec, High: 3 * sec, Left: 600 * sec}},

		{"held pool: the queue decides", retry.Policy{}, retry.Failure{Sent: 3, Class: "p2", Hint: time.Hour, Hinted: true, Held: true}, 0.9,
			retry.Decision{Reason: retry.Queue, Left: 600 * sec}},
		{"held pool does not move the first wall", retry.Policy{}, retry.Failure{Sent: 6, Held: true}, 0,
			retry.Decision{Give: true, Reason: retry.Attempts, Left: 600 * sec}},
		{"held pool does not move the second wall", retry.Policy{}, retry.Failure{Sent: 1, Elapsed: 600 * sec, Held: true}, 0,
			retry.Decision{Give: true, Reason: retry.Deadline}},

		{"fifth send may be repeated", retry.Policy{}, retry.Failure{Sent: 5}, 0,
			retry.Decision{Reason: retry.Backoff, High: 16 * sec, Left: 600 * sec}},
		{"sixth may not", retry.Policy{}, retry.Failure{Sent: 6, Elapsed: 100 * sec}, 0,
			retry.Decision{Give: true, Reason: retry.Attempts, Left: 500 * sec}},
		{"one attempt means no retry", retry.Policy{Attempts: 1}, retry.Failure{Sent: 1}, 0,
			retry.Decision{Give: true, Reason: retry.Attempts, Left: 600 * sec}},
		{"hint past the deadline fails now", retry.Policy{}, retry.Failure{Sent: 1, Elapsed: 9 * time.Minute, Hint: 2 * time.Minute, Hinted: true}, 0,
			retry.Decision{Wait: 120 * sec, Give: true, Reason: retry.Deadline, Low: 120 * sec, High: 121 * sec, Left: 60 * sec}},
		{"wait that ends just before the deadline", retry.Policy{Deadline: 31 * sec}, retry.Failure{Sent: 1, Hint: 30 * sec, Hinted: true}, 0.999,
			retry.Decision{Wait: 30999 * ms, Reason: retry.Hint, Low: 30 * sec, High: 31 * sec, Left: 31 * sec}},
		{"wait that reaches the deadline", retry.Policy{Deadline: 30 * sec}, retry.Failure{Sent: 1, Hint: 30 * sec, Hinted: true}, 0,
			retry.Decision{Wait: 30 * sec, Give: true, Reason: retry.Deadline, Low: 30 * sec, High: 31 * sec, Left: 30 * sec}},
		{"clock that went backwards", retry.Policy{}, retry.Failure{Sent: 1, Elapsed: math.MinInt64}, 0,
			retry.Decision{Reason: retry.Backoff, High: sec, Left: 600 * sec}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := test.policy.Next(test.failure, always(test.random)); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestDefaultIsTheZeroPolicy(t *testing.T) {
	t.Parallel()
	spelled := retry.Default()
	for sent := range 8 {
		for _, class := range []string{"", "p0", "p1", "p2", "p3"} {
			f := retry.Failure{Sent: sent, Class: class}
			if a, b := spelled.Next(f, always(0.3)), (retry.Policy{}).Next(f, always(0.3)); a != b {
				t.Errorf("%+v: default %+v, zero value %+v", f, a, b)
			}
		}
	}
	spelled.Windows["p0"] = retry.Window{Min: time.Hour, Max: time.Hour}
	if d := (retry.Policy{}).Next(retry.Failure{Sent: 1, Class: "p0"}, always(0)); d.Wait != 500*ms {
		t.Errorf("changing a returned policy changed the defaults: p0 waits %v", d.Wait)
	}
}

func TestAbsurdInputsStayInRange(t *testing.T) {
	t.Parallel()
	patient := retry.Policy{Attempts: math.MaxInt, Deadline: math.MaxInt64}
	for _, sent := range []int{math.MinInt, -1, 0, 1 << 30, math.MaxInt - 1} {
		for _, r := range []float64{math.NaN(), math.Inf(-1), -1, 0, 0.5, 1, 7, math.Inf(1)} {
			for class, most := range map[string]time.Duration{"": 30 * sec, "p0": 5 * sec, "p1": 30 * sec, "p2": 60 * sec} {
				d := patient.Next(retry.Failure{Sent: sent, Class: class}, always(r))
				if d.Give || d.Wait < 0 || d.Wait > most {
					t.Errorf("sent %d, random %v, class %q: %+v", sent, r, class, d)
				}
			}
		}
	}
	endless := retry.Policy{Attempts: math.MaxInt, Deadline: math.MaxInt64, Base: math.MaxInt64, Cap: math.MaxInt64}
	if d := endless.Next(retry.Failure{Sent: 1 << 30, Elapsed: 1}, always(0.5)); d.Wait <= 0 || d.High != math.MaxInt64 {
		t.Errorf("largest durations overflow: %+v", d)
	}
	if d := patient.Next(retry.Failure{Sent: 1, Hint: math.MaxInt64, Hinted: true}, always(0)); d.Wait != retry.MaxHint {
		t.Errorf("hint is not bounded: %+v", d)
	}
}

func drawPolicy(t *rapid.T) retry.Policy {
	length := rapid.Int64Range(-1, int64(48*time.Hour))
	p := retry.Policy{
		Attempts: rapid.IntRange(-1, 40).Draw(t, "attempts"),
		Deadline: time.Duration(length.Draw(t, "deadline")),
		Base:     time.Duration(length.Draw(t, "base")),
		Cap:      time.Duration(length.Draw(t, "cap")),
	}
	if rapid.Bool().Draw(t, "own windows") {
		p.Windows = map[string]retry.Window{"p0": {
			Min: time.Duration(length.Draw(t, "min")),
			Max: time.Duration(length.Draw(t, "max")),
		}}
	}
	return p
}

func drawFailure(t *rapid.T) retry.Failure {
	return retry.Failure{
		Sent:    rapid.OneOf(rapid.IntRange(1, 8), rapid.Int()).Draw(t, "sent"),
		Elapsed: time.Duration(rapid.OneOf(rapid.Int64Range(0, int64(time.Hour)), rapid.Int64()).Draw(t, "elapsed")),
		Class:   rapid.SampledFrom([]string{"", "p0", "p1", "p2", "x"}).Draw(t, "class"),
		Hint:    time.Duration(rapid.OneOf(rapid.Int64Range(0, int64(time.Hour)), rapid.Int64()).Draw(t, "hint")),
		Hinted:  rapid.Bool().Draw(t, "hinted"),
		Held:    rapid.Bool().Draw(t, "held"),
	}
}

func TestEveryDecisionKeepsTheWalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, f := drawPolicy(t), drawFailure(t)
		draws := 0
		d := p.Next(f, func() float64 {
			draws++
			return rapid.Float64Range(0, 1).Draw(t, "random")
		})
		attempts, deadline := p.Attempts, p.Deadline
		if attempts <= 0 {
			attempts = retry.DefaultAttempts
		}
		if deadline <= 0 {
			deadline = retry.DefaultDeadline
		}
		if d.Wait < d.Low || d.Wait > d.High || d.Low < 0 {
			t.Fatalf("wait outside its range: %+v", d)
		}
		if draws > 1 {
			t.Fatalf("%d draws", draws)
		}
		if d.Give != (d.Reason == retry.Attempts || d.Reason == retry.Deadline) {
			t.Fatalf("reason contradicts the decision: %+v", d)
		}
		if !d.Give && (f.Sent >= attempts || d.Wait >= deadline-max(0, f.Elapsed)) {
			t.Fatalf("went past a wall: %+v", d)
		}
		if d.Reason == retry.Deadline && d.Wait < d.Left {
			t.Fatalf("gave up with time left: %+v", d)
		}
		if f.Held && d.Wait != 0 {
			t.Fatalf("sleeps while the pool is held: %+v", d)
		}
	})
}

// The ranges of one class never shrink from one retry to the next, and never
// reach past the class's maximum.
func TestWindowsOnlyGrow(t *testing.T) {
	t.Parallel()
	most := map[string]time.Duration{"": 30 * sec, "p0": 5 * sec, "p1": 30 * sec, "p2": 60 * sec}
	for class, limit := range most {
		var last time.Duration
		for sent := 1; sent < 100; sent++ {
			d := retry.Policy{Attempts: 1000}.Next(retry.Failure{Sent: sent, Class: class}, always(1))
			if d.High < last || d.High > limit || d.Wait > limit {
				t.Fatalf("class %q after %d sends: %+v", class, sent, d)
			}
			last = d.High
		}
		if last != limit {
			t.Errorf("class %q never reaches its maximum: %v", class, last)
		}
	}
}

// Full jitter is uniform: its mean is half the range and every tenth is hit alike.
func TestJitterIsUniform(t *testing.T) {
	t.Parallel()
	const draws = 10_000
	var tenths [10]int
	for i := range draws {
		d := retry.Policy{}.Next(retry.Failure{Sent: 3}, always((float64(i)+0.5)/draws))
		tenths[d.Wait*10/d.High]++
	}
	for i, n := range tenths {
		if n != draws/10 {
			t.Errorf("tenth %d: %d of %d draws", i, n, draws)
		}
	}
}

func TestReasonsHaveNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for r := retry.Backoff; r <= retry.Deadline; r++ {
		if name := r.String(); name == "invalid" || seen[name] {
			t.Errorf("reason %d is called %q", r, name)
		} else {
			seen[name] = true
		}
	}
	if name := retry.Reason(200).String(); name != "invalid" {
		t.Errorf("reason 200 is called %q", name)
	}
}
