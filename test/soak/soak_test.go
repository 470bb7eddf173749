//go:build linux || darwin

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// A short soak of a small fleet loses nothing, and the table says so.
func TestAShortSoak(t *testing.T) {
	if err := watched(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	var stdout, stderr bytes.Buffer
	code := mainCode(t.Context(), []string{
		"--sluice", sluiceBinary, "--agents", "300", "--tickets", "100", "--for", "3s", "--idle", "1s", "--every", "1s", "--connections", "16", "--json",
	}, &stdout, &stderr)
	var r Result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || code != exitOK || !r.OK {
		t.Fatalf("%d %v: %s\n%s", code, err, &stdout, &stderr)
	}
	if len(r.Levels) < 5 || r.Store != "file" {
		t.Errorf("%s: %+v", r.Store, r.Levels)
	}
	if len(r.Checks) < 8 || len(r.Errors) > 0 {
		t.Errorf("%+v %v", r.Checks, r.Errors)
	}
	for call, want := range map[string]uint64{"acquire": 300, "answer": 300, "close": 300, "heartbeat": 900} {
		if l, i := r.Load[call], r.Idle[call]; l.N != want || l.P50 == 0 || l.P50 > l.P99 || l.P99 > l.Worst || i.N != 10 {
			t.Errorf("%s: %+v, idle %+v", call, l, i)
		}
	}
	if runtime.GOOS == "linux" && (r.Memory.End == 0 || r.Memory.Idle == 0 || r.CPU == 0) {
		t.Errorf("%+v %v", r.Memory, r.CPU)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
	var table bytes.Buffer
	if err := r.print(&table); err != nil || !strings.Contains(table.String(), "heartbeat") || strings.Contains(table.String(), "LOST") {
		t.Errorf("%v: %s", err, &table)
	}
}

// tripwire ends a soak when a certain text is written.
type tripwire struct {
	mu   sync.Mutex
	text string
	trip context.CancelFunc
}

func (w *tripwire) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.text += string(b); strings.Contains(w.text, "tickets a second") {
		w.trip()
	}
	return len(b), nil
}

// A signal ends the soak and its daemon, and leaves no files behind.
func TestAnInterruptedSoak(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := &tripwire{trip: cancel}
	code := mainCode(ctx, []string{"--sluice", sluiceBinary, "--agents", "50", "--tickets", "50", "--for", "1h", "--idle", "1s"}, w, w)
	if code != exitInterrupted {
		t.Errorf("%d: %s", code, w.text)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("%v is left: %v", left, err)
	}
}

func TestWhatCannotBegin(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho no way >&2\nexit 78\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for args, says := range map[string]string{
		"--agents 0": "--agents", "--tickets 0": "--tickets", "--for 1ms": "--for", "--every 1h": "--every", "--idle 0s": "--idle", "--connections 1": "--connections",
		"--stores etcd": "--stores", "--cores 0": "--cores", "now": "no flag", "--sluice /nonexistent/sluice": "cannot be started", "--sluice " + broken: "no way",
	} {
		var stderr bytes.Buffer
		if code := mainCode(t.Context(), strings.Fields(args), &stderr, &stderr); code != exitFailed || !strings.Contains(stderr.String(), says) {
			t.Errorf("%s: %d %s", args, code, &stderr)
		}
	}
}

// The checks find each kind of loss.
func TestChecks(t *testing.T) {
	const good = `{"resources":[{"name":"soak","waiting":{"p0":0},"in_flight":0,"sent":3}],"agents":[` +
		`{"name":"agent-0","machine":"soak","leased":true,"lease_expires_at":"2999-01-01T00:00:00Z"},{"name":"other","leased":true}]}`
	const told = `{"resources":[{"name":"soak","total":{"first_sends":3,"retries":0}}]}`
	for name, c := range map[string]struct {
		status, report string
		change         func(*phase, *Result)
		lost           string
	}{
		"nothing":            {status: good},
		"a ticket":           {status: good, change: func(p *phase, _ *Result) { p.ended.Add(-1) }, lost: "every ticket"},
		"a count":            {status: strings.Replace(good, `"sent":3`, `"sent":2`, 1), lost: "the gate has counted"},
		"a grant twice":      {status: strings.Replace(good, `"sent":3`, `"sent":4`, 1), lost: "the gate has counted"},
		"a report":           {status: good, report: strings.Replace(told, "3", "2", 1), lost: "the report"},
		"half a report":      {status: good, report: strings.Replace(told, `"total"`, `"since":"2000-01-01T00:00:05Z","total"`, 1), lost: "the report"},
		"one who waits":      {status: strings.Replace(good, `"p0":0`, `"p0":1`, 1), lost: "nothing is left"},
		"a heartbeat":        {status: good, change: func(p *phase, _ *Result) { p.renewed.Add(-1) }, lost: "every heartbeat"},
		"a lease":            {status: strings.Replace(good, "2999", "1999", 1), lost: "every agent"},
		"one who only asked": {status: strings.Replace(good, `"machine":"soak"`, `"machine":""`, 1), lost: "every agent"},
		"a limit":            {status: good, change: func(p *phase, _ *Result) { p.went = make([]int64, 100) }, lost: "the limits"},
		"memory":             {status: good, change: func(_ *phase, r *Result) { r.Memory = Memory{Second: 100 << 20, Last: 130 << 20} }, lost: "memory"},
		"a descriptor a day": {status: good, change: func(_ *phase, r *Result) { r.Levels = []Level{{Name: "descriptors", Middle: 100, End: 150, slack: 32}} }, lost: "nothing drifts"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/v1/status":
				_, _ = fmt.Fprint(w, c.status)
			case c.report != "":
				_, _ = fmt.Fprint(w, c.report)
			default:
				_, _ = fmt.Fprint(w, told)
			}
		}))
		idle, load, r := &phase{}, &phase{tickets: 3, beats: 1, agents: 1, prefix: "agent"}, &Result{}
		load.begun, load.went = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), []int64{1e6, 2e6, 9e6}
		load.granted.Store(3)
		load.ended.Store(3)
		load.renewed.Store(1)
		if c.change != nil {
			c.change(load, r)
		}
		w := &wire{address: server.Listener.Addr().String()}
		if err := r.examine(t.Context(), options{agents: 1, tickets: 3, load: judgedFrom}, w, idle, load); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		w.close()
		server.Close()
		for _, check := range r.Checks {
			if lost := c.lost != "" && strings.HasPrefix(check.Name, c.lost); check.OK == lost {
				t.Errorf("%s: %+v", name, check)
			}
		}
	}
}

