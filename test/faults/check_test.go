package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// at returns uses at these times, in milliseconds.
func at(moments ...float64) []use {
	var list []use
	for i, m := range moments {
		s := stamp(m * 1e6)
		list = append(list, use{worker: i, id: fmt.Sprintf("t-%d", i), asked: s, used: s})
	}
	return list
}

func TestCheckRolling(t *testing.T) {
	const length = 100 * time.Millisecond
	for name, c := range map[string]struct {
		uses          []use
		worst, breaks int
	}{
		"none":           {nil, 0, 0},
		"full":           {at(0, 1, 2), 3, 0},
		"full again":     {at(0, 1, 2, 100, 101, 102), 3, 0},
		"a moment early": {at(0, 1, 2, 99.9), 4, 1},
		"within a grain": {at(0, 1, 2, 99.999), 3, 0},
		"across":         {at(0, 90, 91, 95, 99), 5, 2},
		"later":          {at(0, 200, 201, 202, 203), 4, 1},
	} {
		v := checkRolling(c.uses, 3, length, 0)
		if v.worst != c.worst || v.breaks != c.breaks || len(v.broken) != min(c.breaks, maxShown) {
			t.Errorf("%s: %+v, want worst %d, %d breaks", name, v, c.worst, c.breaks)
		}
	}
	v := checkRolling(at(0, 1, 2, 3), 3, length, stamp(time.Second))
	if len(v.broken) != 1 || !strings.Contains(v.broken[0], "1.000s before the fault") || !strings.Contains(v.broken[0], "t-0 (worker 0) to t-3 (worker 3)") {
		t.Errorf("%q", v.broken)
	}
}

func TestCheckBucket(t *testing.T) {
	for name, c := range map[string]struct {
		uses          []use
		worst, breaks int
	}{
		"none":          {nil, 0, 0},
		"at once":       {at(0, 0, 0), 3, 0},
		"one too many":  {at(0, 0, 0, 0), 4, 1},
		"drained":       {at(0, 0, 0, 100, 200), 3, 0},
		"not yet":       {at(0, 0, 0, 99), 4, 1},
		"never below 0": {at(0, 10000, 10000, 10000, 10000), 4, 1},
	} {
		if v := checkBucket(c.uses, 3, 10, 0); v.worst != c.worst || v.breaks != c.breaks {
			t.Errorf("%s: %+v, want worst %d, %d breaks", name, v, c.worst, c.breaks)
		}
	}
}

func TestCheckPlaces(t *testing.T) {
	held := func(worker int, got, closing float64) use {
		u := at(got)[0]
		u.worker, u.closing = worker, stamp(closing*1e6)
		return u
	}
	long := held(0, 0, 2*float64(ticketTTL.Milliseconds()))
	for name, c := range map[string]struct {
		uses          []use
		killed        map[int]stamp
		worst, breaks int
	}{
		"none":             {nil, nil, 0, 0},
		"two":              {[]use{held(0, 0, 10), held(1, 5, 10)}, nil, 2, 0},
		"three":            {[]use{held(0, 0, 10), held(1, 5, 10), held(2, 9, 20)}, nil, 3, 1},
		"one goes first":   {[]use{held(0, 0, 10), held(1, 5, 10), held(2, 10, 20)}, nil, 2, 0},
		"killed":           {[]use{held(0, 0, 0), held(1, 5, 10), held(2, 9, 20)}, map[int]stamp{0: 10e6}, 3, 1},
		"killed before":    {[]use{held(0, 0, 0), held(1, 5, 10), held(2, 9, 20)}, map[int]stamp{0: 8e6}, 2, 0},
		"end not known":    {[]use{held(0, 0, 0), held(1, 5, 10), held(2, 9, 20)}, nil, 2, 0},
		"outlives its TTL": {[]use{long, held(1, 6000, 6010), held(2, 6000, 6010)}, nil, 2, 0},
	} {
		if v := checkPlaces(c.uses, 2, c.killed, 0); v.worst != c.worst || v.breaks != c.breaks {
			t.Errorf("%s: %+v, want worst %d, %d breaks", name, v, c.worst, c.breaks)
		}
	}
}

func TestCheckDouble(t *testing.T) {
	uses := at(0, 1, 2)
	if v := checkDouble(uses); v.breaks != 0 {
		t.Errorf("%+v", v)
	}
	uses[2].id = uses[0].id
	if v := checkDouble(uses); v.breaks != 1 || !strings.Contains(v.broken[0], "worker 0 and to worker 2") {
		t.Errorf("%+v", v)
	}
}

func TestOverdue(t *testing.T) {
	l := newLedger()
	if late, _ := overdue(l); late != 0 {
		t.Errorf("nobody was late by %v", late)
	}
	l.uses = []use{{asked: 0, within: time.Second, used: stamp(1500 * time.Millisecond)}}
	l.misses = []miss{{asked: 0, within: time.Second, got: stamp(900 * time.Millisecond), kind: "store"}}
	if late, who := overdue(l); late != 500*time.Millisecond || !strings.Contains(who, "then granted") {
		t.Errorf("%v, %s", late, who)
	}
	l.misses[0].got = stamp(2 * time.Second)
	if late, who := overdue(l); late != time.Second || !strings.Contains(who, "then store") {
		t.Errorf("%v, %s", late, who)
	}
}

func TestBackAt(t *testing.T) {
	need := int(fullRate * rollingSize)
	var uses []use
	for i := range need {
		uses = append(uses, at(float64(5000+i))...)
	}
	if at, ok := backAt(uses, 0); !ok || at != 5000e6 {
		t.Errorf("%d, %v", at, ok)
	}
	if at, ok := backAt(uses, 4900e6); !ok || at != 4900e6 {
		t.Errorf("at once: %d, %v", at, ok)
	}
	if _, ok := backAt(uses, 5001e6); ok {
		t.Error("with one less")
	}
	if gap := longestGap(uses, 4000e6, 9000e6); gap != time.Duration(9000-5000-need+1)*time.Millisecond {
		t.Errorf("gap of %v", gap)
	}
}

func TestCharges(t *testing.T) {
	x := &run{Grants: 10, ledger: newLedger()}
	x.ledger.misses = make([]miss, 2)
	x.checkCharges(12, &fleet{})
	if *x.Twice != 0 || len(x.Broken) != 0 {
		t.Errorf("%d, %q", *x.Twice, x.Broken)
	}
	x.checkCharges(13, &fleet{})
	if *x.Twice != 1 || len(x.Broken) != 1 {
		t.Errorf("%d, %q", *x.Twice, x.Broken)
	}
}
