package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/internal/show"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) *time.Time {
	t := noon.Add(d)
	return &t
}

// drawn returns what a screen of a style and width shows.
func drawn(style show.Style, width int, draw func(*screen)) string {
	var b bytes.Buffer
	s := &screen{Style: style, w: bufio.NewWriter(&b), width: width, now: noon}
	draw(s)
	if err := s.end(); err != nil {
		return err.Error()
	}
	return b.String()
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "screen", name+".golden")
	if os.Getenv("SLUICE_UPDATE") != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s:\n%s\nwant\n%s", name, got, want)
	}
}

func someLimit(name, unit, kind, scope string, used, size int64) inspect.LimitStatus {
	return inspect.LimitStatus{Name: name, Kind: kind, Unit: unit, Scope: scope, Limit: size, Used: used, Remaining: max(size-used, 0), Light: "green"}
}

// someStatus returns a status with an example of everything.
func someStatus() *inspect.Status {
	core := someLimit("core", "core", "fixed", "", 4200, 5000)
	core.ResetAt, core.Light, core.Outside = at(724*time.Second), "amber", 300
	core.Breaker, core.GoneAt = "gliding", at(90*time.Second)
	red := someLimit("day", "requests", "fixed", "", 9900, 10_000)
	red.Binds = true
	red.ResetAt, red.Light = at(11*time.Hour), "red"
	st := &inspect.Status{
		Store: "file:/home/me/.local/state/sluice",
		Resources: []inspect.ResourceStatus{
			{
				Name: "anthropic", Configured: true, Mode: "gate", State: "paused", Reason: "HTTP 429 rate_limit_error", Until: at(42 * time.Second), Light: "red", LightBinds: true, Waiting: map[string]int{"p0": 0, "p1": 2, "p2": 5}, InFlight: 12, Consecutive429: 2, Throttled7d: 4,
				Advice:  &inspect.Advice{Setting: "resources.anthropic.use", Text: "4 requests were refused (429) in the last 7 days, and nothing that is known explains it. Leave some room: resources.anthropic.use: 95%."},
				Last429: at(-18 * time.Second), PausedUntil: at(42 * time.Second),
				Gates: []inspect.PauseStatus{
					{Phase: "paused", Until: at(42 * time.Second), Consecutive429: 2, Cause: "HTTP 429 rate_limit_error"},
					{Phase: "probing", Scope: "model=opus"}, {Phase: "ramping", Scope: "model=haiku"},
				},
				CallerStatus: inspect.CallerStatus{Sent: 1240, Throttled: 2, Retried: 5},
				Models:       []inspect.ModelStatus{{Model: "haiku"}, {Model: "opus", Requested: "claude-opus-4-5", Waiting: 7}},
				Limits: []inspect.LimitStatus{
					someLimit("minute", "requests", "rolling", "", 64, 80), someLimit("input", "input_tokens", "bucket", "", 39_000, 40_000),
					someLimit("output", "output_tokens", "bucket", "", 12, 0), red,
				},
			},
			{
				Name: "github", Configured: true, Key: "5f2c11aa", Mode: "observe", State: "flowing", Reason: "requests pass without waiting", Light: "amber", Waiting: map[string]int{"p0": 0}, CallerStatus: inspect.CallerStatus{Sent: 4200},
				Limits: []inspect.LimitStatus{core},
			},
			{Name: "unknown", Configured: true, Mode: "gate", State: "idle", Light: "green", CallerStatus: inspect.CallerStatus{Sent: 1}},
			{
				Name: "dead", Configured: true, Mode: "gate", State: "failing", Reason: "the last 3 sends failed: connection refused by 127.0.0.1:9; new requests are tried, and the first that succeeds ends this",
				Light: "green", Limits: []inspect.LimitStatus{someLimit("minute", "requests", "rolling", "", 0, 80)},
			},
			{
				Name: "full", Configured: true, Mode: "gate", State: "queueing", Reason: "3 requests wait: the limit minute is full (80 of 80 used)", Until: at(21 * time.Second), Light: "red",
				Waiting: map[string]int{"p2": 3}, Limits: []inspect.LimitStatus{someLimit("minute", "requests", "rolling", "", 80, 80)},
			},
			{
				Name: "forgetful", Configured: true, Mode: "gate", State: "degraded", Reason: "Redis lost its memory; holding requests for one window", Until: at(61 * time.Second), Light: "green",
				Limits: []inspect.LimitStatus{someLimit("minute", "requests", "rolling", "", 80, 80)},
			},
			{Name: "quiet", Configured: true, Mode: "gate", State: "idle", Light: "green", Limits: []inspect.LimitStatus{someLimit("minute", "requests", "rolling", "", 0, 80)}},
		},
		Agents: []inspect.AgentStatus{
			{
				Name: "indexer", Class: "p2", User: "me", Machine: "laptop", Resource: "anthropic", Allocated: 40, Used: 38, State: "limited",
				LeaseExpiresAt: at(4 * time.Minute), Leased: true,
			},
			{
				Name: "planner", Class: "p1", User: "me", Machine: "laptop", Resource: "anthropic", Allocated: 40, Used: 2, State: "held",
				LeaseExpiresAt: at(5 * time.Minute), Leased: true, PauseChain: []string{"planner", "writer", "indexer"}, WaitsFor: []string{"writer"},
			},
			{Name: "web", Class: "p0", Resource: "github", Allocated: inspect.Unknown, State: "active", LeaseExpiresAt: at(30 * time.Second), WaitsFor: []string{"planner"}},
			{Name: "writer", Class: "p2", State: "waiting"},
		},
		Cycles: [][]string{{"a", "b"}},
	}
	for i := range 12 {
		st.Resources[0].Limits = append(st.Resources[0].Limits, someLimit("each", "work", "bucket", "agent=a"+string(rune('a'+i)), int64(i*4), 50))
	}
	return st
}