// Levels drift if they grow from the second third to the last by more than a tenth and more than the slack.
func TestDrift(t *testing.T) {
	for _, c := range []struct {
		level  Level
		drifts bool
	}{
		{Level{Start: 1, Middle: 100, End: 100, slack: 8}, false},
		{Level{Middle: 100, End: 107, slack: 1}, false},
		{Level{Middle: 10, End: 17, slack: 8}, false},
		{Level{Middle: 100, End: 120, slack: 8}, true},
	} {
		if c.level.drifts() != c.drifts {
			t.Errorf("%+v: %v", c.level, !c.drifts)
		}
	}
	if l := thirds("x", "", 0, []float64{1, 1, 2, 2, 6, 6}); l.Start != 1 || l.Middle != 2 || l.End != 6 {
		t.Errorf("%+v", l)
	}
	if n := metric("# go_goroutines 3\ngo_goroutines 18\n", "go_goroutines "); n != 18 {
		t.Error(n)
	}
}

func TestHist(t *testing.T) {
	var h hist
	for i := 1; i <= 10_000; i++ {
		h.add(time.Duration(i) * 100 * time.Microsecond)
	}
	for part, want := range map[float64]time.Duration{0.5: 500 * time.Millisecond, 0.99: 990 * time.Millisecond, 1: time.Second} {
		if got := h.at(part); got < want || got > want+want/50 {
			t.Errorf("%v: %s, not %s", part, got, want)
		}
	}
	if f := h.figures(); f.N != 10_000 || f.Worst != 1_000_000 {
		t.Errorf("%+v", f)
	}
	for us := uint64(1); us < 1<<40; us = us*5/4 + 1 {
		if b := bucketOf(us); upTo(b) < time.Duration(us)*time.Microsecond || b > 0 && upTo(b-1) >= time.Duration(us)*time.Microsecond {
			t.Errorf("%d us is in bucket %d, from %s to %s", us, b, upTo(b-1), upTo(b))
		}
	}
	var empty hist
	if empty.at(0.5) != 0 || empty.figures() != (Figures{}) {
		t.Errorf("%+v", empty.figures())
	}
}

func TestMost(t *testing.T) {
	for _, c := range []struct {
		times []int64
		want  int
	}{{nil, 0}, {[]int64{5}, 1}, {[]int64{0, 1_000_000}, 1}, {[]int64{0, 999_999}, 2}, {[]int64{0, 1, 1_000_000, 1_000_001, 1_500_000}, 3}} {
		if got := most(c.times, time.Second); got != c.want {
			t.Errorf("%v: %d", c.times, got)
		}
	}
}

// A connection is not reused after a long idle time, because the daemon may have closed it.
func TestOldConnections(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]bool{}
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen[r.RemoteAddr] = true
	}))
	defer server.Close()
	w := &wire{address: server.Listener.Addr().String()}
	defer w.close()
	for i := range 3 {
		if i == 2 {
			w.used = w.used.Add(-time.Minute)
		}
		if err := w.call(t.Context(), "GET", "/", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d connections were made", len(seen))
	}
	if err := (&wire{address: "127.0.0.1:1"}).call(t.Context(), "GET", "/", nil, nil); err == nil {
		t.Error("nobody was there")
	}
}
