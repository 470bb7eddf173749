package main

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"
	"time"
)

func TestMedian(t *testing.T) {
	same := func(f float64) float64 { return f }
	for _, test := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := medianOf(test.values, same); got != test.want {
			t.Errorf("%v: %v, want %v", test.values, got, test.want)
		}
	}
}

// releases returns n releases, evenly spaced from the start.
func releases(n int, every time.Duration) []release {
	all := make([]release, n)
	for i := range all {
		at := time.Duration(i+1) * every
		all[i] = release{at, int64(i + 1), grant{int64(i + 1), int64(at)}}
	}
	return all
}

func TestJudge(t *testing.T) {
	const exact = time.Second / waitingRate
	w := waiter{name: "x"}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

	row := judge(w, releases(waitingRate, exact), time.Second, waitingRate*time.Microsecond)
	if !near(row.Share, 1) || !near(row.Peak, 1) || !near(row.CPU, 1) || row.Overtaken != 0 || row.Inversions != 0 {
		t.Errorf("exactly at the rate: %+v", row)
	}
	if row := judge(w, releases(waitingRate, exact*9/10), time.Second, 0); row.Peak < 1.1 {
		t.Errorf("a tenth too fast goes unseen: %+v", row)
	}
	if row := judge(w, releases(2*waitingRate, exact), time.Second, 0); !near(row.Share, 1) {
		t.Errorf("releases after the end count: %+v", row)
	}
	swapped := releases(10, exact)
	swapped[3].asked, swapped[4].asked = swapped[4].asked, swapped[3].asked
	swapped[3].grant, swapped[4].grant = grant{5, swapped[3].grant.at}, grant{4, swapped[4].grant.at}
	if row := judge(w, swapped, time.Second, 0); !near(row.Overtaken, 0.1) || row.Inversions != 1 {
		t.Errorf("one pair out of order: %+v", row)
	}
	if row := judge(w, nil, time.Second, 0); row.Share != 0 {
		t.Errorf("nothing released: %+v", row)
	}
}

func TestBarsKnowPassFromMiss(t *testing.T) {
	if b := bar("x", 3, 0, 3); !b.Pass {
		t.Error("on the bar is a pass")
	}
	if b := bar("x", 0.99, 0.999, 1); b.Pass {
		t.Error("too little is a miss")
	}
	if b := bar("x", 1.001, 0.999, 1); b.Pass {
		t.Error("too much is a miss")
	}
	if b := atLeast("x", 79, 80); b.Pass || !atLeast("x", 80, 80).Pass {
		t.Error("on the bar is a pass, too little is a miss")
	}
	if b := bar("x", math.NaN(), 0, 1); b.Pass {
		t.Error("no figure is a miss")
	}
	if got := bars(Report{}); got != nil {
		t.Errorf("bars without Sluice: %v", got)
	}
}

// A run that is too short for good figures still goes through every contender and shape.
func TestShortRun(t *testing.T) {
	var out, progress bytes.Buffer
	opts := Options{Rounds: 1, Slice: time.Millisecond, Wait: 50 * time.Millisecond, File: time.Millisecond, Processes: 2, Redis: 2 * time.Millisecond, Proxy: 5 * time.Millisecond, Starts: 1, Crowd: 20}
	if err := run(opts, true, &out, &progress); err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if want := 2*len(single) + len(keyed) + len(four); len(got.Allow) != want || len(got.Waiting) != len(waiters) {
		t.Errorf("%d and %d rows, want %d and %d", len(got.Allow), len(got.Waiting), want, len(waiters))
	}
	if want := 2 * (len(fileContenders) - 1); len(got.File) != want { // without whole tickets, which are in the part used
		t.Errorf("%d rows, want %d", len(got.File), want)
	}
	if want := len(redisCallers) * len(redisContenders); len(got.Redis) != want || (len(flatContenders) > 0) != (len(got.Flat) > 0) {
		t.Errorf("%d and %d rows, want %d", len(got.Redis), len(got.Flat), want)
	}
	for _, row := range got.Redis {
		if row.Rate <= 0 || row.Failed > 0 {
			t.Errorf("%+v", row)
		}
	}
	for _, row := range got.Allow {
		if row.NS <= 0 || (row.Failed > 0 && row.Name != "throttled memstore") { // its compare-and-set gives up under contention
			t.Errorf("%+v", row)
		}
	}
	if len(got.Start) != 3+len(startCrowds) || got.Start[0].Ratio != 1 || got.Start[2].Ratio <= 1 {
		t.Errorf("starts: %+v", got.Start)
	}
	out.Reset()
	if err := got.print(&out); err != nil || out.Len() == 0 {
		t.Errorf("table: %q, %v", out.String(), err)
	}
}