var someClasses = []string{"p0", "p1", "p2"}

func TestStatusForPeople(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		style show.Style
		width int
	}{
		"status": {show.Style{}, 0}, "status-80": {show.Style{}, 80}, "status-40": {show.Style{}, 40},
		"status-ascii": {show.Style{ASCII: true}, 0}, "status-colour": {show.Style{Colour: true}, 100},
	} {
		golden(t, name, drawn(c.style, c.width, func(s *screen) { s.status(someStatus(), someClasses) }))
	}
	empty := &inspect.Status{Store: "mem:", Resources: []inspect.ResourceStatus{{Name: "github", State: "idle", Light: "green"}}}
	golden(t, "status-empty", drawn(show.Style{}, 0, func(s *screen) { s.status(empty, someClasses) }))
	golden(t, "agents", drawn(show.Style{}, 0, func(s *screen) { s.allAgents(someStatus()) }))
	golden(t, "agents-none", drawn(show.Style{}, 0, func(s *screen) { s.allAgents(empty) }))
}

// What is used up is named, also if it has no end.
func TestWhatIsUsedUpIsShown(t *testing.T) {
	t.Parallel()
	r := inspect.ResourceStatus{Name: "api", State: "idle", Reason: "no request was sent in the last minute; the budget all is used up", CallerStatus: inspect.CallerStatus{Sent: 1}}
	for _, r.UsedUp = range []bool{false, true} {
		text := drawn(show.Style{}, 0, func(s *screen) { s.status(&inspect.Status{Resources: []inspect.ResourceStatus{r}}, someClasses) })
		if strings.Contains(text, r.Reason) != r.UsedUp {
			t.Errorf("used up: %v\n%s", r.UsedUp, text)
		}
	}
}

func TestManyAgentsAreCut(t *testing.T) {
	t.Parallel()
	st := someStatus()
	for range 30 {
		st.Agents = append(st.Agents, st.Agents[2])
	}
	if got := drawn(show.Style{}, 0, func(s *screen) { s.status(st, someClasses) }); !strings.Contains(got, "and 14 more: sluice agents") {
		t.Error(got)
	}
}

