package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What --json prints has at least these fields, of these types. A text stands for itself; "time"
// and "time?" are moments in UTC, the latter or null; "text?" is a text or null, "number?" a number or null: it is not known.
const (
	statusShape = `{"store":"text","resources":[{"name":"text","configured":true,"key":"text","mode":"text","state":"text","reason":"text","until":"time?","used_up":true,"light":"text","light_binds":true,"billing_stop":true,"paused_until":"time?","pause_reason":"text",
		"consecutive_429":0,"last_429":"time?","waiting":{"p0":0,"p1":0,"p2":0},"in_flight":0,
		"limits":[{"name":"text","kind":"text","unit":"text","scope":"text","limit":0,"used":0,"remaining":0,"outside":0,"reset_at":"time?"}],
		"sent":0,"throttled":0,"retried":0,"past_gate":"number?"}],
		"agents":[{"name":"text","class":"text","user":"text","machine":"text","allocated":0,"used":0,"lease_started_at":"time?",
		"lease_expires_at":"time?","state":"text","pause_chain":[]}]}`
	poolShape   = `{"totalLimit":0,"resetAt":"time?","allocations":{"web":{"priority":0,"allocated":0,"used":0,"leaseExpiry":"time?"}}}`
	whyShape    = `{"waiting":[{"ticket":"text","agent":"text","class":"text","limit":"text","held_by":["text"],"position":0,"expected_at":"time?","cheaper_model":"text?","reason":"text"}],"refused":[{"reason":"text","behind":"text","plan":true,"retry_at":"time?"}]}`
	callerShape = `{"name":"text","first_sends":0,"retries":0,"throttled":0,"peak_per_s":0,"mean_per_s":0,"waited_ms":0,"usd":0,"retry_usd":0}`
	reportShape = `{"since":"time","resources":[{"name":"text","total":` + callerShape + `,"callers":[` + callerShape + `]}]}`
	figureShape = `{"peak_per_s":0,"mean_per_s":0,"throttled":0,"retry_share":0,"waited_ms":0}`
	doctorShape = `{"resources":[{"name":"text","quota_per_min":"number?","mean_per_min":0,"peak_per_min":0,"ratio":"number?","verdict":"text","one_more_ratio":"number?",
		"callers":[{"name":"text"}],"advice":[{"setting":"text","text":"text"}]}]}`
	agentsShape  = `{"agents":[{"name":"text","class":"text","state":"text"}]}`
	againstShape = `{"against":[{"name":"text","before":` + figureShape + `,"after":` + figureShape + `,"callers":[{"name":"text"}]}]}`
)

// checkShape compares a value with what it should look like.
func checkShape(t *testing.T, at string, got, want any) {
	t.Helper()
	switch want := want.(type) {
	case map[string]any:
		m, ok := got.(map[string]any)
		if !ok {
			t.Errorf("%s is %v, not an object", at, got)
		}
		for field, w := range want {
			v, there := m[field]
			if !there {
				t.Errorf("%s.%s is missing", at, field)
				continue
			}
			checkShape(t, at+"."+field, v, w)
		}
	case []any:
		list, ok := got.([]any)
		if !ok {
			t.Errorf("%s is %v, not a list", at, got)
		}
		for i, v := range list {
			if len(want) > 0 {
				checkShape(t, fmt.Sprintf("%s[%d]", at, i), v, want[0])
			}
		}
	case float64:
		if _, ok := got.(float64); !ok {
			t.Errorf("%s is %v, not a number", at, got)
		}
	case string:
		checkText(t, at, got, want)
	}
}

func checkText(t *testing.T, at string, got any, want string) {
	t.Helper()
	text, ok := got.(string)
	if want == "number?" {
		if _, isNumber := got.(float64); !isNumber && got != nil {
			t.Errorf("%s is %v, not a number or null", at, got)
		}
		return
	}
	switch want {
	case "text?", "time?":
		if got == nil {
			return
		}
	}
	if !ok {
		t.Errorf("%s is %v, not a %s", at, got, want)
		return
	}
	if want == "time" || want == "time?" {
		if when, err := time.Parse(time.RFC3339, text); err != nil || when.Location() != time.UTC {
			t.Errorf("%s is %q, not a moment in UTC", at, text)
		}
	}
}

// said runs a command and returns what it printed as JSON.
func said(t *testing.T, args ...string) any {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if code := run(args, &stdout, &stderr); code != exitOK {
		t.Fatalf("%v: exit code %d: %s", args, code, stderr.String())
	}
	var v any
	if err := json.Unmarshal(stdout.Bytes(), &v); err != nil {
		t.Fatalf("%v: %v in %s", args, err, stdout.String())
	}
	return v
}

func TestJSONKeepsTheContract(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	text := "resources:\n" +
		"  search: {limits: [{name: minute, size: 6/min}, {name: day, size: 1000/day, kind: fixed, resets: \"00:00 UTC\"}]}\n" +
		"  idle: {}\n  seen: {mode: observe, limits: [{name: minute, size: 5/min}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	base := []string{"--config", file, "--store", "file:" + filepath.Join(dir, "state"), "--json"}
	command := func(args ...string) any { return said(t, append(args, base...)...) }
	saved := filepath.Join(dir, "before.json")

	for i, moment := range []string{"nothing", "something"} {
		if i > 0 {
			for range 3 {
				command("acquire", "search", "--agent", "web", "--class", "p0")
			}
			command("acquire", "search", "--agent", "batch", "--retry")
			command("acquire", "seen", "--agent", "batch")
			command("observe", "search", "--status", "429", "--header", "Retry-After: 60")
		}
		for _, c := range []struct {
			shape string
			args  []string
		}{
			{statusShape, []string{"status"}}, {agentsShape, []string{"agents"}}, {whyShape, []string{"why"}}, {whyShape, []string{"why", "search", "--agent", "web"}},
			{reportShape, []string{"report"}}, {reportShape, []string{"report", "search", "--since", "7d"}}, {doctorShape, []string{"doctor"}},
		} {
			var want any
			if err := json.Unmarshal([]byte(c.shape), &want); err != nil {
				t.Fatal(err)
			}
			checkShape(t, moment+": "+c.args[0], command(c.args...), want)
		}
		if i == 0 {
			text, err := json.Marshal(command("report"))
			if err == nil {
				err = os.WriteFile(saved, text, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for shape, args := range map[string][]string{poolShape: {"pool", "search"}, againstShape: {"report", "--against", saved}} {
		var want any
		if err := json.Unmarshal([]byte(shape), &want); err != nil {
			t.Fatal(err)
		}
		checkShape(t, args[0], command(args...), want)
	}

	pool := command("pool", "search").(map[string]any)
	web := pool["allocations"].(map[string]any)["web"].(map[string]any)
	batch := pool["allocations"].(map[string]any)["batch"].(map[string]any)
	// Of 6, p0 has 40 parts and p2 has 25.
	if pool["totalLimit"] != 6.0 || web["allocated"] != 3.0 || web["used"] != 3.0 || web["priority"] != 0.0 || batch["allocated"] != 2.0 || batch["priority"] != 2.0 {
		t.Errorf("%v", pool)
	}
	for _, r := range command("status").(map[string]any)["resources"].([]any) {
		r := r.(map[string]any)
		switch r["name"] {
		case "search":
			if r["sent"] != 4.0 || r["throttled"] != 1.0 || r["retried"] != 1.0 || r["paused_until"] == nil || r["last_429"] == nil || r["mode"] != "gate" {
				t.Errorf("%v", r)
			}
		case "seen":
			if r["mode"] != "observe" {
				t.Errorf("%v", r)
			}
		}
	}
}
