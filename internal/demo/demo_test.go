package demo

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/sim/mock"
)

func TestWaitsDouble(t *testing.T) {
	for _, c := range []struct {
		n     int
		asked time.Duration
		part  float64
		want  time.Duration
	}{
		{0, 0, 0, 500 * time.Millisecond},
		{0, 0, 1, 625 * time.Millisecond},
		{0, time.Second, 1, time.Second},
		{3, time.Second, 0, 4 * time.Second},
		{6, 0, 0, longestWait},
		{7, 0, 0, longestWait},
		{1 << 40, 0, 1, longestWait + longestWait/4},
		{0, time.Minute, 0, time.Minute},
	} {
		if got := backoff(c.n, c.asked, c.part); got != c.want {
			t.Errorf("wait %d, asked for %v, part %v: %v, want %v", c.n, c.asked, c.part, got, c.want)
		}
	}
	for text, want := range map[string]time.Duration{
		"1": time.Second, "0.25": 250 * time.Millisecond, "60": time.Minute, "61": 0, "-1": 0, "": 0, "soon": 0, "NaN": 0, "Inf": 0,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}); got != want {
			t.Errorf("Retry-After %q: %v, want %v", text, got, want)
		}
	}
}

func TestPeakIsCountedWithinASecond(t *testing.T) {
	start := time.Unix(0, 0)
	at := func(ms int, arrived int64) sample {
		when := start.Add(time.Duration(ms) * time.Millisecond)
		return sample{when, when.Add(time.Millisecond), arrived}
	}
	var p peak
	for _, s := range []sample{at(0, 0), at(500, 10), at(999, 12), at(1000, 40), at(1400, 41), at(3000, 100)} {
		p.add(s)
	}
	// 0 to 1001 is more than a second. Requests between 1400 and 3000 may have come slowly.
	if p.most != 31 {
		t.Errorf("peak %d, want 31", p.most)
	}
}

func TestPlans(t *testing.T) {
	for name, c := range map[string]struct {
		script Script
		ideal  time.Duration
	}{"minute": {Minute(), 24*time.Second + 300*time.Millisecond}, "fast": {Fast(), 6*time.Second + 50*time.Millisecond}} {
		if got := c.script.Ideal(); got != c.ideal {
			t.Errorf("%s: ideal %v, want %v", name, got, c.ideal)
		}
		var classes []string
		for _, a := range c.script.Agents {
			classes = append(classes, a.Class)
		}
		if len(c.script.Agents) != 6 || len(slices.Compact(classes)) != 3 {
			t.Errorf("%s: %v", name, c.script.Agents)
		}
	}
	if _, known := provider.DefaultPrices().Find(Model); !known {
		t.Errorf("nobody knows what %s costs", Model)
	}
}

func TestPartsAreNotLedElsewhere(t *testing.T) {
	got := own([]string{"PATH=/bin", "SLUICE_STORE=redis://x", "ANTHROPIC_API_KEY=secret", "https_proxy=http://x", "TMPDIR=/t"})
	if !slices.Equal(got, []string{"PATH=/bin", "TMPDIR=/t"}) {
		t.Errorf("%q", got)
	}
}

func TestWastedIsTheMeanPriceOfACall(t *testing.T) {
	stats := &mock.Stats{Accepted: 4, Ledger: map[string]mock.Usage{Model: {Requests: 4, InputTokens: 1_000_000, OutputTokens: 100_000}}}
	price, _ := provider.DefaultPrices().Find(Model)
	if got, want := wasted(stats, 2), (price.Input+price.Output/10)/2; got != want {
		t.Errorf("%v, want %v", got, want)
	}
	if got := wasted(&mock.Stats{}, 7); got != 0 {
		t.Errorf("%v where nothing was accepted", got)
	}
}

