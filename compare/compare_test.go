package main

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestFleet(t *testing.T) {
	all := agents()
	if n := calls(all); len(all) != 40 || n != 240 {
		t.Errorf("%d agents, %d calls", len(all), n)
	}
	classes := map[string]int{}
	for _, a := range all {
		classes[a.Class]++
	}
	if classes["p0"] != 8 || classes["p1"] != 16 || classes["p2"] != 16 {
		t.Errorf("classes: %v", classes)
	}
}

func TestJudge(t *testing.T) {
	began := time.Unix(1000, 0)
	var (
		log  []arrival
		done []ended
	)
	// The ideal sender: 40 at once, then four per second, every fourth agent in turn.
	n := 0
	for _, a := range agents() {
		for _, b := range a.Bursts {
			for range b.Calls {
				at := began.Add(time.Duration(max(0, n+1-limitSize)) * window / limitSize)
				log = append(log, arrival{at: at, agent: a.Name, accepted: true})
				done = append(done, ended{Agent: a.Name, Class: a.Class, Asked: at.UnixMilli(), Done: at.Add(latency).UnixMilli()})
				n++
			}
		}
	}
	r := &Result{Calls: n}
	r.judge(done, log, began)
	if r.Finished != n || r.Refused != 0 || math.Abs(r.Used-1) > 1e-9 || math.Abs(r.OfIdeal-1) > 1e-9 || r.Urgent != latency.Seconds() || r.Why != "" {
		t.Errorf("%+v", r)
	}
	log = append(log, arrival{at: began, agent: "a01"})
	done[0].Failed = "429"
	r = &Result{Calls: n + 5}
	r.judge(done, log, began)
	if r.Finished != n-1 || r.Refused != 1 || !strings.Contains(r.Why, "not over") {
		t.Errorf("%+v", r)
	}
}

func TestJain(t *testing.T) {
	var fair, unfair []ended
	for i := range 6 {
		for n, a := range agents() {
			if a.Class == "p2" {
				fair = append(fair, ended{Agent: a.Name, Class: "p2", Done: int64(i)})
				unfair = append(unfair, ended{Agent: a.Name, Class: "p2", Done: int64(n)})
			}
		}
	}
	if j := jain(fair); j != 1 {
		t.Errorf("in turn: %v", j)
	}
	if j := jain(unfair); j != 0.5 {
		t.Errorf("one agent after the other: %v", j)
	}
	if j := jain(fair[:10]); !math.IsNaN(j) {
		t.Errorf("most calls are missing: %v", j)
	}
}

// A contender that gives up half of the calls is not the fastest.
func TestBestIsOfThoseThatFinish(t *testing.T) {
	all := []*Result{{Name: direct, Calls: 10, Finished: 5, Took: 1, Jain: math.NaN()}, {Name: "Sluice, file", Calls: 10, Finished: 10, Took: 9, Jain: 1, Added: 1},
		{Name: "file lock", Calls: 10, Finished: 10, Took: 8, Refused: 3, Jain: 1}}
	text := markdown(all)
	if !strings.Contains(text, "**8 s**") || strings.Contains(text, "**1 s**") || strings.Contains(text, "**9 s**") {
		t.Error(text)
	}
	if got := strings.Join(ahead(all), "; "); !strings.Contains(got, "time: file lock") || strings.Contains(got, "429s") {
		t.Error(got)
	}
}

func TestWanted(t *testing.T) {
	if !wanted("", direct) || !wanted("Hive,no g", direct) || wanted("Hive", direct) {
		t.Error("names")
	}
}
