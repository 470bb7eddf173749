package replay

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

var noon = time.Date(2026, 3, 4, 12, 0, 20, 0, time.UTC)

var usual = Assumptions{RetryWithin: DefaultRetryWithin, Follow: DefaultFollow}

func read(t *testing.T, format, text string) *Log {
	t.Helper()
	l, err := Read("-", format, "", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// at formats a time of the log.
func at(seconds float64) string {
	return noon.Add(time.Duration(seconds * float64(time.Second))).Format(time.RFC3339Nano)
}

// line returns a line of an access log.
func line(seconds float64, caller string, status int, more string) string {
	return fmt.Sprintf(`{"time":%q,"caller":%q,"model":"m","status":%d%s}`+"\n", at(seconds), caller, status, more)
}

func TestFormatsAreTold(t *testing.T) {
	for _, c := range []struct {
		name, text, format string
		want               Send
	}{
		{"access", `{"time":"2026-03-04T12:00:00Z","caller":"web","model":"m","tokens":120,"status":200,"duration_ms":250}`, Access,
			Send{Caller: "web", Model: "m", Input: 120}},
		{"access in seconds", `{"ts":1772625600.5,"agent":"web","model":"m","prompt_tokens":100,"completion_tokens":20,"code":"429","cost":0.25}`, Access,
			Send{Caller: "web", Model: "m", Input: 100, Output: 20, Refused: true, USD: 0.25, Priced: true}},
		{"request lines of serve", `{"time":"2026-03-04T12:00:00Z","level":"INFO","msg":"listening"}` + "\n" +
			`{"time":"2026-03-04T12:00:01Z","level":"INFO","msg":"request","agent":"web","class":"p1","resource":"api","model":"m","wait_ms":400,"status":503,"took_ms":500,"input_tokens":8}`, Access,
			Send{Caller: "web", Class: "p1", Resource: "api", Model: "m", Input: 8, Failed: true}},
		{"log of a mock", `{"time":"2026-03-04T12:00:00.5Z","agent":"w7","model":"claude-x","outcome":"throttled"}`, Access,
			Send{Caller: "w7", Model: "claude-x", Refused: true}},
		{"litellm lines", `{"request_id":"r","api_key":"88dc28d0f030c55ed4ab77ed8faf098196cb1c05df778539800c9f1243fe6b4b","startTime":"2026-03-04T12:00:00.000Z","endTime":"2026-03-04T12:00:02Z","model":"gpt-4o","total_tokens":130,"prompt_tokens":100,"completion_tokens":30,"spend":0.01,"status":"success","metadata":{"user_api_key_alias":"nightly"}}`, LiteLLM,
			Send{Caller: "nightly", Model: "gpt-4o", Input: 100, Output: 30, USD: 0.01, Priced: true}},
		{"litellm array", `[{"startTime":"2026-03-04 12:00:00.123","endTime":"2026-03-04 12:00:02","model":"gpt-4o","user":"u1","status":"failure","metadata":"{\"error_information\":{\"error_code\":\"429\",\"error_class\":\"RateLimitError\"}}"}]`, LiteLLM,
			Send{Caller: "u1", Model: "gpt-4o", Refused: true}},
		{"litellm csv", "request_id,startTime,endTime,model,total_tokens,prompt_tokens,completion_tokens,spend,user,status\nr,2026-03-04 12:00:00+00:00,2026-03-04 12:00:03+00:00,claude-x,12,10,2,0.5,u2,failure\n", LiteLLM,
			Send{Caller: "u2", Model: "claude-x", Input: 10, Output: 2, Failed: true, USD: 0.5, Priced: true}},
		{"events", `{"time":"2026-03-04T12:00:00Z","event":"send","resource":"api","ticket":"api.1-1","agent":"web","class":"p2","model":"m","requested":"claude-m","units":{"input_tokens":27,"output_tokens":10,"requests":1,"usd":154},"waited_ms":100}
{"time":"2026-03-04T12:00:01Z","event":"answer","resource":"api","ticket":"api.1-1","status":200,"verdict":"ok"}
{"time":"2026-03-04T12:00:02Z","event":"usage","resource":"api","ticket":"api.1-1","units":{"input_tokens":8,"output_tokens":9,"usd":116}}
{"time":"2026-03-04T12:00:03Z","event":"send","resource":"api","ticket":"api.1-2","agent":"web"}
{"time":"2026-03-04T12:00:03Z","event":"cancel","resource":"api","ticket":"api.1-2"}
{"time":"2026-03-`, Events,
			Send{Caller: "web", Resource: "api", Class: "p2", Model: "m", Input: 8, Output: 9, USD: 0.000116, Priced: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := read(t, "", c.text)
			if l.Format != c.format || len(l.Sends) != 1 {
				t.Fatalf("%s with %d sends, want %s with one", l.Format, len(l.Sends), c.format)
			}
			s := l.Sends[0]
			if s.Start.IsZero() || s.End.Before(s.Start) || s.First.After(s.End) || s.Wanted.After(s.Start) {
				t.Errorf("times %v, %v, %v, %v", s.Wanted, s.Start, s.First, s.End)
			}
			got := Send{Caller: s.Caller, Class: s.Class, Resource: s.Resource, Model: s.Model, Input: s.Input, Output: s.Output, Refused: s.Refused, Failed: s.Failed, USD: s.USD, Priced: s.Priced}
			if got != c.want {
				t.Errorf("read as %+v\nwant    %+v", got, c.want)
			}
		})
	}
}

// A request that the provider answered was sent, also if its ticket was given back afterwards instead of closed.
func TestAnsweredTicketsThatAreDeletedWereSent(t *testing.T) {
	event := func(seconds float64, more string) string {
		return fmt.Sprintf(`{"time":%q,"resource":"api","ticket":"api.1-1",%s}`+"\n", at(seconds), more)
	}
	send, deleted := event(0, `"event":"send","agent":"web","units":{"input_tokens":7}`), event(2, `"event":"cancel"`)
	for _, c := range []struct {
		name, answers string
		refused       bool
	}{
		{"accepted", event(1, `"event":"answer","status":200,"verdict":"ok"`), false},
		{"refused", event(1, `"event":"answer","status":429,"verdict":"throttled"`) + event(1, `"event":"throttled","status":429`), true},
	} {
		l := read(t, Events, send+c.answers+deleted+event(3, `"event":"usage","units":{"input_tokens":9}`))
		if len(l.Sends) != 1 || l.Sends[0].Refused != c.refused || !l.Sends[0].Start.Equal(noon) || c.refused != (l.Sends[0].Input == 7) {
			t.Errorf("%s: read as %+v", c.name, l.Sends)
		}
	}
	if l, err := Read("-", Events, "", strings.NewReader(send+deleted)); err == nil {
		t.Errorf("never sent: read as %+v", l.Sends)
	}
}

// The keys of LiteLLM's log never appear in the output, hashed or not.
func TestKeysBecomeLabels(t *testing.T) {
	l := read(t, "", `{"api_key":"sk-secret-secret","startTime":"2026-03-04T12:00:00Z","model":"m"}`)
	if c := l.Sends[0].Caller; !strings.HasPrefix(c, "key-") || strings.Contains(c, "secret") || len(c) != 12 {
		t.Errorf("the caller is %q", c)
	}
}

func TestMistakesAreTold(t *testing.T) {
	long := `{"time":"` + strings.Repeat("x", MaxLine) + `"}`
	for name, c := range map[string]struct{ format, text, want string }{
		"empty":            {"", "", "-: the log is empty"},
		"text":             {"", "hello\n", "-:1: its format is not known"},
		"broken":           {"", line(0, "a", 200, "") + "{]\n" + line(0, "a", 200, ""), "-:2: it is not a JSON object: the JSON is broken"},
		"no time":          {"", line(0, "a", 200, "") + `{"time":"yesterday","status":200}` + "\n", "-:2: the time cannot be read: write it as 2026"},
		"no status":        {"", line(0, "a", 200, "") + `{"time":"2026-03-04T12:00:00Z"}` + "\n", "-:2: it has no status"},
		"odd status":       {"", line(0, "a", 200, "") + `{"time":"2026-03-04T12:00:00Z","status":"perhaps"}` + "\n", "-:2: the status cannot be read: write it as 200 or 429"},
		"unknown":          {"", `{"a":1}` + "\n", "-: its format is not known"},
		"no request":       {Events, `{"time":"2026-03-04T12:00:00Z","event":"pause"}` + "\n", "-: there is no request in it"},
		"too long":         {"", line(0, "a", 200, "") + long + "\n", "-:2: the line has more than 4 MB"},
		"too long, CSV":    {"", "startTime," + long, "-:1: the line has more than 4 MB"},
		"array":            {Access, "[]", "-: it is a JSON array"},
		"broken array":     {"", `[{"startTime":"2026-03-04T12:00:00Z"},7]`, "-: entry 2: it is not a JSON object"},
		"litellm no start": {LiteLLM, `{"model":"m"}` + "\n", "-:1: it has no startTime: add"},
		"time is missing":  {"", line(0, "a", 200, "") + `{"caller":"a","status":200}` + "\n", "-:2: it has no time: add when the request was sent"},
		"first time":       {"", `{"caller":"a","status":200}` + "\n" + line(0, "a", 200, ""), "-:1: it has no time"},
		"zero time":        {"", line(0, "a", 200, "") + `{"time":"0001-01-01T00:00:00Z","status":200}` + "\n", "-:2: the time 0001-01-01T00:00:00Z is not between the years 2000 and 2100"},
		"unset clock":      {"", line(0, "a", 200, "") + `{"time":"1970-01-01T00:00:09Z","status":200}` + "\n", "-:2: the time 1970-01-01T00:00:09Z is not between"},
		"far future":       {"", line(0, "a", 200, "") + `{"time":"9999-01-01T00:00:00Z","status":200}` + "\n", "-:2: the time 9999-01-01T00:00:00Z is not between"},
		"unset, array":     {"", `[{"startTime":"1970-01-01T00:00:00Z"}]`, "-: entry 1: the startTime 1970-01-01T00:00:00Z is not between"},
		"too many years":   {"", line(0, "a", 200, "") + `{"time":"2012-01-01T00:00:00Z","status":200}` + "\n", "-:1: it ends at 2026-03-04T12:00:20Z, and line 2 begins at 2012-01-01T00:00:00Z: a replay takes at most 10 years"},
	} {
		_, err := Read("-", c.format, "", strings.NewReader(c.text))
		var e *Error
		if !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.jsonl"), "", "", nil); err == nil || !strings.Contains(err.Error(), "none.jsonl") || strings.Count(err.Error(), "none.jsonl") != 1 {
		t.Errorf("no file: %v", err)
	}
}

// The directory of an event log is read in full; the resource with the most requests is replayed.
func TestDirectoryOfEvents(t *testing.T) {
	dir := t.TempDir()
	w := eventlog.Open(dir)
	for i := range 5 {
		resource := "api"
		if i == 4 {
			resource = "other"
		}
		w.Add(inspect.Event{Time: noon.Add(time.Duration(i) * time.Second), Kind: inspect.EventSend, Resource: resource, Ticket: fmt.Sprint("t", i), Agent: "a"})
		w.Add(inspect.Event{Time: noon.Add(time.Duration(i)*time.Second + 50*time.Millisecond), Kind: inspect.EventAnswer, Resource: resource, Ticket: fmt.Sprint("t", i), Verdict: "ok"})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	l, err := Read(dir, "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if l.Format != Events || len(l.Sends) != 4 || l.Resource != "api" || len(l.Others) != 1 {
		t.Errorf("%d sends of %q, others %v, format %s", len(l.Sends), l.Resource, l.Others, l.Format)
	}
	if l, err = Read(dir, "", "other", nil); err != nil || len(l.Sends) != 1 {
		t.Errorf("%v, %v", l, err)
	}
	if _, err = Read(dir, "", "nowhere", nil); err == nil || !strings.Contains(err.Error(), `to the resource "nowhere"`) {
		t.Errorf("%v", err)
	}
}

// A call that was refused and sent again is one call. So is a call that was given up, and one whose retries the log
// marks.
func TestRetriesAreOneCall(t *testing.T) {
	for _, c := range []struct {
		name, log           string
		calls, done, follow int
	}{
		{"again after a backoff", line(0, "a", 429, "") + line(0.5, "a", 429, "") + line(1.5, "a", 200, ""), 1, 1, 0},
		{"another caller", line(0, "a", 429, "") + line(0.5, "b", 200, ""), 2, 1, 0},
		{"too late", line(0, "a", 429, "") + line(100, "a", 200, ""), 2, 1, 0},
		{"another model", line(0, "a", 429, "") + strings.Replace(line(0.5, "a", 200, ""), `"m"`, `"n"`, 1), 2, 1, 1},
		{"another size", line(0, "a", 429, `,"input_tokens":10`) + line(0.5, "a", 200, `,"input_tokens":11`), 2, 1, 1},
		{"its worker goes on", line(0, "a", 200, `,"duration_ms":400`) + line(0.1, "a", 429, "") + line(0.401, "a", 200, "") + line(2, "a", 200, ""), 3, 3, 1},
		{"the log marks them", line(0, "a", 429, "") + line(0.5, "a", 200, "") + line(1, "a", 200, `,"retry":true`), 2, 2, 0},
		{"given up", line(0, "a", 429, "") + line(0.5, "a", 429, ""), 1, 0, 0},
		{"one after the other", line(0, "a", 200, `,"duration_ms":500`) + line(0.6, "a", 200, `,"duration_ms":500`) + line(9, "a", 200, ""), 3, 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := pieces(read(t, "", c.log), usual)
			done, follow := 0, 0
			for _, one := range w.calls {
				if one.done {
					done++
				}
				if one.follows >= 0 {
					follow++
				}
			}
			if len(w.calls) != c.calls || done != c.done || follow != c.follow {
				t.Errorf("%d calls, %d done, %d follow; want %d, %d, %d: %+v", len(w.calls), done, follow, c.calls, c.done, c.follow, w.calls)
			}
		})
	}
}

// Calls without a duration can follow each other, but none follows itself.
func TestNoCallWaitsForItself(t *testing.T) {
	var log strings.Builder
	for range 20 {
		log.WriteString(line(0, "a", 200, ""))
	}
	w := pieces(read(t, "", log.String()), usual)
	for i := range w.calls {
		for c, n := i, 0; w.calls[c].follows >= 0; n++ {
			if c = w.calls[c].follows; c == i || n > len(w.calls) {
				t.Fatalf("call %d waits for itself", i)
			}
		}
	}
}

// busy is the log of four callers that want 100 calls each on a limit of 60 a minute, refused as a rule says.
func busy(t *testing.T, rule sim.Rule) *Log {
	t.Helper()
	var log strings.Builder
	for n := range 2400 { // each tenth of a second one of them tries, with pauses
		if n/150%4 == 3 {
			continue
		}
		now := sim.Epoch.Add(time.Duration(n) * 100 * time.Millisecond)
		status, more := 429, `,"duration_ms":20`
		if sim.Admit(rule, now, 1) {
			status, more = 200, `,"duration_ms":200,"tokens":100`
		}
		log.WriteString(line(float64(n)/10, fmt.Sprint("worker", n%4), status, more))
	}
	return read(t, "", log.String())
}

func TestLimitsAreFound(t *testing.T) {
	for kind, rule := range map[store.Kind]sim.Rule{
		store.Bucket: sim.NewBucket(60, 60, time.Minute), store.Rolling: sim.NewRolling(90, time.Minute), store.Fixed: sim.NewFixed(45, time.Minute, sim.Epoch.Add(40*time.Second)),
	} {
		r, err := New(busy(t, rule), Setup{Assumptions: usual})
		if err != nil {
			t.Fatal(err)
		}
		if l := r.sc.Limits[0]; l.Kind != kind || l.Window != time.Minute || l.Size != map[store.Kind]int64{store.Bucket: 60, store.Rolling: 90, store.Fixed: 45}[kind] {
			t.Errorf("%v: found %+v", kind, l)
		}
	}
	_, err := New(read(t, "", line(0, "a", 200, "")+line(1, "a", 429, "")), Setup{Assumptions: usual})
	var none *ErrNoLimits
	if !errors.As(err, &none) || none.Refused != 1 {
		t.Errorf("one refusal: %v", err)
	}
	var odd strings.Builder // as many requests pass between refusals as not, however long it is since the last one
	for n := range 60 {
		odd.WriteString(line(float64(n*n%977), "a", []int{200, 200, 200, 200, 200, 429}[n%6], ""))
	}
	_, err = New(read(t, "", odd.String()), Setup{Assumptions: usual})
	if !errors.As(err, &none) || !strings.Contains(err.Error(), "no limit on requests explains the log's 10 refusals") {
		t.Errorf("ten refusals without a rule: %v", err)
	}
}

// The derived files can be used: the scenario by the simulator, the configuration by the gate.
func TestDerivedFilesAreRight(t *testing.T) {
	l := busy(t, sim.NewBucket(60, 60, time.Minute))
	for i := range l.Sends {
		if s := &l.Sends[i]; s.Caller == "worker3" {
			s.Caller, s.Model, s.Named = "w o r k e r: {3}\n", "claude-x", "claude-x"
		}
	}
	for _, kind := range []store.Kind{store.Bucket, store.Rolling, store.Fixed, store.Concurrency} {
		limit := sim.Limit{Name: "requests", Kind: kind, Unit: sim.Requests, Size: 60, Window: time.Minute}
		if kind == store.Bucket {
			limit.Burst = 60
		}
		r, err := New(l, Setup{Assumptions: usual, Limits: []sim.Limit{limit}})
		if err != nil {
			t.Fatal(err)
		}
		text, err := r.Scenario()
		if err != nil {
			t.Fatal(err)
		}
		sc, err := sim.Parse("s.yaml", bytes.NewReader(text))
		if err != nil || len(sc.Fleet) != 4 || sc.Limits[0].Kind != kind {
			t.Errorf("%v\n%s", err, text)
		}
		file := filepath.Join(t.TempDir(), "sluice.yaml")
		if err := os.WriteFile(file, r.Config(), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := config.Load(file)
		if err != nil {
			t.Fatalf("%v\n%s", err, r.Config())
		}
		if _, err := f.GateConfig(noon); err != nil {
			t.Errorf("%v\n%s", err, r.Config())
		}
	}
}

// Classes, and the percentage of the limits that the gate uses, change the result.
func TestClassesAndShareOfTheLimits(t *testing.T) {
	l := busy(t, sim.NewBucket(60, 60, time.Minute))
	run := func(s Setup) *Report {
		t.Helper()
		s.Assumptions, s.Seed = usual, 1
		s.Limits = []sim.Limit{{Name: "requests", Kind: store.Bucket, Unit: sim.Requests, Size: 60, Burst: 60, Window: time.Minute}}
		r, err := New(l, s)
		if err != nil {
			t.Fatal(err)
		}
		rep, err := r.Run()
		if err != nil {
			t.Fatal(err)
		}
		return rep
	}
	all := run(Setup{})
	if all.Gate.Throttled != 0 || all.Gate.Finished != all.Log.Calls || all.Log.Throttled == 0 || len(all.Gate.Classes) != 1 || all.Explained.Agree < 0.99 {
		t.Errorf("%+v", all)
	}
	first := run(Setup{Class: func(c string) string {
		if c == "worker0" {
			return "p0"
		}
		return ""
	}})
	if len(first.Gate.Classes) != 2 || first.Gate.Classes[0].MeanS >= first.Gate.Classes[1].MeanS {
		t.Errorf("the first class waits as long as the others: %+v", first.Gate.Classes)
	}
	if half := run(Setup{Use: 50}); half.Gate.DurationS < 1.3*all.Gate.DurationS {
		t.Errorf("on half of the limits it takes %.1f s, on all %.1f s", half.Gate.DurationS, all.Gate.DurationS)
	}
}

func TestCallersAreBounded(t *testing.T) {
	var log strings.Builder
	for i := range MaxCallers + 10 {
		log.WriteString(line(float64(i), fmt.Sprint("c", i), 200, ""))
	}
	l := read(t, "", log.String())
	names := map[string]bool{}
	for i := range l.Sends {
		names[l.Sends[i].Caller] = true
	}
	if len(names) != MaxCallers || !names["(others)"] {
		t.Errorf("%d callers", len(names))
	}
}

func FuzzRead(f *testing.F) {
	f.Add(line(0, "a", 200, ""))
	f.Add(`[{"startTime":"2026-03-04T12:00:00Z","model":"m"}]`)
	f.Add("startTime,model\n2026-03-04T12:00:00Z,m\n")
	f.Add(`{"time":"2026-03-04T12:00:00Z","event":"send","ticket":"t"}`)
	f.Fuzz(func(t *testing.T, text string) {
		l, err := Read("-", "", "", strings.NewReader(text))
		if err != nil {
			return
		}
		if w := pieces(l, usual); len(w.calls) == 0 || len(w.calls) > len(l.Sends) {
			t.Errorf("%d calls of %d sends", len(w.calls), len(l.Sends))
		}
	})
}