// The report of a bad run says that it is bad.
func TestReportIsHonest(t *testing.T) {
	script := Minute()
	before := Phase{Finished: true, Done: script.Calls(), WallS: 40}
	good := Phase{Finished: true, Done: script.Calls(), WallS: 25}
	for name, c := range map[string]struct {
		change func(p *Phase)
		want   string
	}{
		"good":        {func(*Phase) {}, ""},
		"refused":     {func(p *Phase) { p.Throttled = 3 }, "the provider refused 3 requests"},
		"seen":        {func(p *Phase) { p.Seen429 = 2 }, "agents saw 2 refusals"},
		"slower":      {func(p *Phase) { p.WallS = 41 }, "through the gate it took 41.0 s, without it 40.0 s"},
		"not through": {func(p *Phase) { p.Finished, p.Done = false, 100 }, "100 of 168 calls"},
	} {
		after := good
		c.change(&after)
		r := newReport(&script, &before, &after)
		if r.OK != (c.want == "") || !strings.Contains(strings.Join(r.Why, "; "), c.want) {
			t.Errorf("%s: ok %v, %q", name, r.OK, r.Why)
		}
	}
}

func TestResultOfAPhase(t *testing.T) {
	p := &phase{demo: &demo{Options: Options{Script: Minute()}}, agents: []Progress{
		{Agent{Name: "chat", Class: "p0", Calls: 2, Workers: 1}, State{Done: 2, Sends: 3, Throttled: 1, Longest: 2 * time.Second, Total: 3 * time.Second}},
		{Agent{Name: "docs", Class: "p1", Calls: 3, Workers: 1}, State{Done: 1, Waiting: 1, Sends: 4, Throttled: 2, Longest: time.Second, Total: time.Second}},
		{Agent{Name: "tests", Class: "p1", Calls: 1, Workers: 1}, State{Done: 1, Sends: 1, Longest: 4 * time.Second, Total: 4 * time.Second}},
	}}
	p.began = time.Unix(100, 0)
	p.ended = p.began.Add(48600 * time.Millisecond)
	r := p.result(false, &mock.Stats{Arrived: 8, Accepted: 5, Throttled: 3})
	// Five calls were begun, and eight requests came.
	if r.Done != 4 || r.Retries != 3 || r.RetryShare != 0.375 || r.Seen429 != 3 || r.WallS != 48.6 || r.OfIdeal != 2 || r.Finished {
		t.Errorf("%+v", r)
	}
	if r.WorstClass != "p1" || r.WorstWaitS != 4 || len(r.Classes) != 2 || r.Classes[1].MeanS != 2.5 || r.Classes[0].LongestS != 2 {
		t.Errorf("%+v", r.Classes)
	}
}

func TestPartThatDoesNotStart(t *testing.T) {
	if _, err := Run(t.Context(), Options{Script: Fast(), Self: "/no/such/program"}); err == nil || !strings.Contains(err.Error(), "the provider could not be started") {
		t.Errorf("%v", err)
	}
	if _, err := Run(t.Context(), Options{Script: Fast()}); err == nil {
		t.Error("without a program it ran")
	}
	self, err := exec.LookPath("false")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Run(t.Context(), Options{Script: Fast(), Self: self}); err == nil || !strings.Contains(err.Error(), "the provider is gone: exit status 1") {
		t.Errorf("%v", err)
	}
}

// A silent part does not delay the end of a cancelled demo.
func TestStartIsGivenUp(t *testing.T) {
	self, err := exec.LookPath("cat")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	d := &demo{Options: Options{Self: self}}
	p, err := d.launch("the cat", nil, func([]byte) { cancel(errors.New("enough")) })
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	if _, err := p.in.Write([]byte("ready\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := await(ctx, p, make(chan int)); err == nil || err.Error() != "enough" {
		t.Errorf("%v", err)
	}
	p.stop()
	if p.err != nil {
		t.Errorf("it ended with %v", p.err)
	}
}

func TestTailIsBounded(t *testing.T) {
	var told tail
	for range 100 {
		if n, err := told.Write([]byte(strings.Repeat("x", 1000))); n != 1000 || err != nil {
			t.Fatal(n, err)
		}
	}
	_, _ = told.Write([]byte("the end\n"))
	if s := told.String(); len(s) > maxTold || !strings.HasSuffix(s, "xthe end") {
		t.Errorf("%d bytes", len(s))
	}
}
