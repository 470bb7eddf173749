package main

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/demo"
)

// What --json prints, as of checkShape.
const demoPhaseShape = `{"finished":true,"done":0,"sent":0,"accepted":0,"throttled":0,"worst_window":0,"seen_429":0,"retries":0,"retry_share":0,
	"peak_rate":0,"wasted_usd":0,"wall_s":0,"of_ideal":0,"worst_class":"text","worst_wait_s":0,
	"classes":[{"name":"text","longest_s":0,"mean_s":0}],
	"agents":[{"name":"text","class":"text","calls":0,"done":0,"sends":0,"throttled":0,"failed":0,"longest_s":0}]}`

const demoShape = `{"ok":true,"why":["text"],"limit":"text","model":"text","calls":0,"ideal_s":0,"before":` + demoPhaseShape + `,"after":` + demoPhaseShape + `}`

// aReport returns the report of a successful demo.
func aReport() *demo.Report {
	classes := func(longest float64) []demo.ClassWait {
		return []demo.ClassWait{{Name: "p0", LongestS: longest}, {Name: "p1", LongestS: longest + 1}, {Name: "p2", LongestS: longest + 2}}
	}
	return &demo.Report{
		OK: true, Limit: "120/min", Calls: 168, IdealS: 24.3,
		Before: demo.Phase{
			Finished: true, Done: 168, Sent: 338, Throttled: 170, Retries: 170, RetryShare: 0.503, PeakRate: 103, WastedUSD: 1.156, WallS: 40.6, OfIdeal: 1.671,
			WorstClass: "p2", WorstWaitS: 39.1, Classes: classes(37.1),
		},
		After: demo.Phase{
			Finished: true, Done: 168, Sent: 168, PeakRate: 92, WallS: 24.9, OfIdeal: 1.025, WorstClass: "p2", WorstWaitS: 4.7, Classes: classes(2.7),
		},
	}
}

func printed(t *testing.T, r *demo.Report) string {
	t.Helper()
	var out bytes.Buffer
	if err := printDemo(&out, r, false); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestDemoTable(t *testing.T) {
	got := printed(t, aReport())
	for _, want := range []string{
		`(?m)^ +on their own +through the gate$`, `(?m)^  refused with 429 +170 +0$`, `(?m)^  retries, of all requests +50% +0%$`, `(?m)^  peak rate, in any second +103/s +92/s$`,
		`(?m)^  wasted on retries, at list price +\$1\.16 +\$0\.00$`, `(?m)^  wall clock +40\.6s +24\.9s$`, `(?m)^  against the ideal of 24\.3s +x 1\.67 +x 1\.0[23]$`,
		`(?m)^  longest wait in p0 +37\.1s +2\.7s$`, `(?m)^  worst class +p2 39\.1s +p2 4\.7s$`, `(?m)^The same work in 24\.9s instead of 40\.6s`, `(?m)^  sluice run -- claude  `, `(?m)^  sluice serve  `,
	} {
		if !regexp.MustCompile(want).MatchString(got) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Error("it is coloured where nobody looks")
	}
}

// The table does not praise a bad result.
func TestDemoTableIsHonest(t *testing.T) {
	r := aReport()
	r.OK, r.Why, r.After.Throttled = false, []string{"the provider refused 3 requests that came through the gate"}, 3
	got := printed(t, r)
	if !strings.Contains(got, "did not come out as it should:\n  the provider refused 3") || strings.Contains(got, "refused no request") {
		t.Errorf("%s", got)
	}
}

// demoAt returns the view of a demo after some time.
func demoAt(phase int, elapsed time.Duration, done int, ended bool) demo.View {
	v := demo.View{Phase: phase, Elapsed: elapsed}
	for _, a := range demo.Fast().Agents {
		v.Agents = append(v.Agents, demo.Progress{Agent: a, State: demo.State{Done: done, Throttled: 2, Waiting: 3, Ended: ended}})
	}
	return v
}

func TestDemoInLines(t *testing.T) {
	script := demo.Fast()
	var out bytes.Buffer
	v := newDemoView(&out, &script)
	for s := range 12 {
		v.show(demoAt(0, time.Duration(s)*time.Second, s, false))
	}
	v.show(demoAt(0, 12*time.Second, 22, true))
	v.show(demoAt(1, time.Second, 1, false))
	v.end()
	const want = `One key with a limit of 120/min, 6 agents, 132 calls. At best that takes 6.1s.

1 of 2: each agent backs off on its own
  5s: 30 of 132 calls done, 18 waiting, 12 answers with 429
  10s: 60 of 132 calls done, 18 waiting, 12 answers with 429
  12s: 132 of 132 calls done, 18 waiting, 12 answers with 429

2 of 2: the same agents through the gate

`
	if out.String() != want {
		t.Errorf("%s", out.String())
	}
}

func TestDemoDrawsOverWhatItDrew(t *testing.T) {
	script := demo.Fast()
	var out bytes.Buffer
	v := newDemoView(&out, &script)
	v.draws, v.fd, v.style.ASCII = true, ^uintptr(0), true
	v.show(demoAt(0, 0, 0, false))
	out.Reset()
	v.show(demoAt(0, 10*time.Millisecond, 10, false)) // too soon
	if out.Len() > 0 {
		t.Errorf("%q", out.String())
	}
	v.show(demoAt(0, time.Second, 11, false))
	got := out.String()
	if !strings.HasPrefix(got, "\x1b[8A\r\x1b[K") || strings.Count(got, "\n") != 8 || !strings.Contains(got, "  chat    p0     ############------------  11/22     2        3\n") {
		t.Errorf("%q", got)
	}
	out.Reset()
	v.show(demoAt(1, 0, 0, false)) // below the first
	if got := out.String(); strings.Contains(got, "\x1b[8A") || !strings.Contains(got, "2 of 2: ") {
		t.Errorf("%q", got)
	}
}