func TestWhyForPeople(t *testing.T) {
	t.Parallel()
	cheaper := "haiku"
	list := []waitingJSON{
		{"anthropic", inspect.Waiting{Ticket: "anthropic.1-1", Agent: "indexer", Class: "p2", Limit: "minute", HeldBy: []string{"web", "a", "b", "c"}, Position: 1, ExpectedAt: at(42 * time.Second), Reason: "limit"}, &cheaper},
		{"anthropic", inspect.Waiting{Ticket: "anthropic.1-2", Agent: "writer", Class: "p1", Position: 2, Reason: "order"}, nil},
	}
	refused := []refusedJSON{
		{Time: noon.Add(-90 * time.Second), Resource: "anthropic", Agent: "hasty", Class: "p2", Limit: "minute", Used: 80, Size: 80, Reason: "limit", RetryAt: at(20 * time.Second)},
		{Time: noon.Add(-time.Hour), Resource: "github", Agent: "large", Class: "p0", Limit: "core", Reason: "capacity"},
	}
	golden(t, "why", drawn(show.Style{}, 0, func(s *screen) {
		s.waiting(list, whose{})
		s.refused(refused)
	}))
	golden(t, "why-60", drawn(show.Style{}, 60, func(s *screen) { s.waiting(list, whose{}) }))
	for of, want := range map[whose]string{
		{}: "No request waits.\n", {agent: "a\x1b"}: "a\ufffd does not wait for anything.\n",
		{ticket: "r.1-2"}: "r.1-2 does not wait: it was granted, given up or refused.\n",
	} {
		if got := drawn(show.Style{}, 0, func(s *screen) { s.waiting(nil, of) }); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestPoolForPeople(t *testing.T) {
	t.Parallel()
	p := &poolJSON{Resource: "github", Limit: "core", Unit: "core", PoolStatus: inspect.PoolStatus{
		TotalLimit: 5000, ResetAt: at(724 * time.Second), Allocations: map[string]inspect.AgentAllocation{
			"web": {Priority: 0, Allocated: 3076, Used: 2000, LeaseExpiry: at(time.Minute), Leased: true},
			"b":   {Priority: 2, Allocated: 961, LeaseExpiry: at(5 * time.Minute), Leased: true}, "a": {Priority: 2, Allocated: 961, Used: 961},
			"odd": {Priority: 9, Allocated: inspect.Unknown},
		},
	}}
	golden(t, "pool", drawn(show.Style{}, 0, func(s *screen) { s.pool(p, someClasses) }))
	golden(t, "pool-40", drawn(show.Style{}, 40, func(s *screen) { s.pool(p, someClasses) }))
	for want, p := range map[string]*poolJSON{
		"no limit is known":     {Resource: "r"},
		"is not known yet":      {Resource: "r", Limit: "minute", Unit: "requests"},
		"the first one to ask ": {Resource: "r", Limit: "minute", Unit: "requests", PoolStatus: inspect.PoolStatus{TotalLimit: 3}},
	} {
		if got := drawn(show.Style{}, 0, func(s *screen) { s.pool(p, nil) }); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestMainLimit(t *testing.T) {
	t.Parallel()
	core, search := sluice.Limit{Name: "core", Unit: "core", Kind: sluice.Fixed}, sluice.Limit{Name: "search", Unit: "search", Kind: sluice.Fixed}
	flying := sluice.Limit{Name: "inflight", Kind: sluice.Concurrency}
	own := sluice.Limit{Name: "own", Per: []sluice.Scope{sluice.PerAgent}}
	minute := sluice.Limit{Name: "minute", Unit: sluice.Requests}
	plan := sluice.Limit{Name: "plan-7d", Unit: "plan_7d", Plan: true}
	tokens := sluice.Limit{Name: "tokens", Unit: "tokens", Per: []sluice.Scope{sluice.PerModel}}
	model := sluice.Limit{Name: "model", Per: []sluice.Scope{sluice.PerModel, sluice.PerKey}}
	for want, limits := range map[string][]sluice.Limit{
		"core": {flying, own, core, search}, "minute": {core, own, minute}, "inflight": {flying, own, model}, "": {own, plan, tokens},
		"model": {own, plan, tokens, model},
	} {
		got := ""
		if l := mainLimit(limits); l != nil {
			got = l.Name
		}
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func someReport(sends, retries, refused int64) *reportJSON {
	caller := func(name string, n, again, refused int64) callerReport {
		return callerReport{CallerReport: inspect.CallerReport{
			Name: name, FirstSends: n - again, Retries: again, Throttled: refused, PeakPerS: n / 10, PeakPerMin: n, MeanPerS: float64(n) / 600, WaitedMS: n * 90,
		}}
	}
	day := noon.Add(-24 * time.Hour)
	return &reportJSON{Since: day, Resources: []resourceReportJSON{
		{Name: "anthropic", Since: noon.Add(-time.Hour), Total: caller("", sends, retries, refused), Callers: []callerReport{
			caller("indexer", sends-20, retries, refused), caller("web", 20, 0, 0),
		}},
		{Name: "quiet", Since: day, Callers: []callerReport{}},
	}}
}

func TestReportForPeople(t *testing.T) {
	t.Parallel()
	golden(t, "report", drawn(show.Style{}, 0, func(s *screen) { s.report(someReport(220, 11, 3)) }))
	golden(t, "report-60", drawn(show.Style{}, 60, func(s *screen) { s.report(someReport(220, 11, 3)) }))
	before, after := someReport(400, 100, 90), someReport(220, 0, 0)
	before.Resources = append(before.Resources, resourceReportJSON{Name: "old", Total: callerReport{CallerReport: inspect.CallerReport{FirstSends: 3}}})
	before.Resources[0].Callers[1].Name = "gone"
	after.Against = compare(before, after, nil)
	golden(t, "against", drawn(show.Style{}, 0, func(s *screen) { s.report(after) }))
	golden(t, "against-ascii", drawn(show.Style{ASCII: true}, 60, func(s *screen) { s.report(after) }))
	if only := compare(before, after, []string{"old"}); len(only) != 1 || only[0].After != nil || only[0].Before.Sends != 3 {
		t.Errorf("%+v", only)
	}
	golden(t, "report-none", drawn(show.Style{}, 0, func(s *screen) { s.report(&reportJSON{Since: noon}) }))
}

func TestChanges(t *testing.T) {
	t.Parallel()
	for want, c := range map[string][2]float64{"=": {2, 2}, "new": {0, 1}, "gone": {1, 0}, "-50%": {4, 2}, "+100%": {2, 4}, "x20": {1, 20}} {
		if got := change(c[0], c[1]); got != want {
			t.Errorf("%v: %s, want %s", c, got, want)
		}
	}
}

func TestDoctorForPeople(t *testing.T) {
	t.Parallel()
	d := &inspect.Diagnosis{Resources: []inspect.ResourceDiagnosis{
		{
			Name: "anthropic", QuotaPerMin: 80, Verdict: "ok",
			Advice: []inspect.Advice{{Setting: "resources.anthropic.use", Text: "3 requests were refused (429) in the last 7 days, and nothing that is known explains it. Leave some room: resources.anthropic.use: 95%.", YAML: "resources: {anthropic: {provider: anthropic, use: 95%}}"}},
		},
		{Name: "quiet", Verdict: "ok", QuotaPerMin: 80},
		{Name: "unknown", Verdict: "ok"},
	}}
	weigh(&d.Resources[0], []inspect.CallerReport{{Name: "indexer", PeakPerMin: 60, MeanPerS: 0.5, Throttled: 3, FirstSends: 900}, {Name: "web", PeakPerMin: 36, MeanPerS: 0.05, FirstSends: 20}}, &policy.Facts{Highest: "p0"})
	weigh(&d.Resources[2], []inspect.CallerReport{{Name: "web", PeakPerMin: 36}}, &policy.Facts{})
	if r := d.Resources[0]; r.Verdict != "contention" || r.Ratio != 1.2 || len(r.Advice) != 2 {
		t.Errorf("%+v", r)
	}
	golden(t, "doctor", drawn(show.Style{}, 0, func(s *screen) { s.diagnosis(d) }))
	golden(t, "doctor-60", drawn(show.Style{}, 60, func(s *screen) { s.diagnosis(d) }))
	golden(t, "doctor-colour", drawn(show.Style{Colour: true}, 0, func(s *screen) { s.diagnosis(d) }))
	weigh(&d.Resources[0], d.Resources[0].Callers[:1], &policy.Facts{})
	if r := d.Resources[0]; r.Verdict != "ok" || r.Ratio != 0.75 {
		t.Errorf("%+v", r)
	}
}

// Names can be any text: they do not control the terminal, stay on their line, and are cut.
func TestForeignNamesAreHarmless(t *testing.T) {
	t.Parallel()
	nasty := strings.Repeat("x\x1b[2J\u202e\n<b>\u009b\u0301\u0301\u0301\u0301", 800)
	st := someStatus()
	for i := range st.Resources {
		r := &st.Resources[i]
		r.Name, r.Key = nasty, nasty
		for j := range r.Limits {
			r.Limits[j].Name, r.Limits[j].Scope, r.Limits[j].Unit = nasty, nasty, nasty
		}
		for j := range r.Gates {
			r.Gates[j].Scope, r.Gates[j].Cause = nasty, nasty
		}
	}
	for i := range st.Agents {
		a := &st.Agents[i]
		a.Name, a.User, a.Machine, a.Class, a.Resource = nasty, nasty, nasty, nasty, nasty
		a.PauseChain, a.WaitsFor = []string{nasty, nasty}, []string{nasty}
	}
	st.Store, st.Cycles = nasty, [][]string{{nasty, nasty}}
	w := waitingJSON{nasty, inspect.Waiting{Ticket: nasty, Agent: nasty, Class: nasty, Limit: nasty, HeldBy: []string{nasty}, Reason: nasty}, &nasty}
	rep := someReport(50, 5, 5)
	rep.Resources[0].Name, rep.Resources[0].Callers[0].Name = nasty, nasty
	rep.Against = compare(rep, rep, nil)
	d := &inspect.Diagnosis{Resources: []inspect.ResourceDiagnosis{{
		Name: nasty, Verdict: "ok", Callers: []inspect.CallerReport{{Name: nasty}}, Advice: []inspect.Advice{{Setting: nasty, Text: nasty, YAML: nasty}},
	}}}
	p := &poolJSON{Resource: nasty, Limit: nasty, Unit: nasty, PoolStatus: inspect.PoolStatus{
		TotalLimit: 1, Allocations: map[string]inspect.AgentAllocation{nasty: {}},
	}}
	for _, style := range []show.Style{{}, {ASCII: true}} {
		got := drawn(style, 0, func(s *screen) {
			s.status(st, []string{"p0", nasty})
			s.allAgents(st)
			s.waiting([]waitingJSON{w}, whose{})
			s.waiting(nil, whose{agent: nasty})
			s.refused([]refusedJSON{{Resource: nasty, Agent: nasty, Class: nasty, Limit: nasty, Reason: nasty}})
			s.report(rep)
			s.diagnosis(d)
			s.pool(p, []string{nasty})
		})
		if strings.ContainsAny(got, "\x1b\u202e\u009b\r") {
			t.Errorf("%q", got)
		}
		for line := range strings.SplitSeq(got, "\n") {
			if show.Width(line) > 700 {
				t.Errorf("%d wide: %s", show.Width(line), line)
			}
		}
	}
}

// A slow read is announced, and its result is not lost.
func TestPatience(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if err := patiently(&b, "reading", func() error { return io.EOF }); !errors.Is(err, io.EOF) || b.Len() != 0 {
		t.Errorf("%v, %q", err, b.String())
	}
	told := make(chan struct{})
	w := writerFunc(func(p []byte) (int, error) {
		close(told)
		return b.Write(p)
	})
	err := patiently(w, "reading", func() error {
		<-told
		return io.EOF
	})
	if !errors.Is(err, io.EOF) || b.String() != "reading takes long\n" {
		t.Errorf("%v, %q", err, b.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestSince(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Time{
		"24h": noon.Add(-24 * time.Hour), "90m": noon.Add(-90 * time.Minute), "7d": noon.Add(-7 * 24 * time.Hour), "2w": noon.Add(-14 * 24 * time.Hour),
		"2026-01-31": time.Date(2026, 1, 31, 0, 0, 0, 0, time.UTC), "2026-01-31T08:00:00+01:00": time.Date(2026, 1, 31, 7, 0, 0, 0, time.UTC),
	} {
		var s since
		if err := s.Set(text); err != nil || !s.moment(noon).Equal(want) || s.String() != text {
			t.Errorf("%s: %v, %v", text, s.moment(noon), err)
		}
	}
	for _, text := range []string{"", "0", "0s", "-1h", "d", "7x", "1d1h", "99999w", "yesterday", "2026-13-01", "100000h"} {
		var s since
		if err := s.Set(text); err == nil {
			t.Errorf("%q is %v", text, s.moment(noon))
		}
	}
}

func TestWhatCannotBeShownIsNoUsageError(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	t.Setenv("SLUICE_CONFIG", "")
	for _, args := range [][]string{{"status"}, {"agents"}, {"why"}, {"pool", "github"}, {"report"}, {"doctor"}, {"top"}} {
		for _, more := range [][]string{{"--store", "mem:"}, {"--store", "mem:", "--json"}} {
			if args[0] == "top" && len(more) > 2 {
				continue
			}
			var stderr bytes.Buffer
			if code := run(append(args, more...), fullDisk{}, &stderr); code != exitInternal || !strings.Contains(stderr.String(), "no space left") {
				t.Errorf("%v: exit code %d; it said %q", args, code, stderr.String())
			}
		}
	}
}
