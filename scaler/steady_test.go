package scaler_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluicehq/sluice/scaler"
)

// moment is what is demanded some seconds after noon, and how many replicas that makes.
type moment struct {
	at     int
	demand scaler.Demand
	want   int64
}

func want(n int64) scaler.Demand   { return scaler.Demand{Replicas: n} }
func off(why string) scaler.Demand { return scaler.Demand{Off: why} }

func TestSteady(t *testing.T) {
	for _, c := range []struct {
		name    string
		mode    scaler.Mode
		moments []moment
	}{
		{"the first look counts", "headroom", []moment{{0, want(8), 8}}},
		{"a wobble changes nothing after the first fall", "headroom", []moment{
			{0, want(8), 8}, {5, want(7), 7}, {10, want(8), 7}, {15, want(7), 7}, {25, want(8), 7}, {40, want(7), 7}, {50, want(8), 7}, {79, want(8), 7}, {80, want(8), 8},
		}},
		{"headroom falls at once and rises when it has lasted", "headroom", []moment{
			{0, want(4), 4}, {10, want(9), 4}, {39, want(10), 4}, {40, want(11), 11}, {41, want(2), 2},
		}},
		{"a queue rises at once and falls when it has lasted", "queue", []moment{
			{0, want(0), 0}, {1, want(5), 5}, {2, want(1), 5}, {20, want(5), 5}, {21, want(0), 5}, {50, want(0), 5}, {51, want(2), 2},
		}},
		{"a pause ends in a ramp", "headroom", []moment{
			{0, want(20), 20}, {1, off("paused"), 0}, {60, off("paused"), 0}, {61, want(20), 1}, {75, want(20), 1}, {76, want(20), 2}, {91, want(20), 4},
			{106, want(20), 8}, {121, want(20), 16}, {136, want(20), 20}, {200, want(6), 6},
		}},
		{"a short pause is over at once", "headroom", []moment{{0, want(20), 20}, {1, off("paused"), 0}, {2, want(20), 1}}},
		{"first seen while paused", "queue", []moment{{0, off("paused"), 0}, {1, want(20), 1}, {16, want(20), 2}}},
		{"a probe needs one, for however long", "headroom", []moment{
			{0, want(20), 20}, {1, off("paused"), 0},
			{61, scaler.Demand{Replicas: 20, Probing: true}, 1}, {400, scaler.Demand{Replicas: 20, Probing: true}, 1}, {401, want(20), 1}, {415, want(20), 2},
		}},
		{"first seen in the gate's own ramp", "headroom", []moment{{0, scaler.Demand{Replicas: 20, Ramping: true}, 1}, {15, want(20), 2}}},
		{"red that comes and goes", "headroom", []moment{
			{0, want(9), 9}, {1, off("red"), 0}, {2, want(9), 0}, {3, off("red"), 0}, {15, want(9), 0}, {16, want(9), 1}, {17, off("red"), 0}, {31, want(9), 0}, {32, want(9), 1},
		}},
		{"red that has lasted is over at once", "light", []moment{{0, off("red"), 0}, {900, off("red"), 0}, {901, want(3), 1}, {916, want(3), 2}, {931, want(3), 3}}},
		{"the breaker", "headroom", []moment{{0, want(9), 9}, {1, off("breaker"), 0}, {120, want(9), 1}, {135, want(9), 2}}},
		{"red turns into a pause", "headroom", []moment{{0, off("red"), 0}, {1, off("paused"), 0}, {2, want(9), 1}}},
		{"a second pause begins the ramp anew", "headroom", []moment{{0, off("paused"), 0}, {1, want(9), 1}, {31, want(9), 4}, {32, off("paused"), 0}, {33, want(9), 1}, {48, want(9), 2}}},
		{"after the ramp nothing is held back", "queue", []moment{{0, off("paused"), 0}, {1, want(0), 0}, {151, want(5000), 5000}}},
		{"a clock set back", "headroom", []moment{{0, off("paused"), 0}, {10, want(9), 1}, {25, want(9), 2}, {-500, want(9), 2}, {40, want(9), 4}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var s scaler.State
			for _, m := range c.moments {
				var n int64
				if s, n = s.Next(m.demand, c.mode, noon.Add(time.Duration(m.at)*time.Second)); n != m.want {
					t.Fatalf("after %d s it is %d, want %d (%+v)", m.at, n, m.want, s)
				}
			}
		})
	}
}

// For any demands at any times: no replicas while stopped, never more than demanded within the settling time, back from
// zero as a ramp and not too soon, and few changes in the slow direction.
func TestSteadyWhateverComes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom([]scaler.Mode{scaler.Headroom, scaler.Queue, scaler.Light}).Draw(t, "mode")
		var s scaler.State
		now, last := noon, int64(0)
		var offAt, back, careful time.Time
		var why string
		most := int64(0)
		for i := range rapid.IntRange(1, 200).Draw(t, "looks") {
			now = now.Add(time.Duration(rapid.IntRange(1, 20_000).Draw(t, "ms")) * time.Millisecond)
			d := want(rapid.Int64Range(0, 40).Draw(t, "replicas"))
			if rapid.IntRange(0, 9).Draw(t, "stop") == 0 {
				d = off(rapid.SampledFrom([]string{"paused", "red", "breaker", "exhausted"}).Draw(t, "why"))
			}
			most = max(most, d.Replicas)
			next, n := s.Next(d, mode, now)
			if again, m := s.Next(d, mode, now); again != next || m != n {
				t.Fatal("the same question has two answers")
			}
			if n < 0 || n > most {
				t.Fatalf("%d replicas, and never more than %d were asked for", n, most)
			}
			if mode != scaler.Queue && n > d.Replicas {
				t.Fatalf("%d replicas, %d can be fed", n, d.Replicas)
			}
			switch {
			case d.Off != "" && n != 0:
				t.Fatalf("%d replicas while %s", n, d.Off)
			case d.Off != "":
				if s.Off == "" {
					offAt = now
				}
				why, back = d.Off, time.Time{}
			case s.Off != "" && next.Off == "":
				if why != "paused" && now.Sub(offAt) < scaler.Quiet {
					t.Fatalf("back from %s after %v", why, now.Sub(offAt))
				}
				back = now
			}
			if !back.IsZero() {
				if k := now.Sub(back) / scaler.RampStep; k < scaler.RampSteps && n > 1<<k {
					t.Fatalf("%d replicas %v after it came back", n, now.Sub(back))
				}
			}
			steady := i > 0 && s.Off == "" && next.Off == "" && (back.IsZero() || now.Sub(back) >= scaler.RampStep*scaler.RampSteps)
			if moved := n > last; steady && next.Resumed.IsZero() && s.Resumed.IsZero() && n != last && moved == (mode != scaler.Queue) {
				if !careful.IsZero() && now.Sub(careful) < scaler.Settle {
					t.Fatalf("moved from %d to %d %v after the last time", last, n, now.Sub(careful))
				}
				careful = now
			}
			s, last = next, n
		}
	})
}
