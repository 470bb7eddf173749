package sim

import (
	"math"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
)

func TestIdealByHand(t *testing.T) {
	still := Delay{Median: 100 * time.Millisecond}
	for _, c := range []struct {
		name  string
		limit Limit
		calls int
		want  time.Duration // of the rules alone
	}{
		{"bucket: burst at once, then one each 1.2 s", Limit{Kind: store.Bucket, Size: 50, Burst: 10, Window: time.Minute}, 240, 276 * time.Second},
		{"rolling: ten whole windows", Limit{Kind: store.Rolling, Size: 100, Window: time.Minute}, 1000, 9 * time.Minute},
		{"fixed: the rest of one window, then two more", Limit{Kind: store.Fixed, Size: 100, Window: time.Minute, Phase: 20 * time.Second}, 300, 80 * time.Second},
		{"concurrency: ten rounds of 200 ms", Limit{Kind: store.Concurrency, Size: 10}, 100, 9 * 200 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.limit.Unit = Requests
			sc := &Scenario{
				Limits: []Limit{c.limit}, Horizon: time.Hour, Service: Delay{Median: 200 * time.Millisecond},
				Fleet: []Agent{{Name: "a", Jobs: 1, Calls: c.calls, Workers: c.calls}},
			}
			if c.limit.Kind == store.Fixed {
				c.want -= 100 * time.Millisecond // the request is on its way while the window is closed
			}
			want := c.want + 200*time.Millisecond + 200*time.Millisecond // round trip, service
			got := time.Duration(newIdeal(sc, still, 1, nil).span.seconds() * float64(time.Second))
			if d := got - want; d < -time.Millisecond || d > time.Millisecond {
				t.Errorf("ideal %v, want %v", got, want)
			}
		})
	}
}

func TestIdealSharesByWeight(t *testing.T) {
	sc := &Scenario{
		Limits:  []Limit{{Name: "minute", Kind: store.Rolling, Unit: Requests, Size: 100, Window: time.Minute}},
		Horizon: 10 * time.Hour,
		Fleet: []Agent{
			{Name: "a", Class: 0, Jobs: 1, Calls: 400, Workers: 400},
			{Name: "b", Class: 1, Jobs: 1, Calls: 350, Workers: 350},
			{Name: "c", Class: 2, Jobs: 1, Calls: 250, Workers: 250},
		},
	}
	o := newIdeal(sc, Delay{}, 1, nil)
	for i, s := range o.classes {
		// All three finish together, in the last of ten windows.
		if got := s.seconds(); math.Abs(got-540) > 1 {
			t.Errorf("%s is done after %.1f s, want 540", Classes[i].Name, got)
		}
	}
}

func TestAdmitsCountsOnlyWhileWorkWaited(t *testing.T) {
	sc := &Scenario{
		Limits:  []Limit{{Name: "minute", Kind: store.Rolling, Unit: Requests, Size: 100, Window: time.Minute}},
		Horizon: time.Hour,
		Fleet:   []Agent{{Name: "a", Jobs: 1, Calls: 1000, Workers: 1}},
	}
	at := func(s int) store.Time { return Epoch.Add(time.Duration(s) * time.Second) }
	for _, c := range []struct {
		spans []span
		want  int
	}{
		{nil, 0},
		{[]span{{first: at(0), last: at(59)}}, 100},
		{[]span{{first: at(0), last: at(60)}}, 200},
		{[]span{{first: at(30), last: at(100)}}, 200},
		{[]span{{first: at(0), last: at(10)}, {first: at(30), last: at(59)}, {first: at(300), last: at(301)}}, 200},
	} {
		if got := admits(sc, []*modelTally{{spans: c.spans}}, 1, nil).admitted; got != c.want {
			t.Errorf("spans %v: %d admitted, want %d", c.spans, got, c.want)
		}
	}
}

func TestAdmitsModelsApart(t *testing.T) {
	limits, _ := Anthropic(10, 1_000_000, 1_000_000)
	sc := &Scenario{Limits: limits, Horizon: time.Hour, Fleet: []Agent{
		{Name: "a", Jobs: 1, Calls: 100, Workers: 1, Request: Request{Model: "opus", Input: 1}},
		{Name: "b", Jobs: 1, Calls: 100, Workers: 1, Request: Request{Model: "haiku", Input: 1}},
	}}
	minute := []span{{first: Epoch, last: Epoch.Add(time.Minute)}}
	if got := admits(sc, []*modelTally{{model: "opus", spans: minute}, {model: "haiku", spans: minute}}, 1, nil).admitted; got != 40 {
		t.Errorf("%d admitted, want a bucket and a minute's refill for each of two models", got)
	}
}

func TestDelayHasItsMedianAndMean(t *testing.T) {
	r := stream(1, drawNetwork)
	const n = 200_000
	for _, d := range []Delay{LightTail, HeavyTail} {
		below, sum := 0, 0.0
		for range n {
			x := d.draw(r)
			sum += float64(x)
			if x < store.Time(d.Median.Microseconds()) {
				below++
			}
		}
		if share := float64(below) / n; math.Abs(share-0.5) > 0.01 {
			t.Errorf("%v: %.3f of all draws are below the median", d, share)
		}
		if mean := sum / n; math.Abs(mean/float64(d.Mean())-1) > 0.02 {
			t.Errorf("%v: mean %.0f us, want %d", d, mean, d.Mean())
		}
	}
}

func TestPeakIsOverAnySecond(t *testing.T) {
	var s sends
	for _, ms := range []int{0, 900, 1100, 1850, 1899, 2200} {
		s.add(Epoch.Add(time.Duration(ms) * time.Millisecond))
	}
	if got := s.peak; got != 4 { // from 900 to 1899
		t.Fatalf("peak %d, want 4", got)
	}
}

func TestStarvedIsThreeWindowsWithoutAcceptance(t *testing.T) {
	sc := &Scenario{Limits: []Limit{{Window: time.Minute}}, Fleet: []Agent{{Jobs: 1, Calls: 2}}}
	a := &agent{Agent: &sc.Fleet[0]}
	c := &call{agent: a, job: &job{}, asks: &a.asks}
	for _, wait := range []time.Duration{179 * time.Second, 181 * time.Second} {
		y := newTally(sc)
		y.demanded(Epoch, &arrival{agent: a, n: 2})
		y.reached(Epoch.Add(time.Second), c, Response{Accepted: true})
		y.reached(Epoch.Add(time.Second+wait), c, Response{Accepted: true})
		if got := len(y.starved()) > 0; got != (wait > 3*time.Minute) {
			t.Errorf("waited %v: starved %v", wait, got)
		}
	}
}
