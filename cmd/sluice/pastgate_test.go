package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/filelock"
)

func never(string) bool { return false }

// Thousands of connections are told in few events, and all are counted: the first at once, the last at the end.
func TestConnectionsPastTheGateAreToldNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []inspect.Event
		p := newPastGate(never, func(e inspect.Event) { told = append(told, e) })
		for range 20 {
			for range 1000 {
				p.add("openai", "api.openai.com")
				time.Sleep(time.Millisecond)
			}
		}
		p.add("anthropic", "api.anthropic.com")
		p.close()
		p.add("openai", "api.openai.com") // too late for an event
		synctest.Wait()
		count := map[string]int64{}
		for _, e := range told {
			if e.Kind != inspect.EventPastGate {
				t.Errorf("%+v", e)
			}
			count[e.Resource+" "+e.Host] += e.Count
		}
		if len(told) > 7 || told[0].Count != 1 || count["openai api.openai.com"] != 20_000 || count["anthropic api.anthropic.com"] != 1 {
			t.Errorf("%d events count %v, the first %d", len(told), count, told[0].Count)
		}
		if got := p.summary("HINT", true); got != "20001 connections to api.openai.com and 1 to api.anthropic.com went past the gate: HINT" {
			t.Error(got)
		}
	})
}

// A client that reads base URLs sends telemetry past the gate: that counts only if no call passed.
func TestTelemetryIsNotPastTheGate(t *testing.T) {
	for _, calls := range []bool{true, false} {
		var told []inspect.Event
		p := newPastGate(func(resource string) bool { return resource == "anthropic" }, func(e inspect.Event) { told = append(told, e) })
		p.add("anthropic", "api.anthropic.com")
		if calls {
			p.passed("anthropic")
		}
		line := p.summary("HINT", false)
		p.close()
		if calls && (line != "" || len(told) != 1 || told[0].Host != "") { // the call itself is told
			t.Errorf("%q, %+v", line, told)
		}
		if !calls && (line != "1 connection to api.anthropic.com went past the gate: HINT" || len(told) != 1 || told[0].Host == "") {
			t.Errorf("%q, %+v", line, told)
		}
	}
}

func TestPastTextNamesFewHosts(t *testing.T) {
	counts := map[string]int64{}
	for i := range 6 {
		counts[fmt.Sprintf("h%d.test", i)] = int64(10 - i)
	}
	if got := pastText(counts); got != "10 connections to h0.test, 9 to h1.test, 8 to h2.test and 18 to 3 other hosts" {
		t.Error(got)
	}
}

// A run that was killed leaves its bundle of certificates, which a later run removes. Bundles in use stay.
func TestBundlesOfKilledRunsAreRemoved(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-time.Hour)
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"sluice-ca-run-1.pem", "sluice-ca-run-2.pem", "sluice-ca-3.pem", "mine.pem"} {
		if err := os.WriteFile(path(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path(name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path("sluice-ca-run-4.pem"), nil, 0o600); err != nil { // young
		t.Fatal(err)
	}
	used, err := os.Open(path("sluice-ca-run-2.pem"))
	if err != nil {
		t.Fatal(err)
	}
	defer used.Close()
	if err := filelock.Try(used, false); err != nil {
		t.Fatal(err)
	}
	sweepBundles(dir, time.Now())
	left, err := filepath.Glob(path("*"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.ReplaceAll(strings.Join(left, " "), dir+string(filepath.Separator), ""); got != "mine.pem sluice-ca-3.pem sluice-ca-run-2.pem sluice-ca-run-4.pem" {
		t.Errorf("left: %s", got)
	}
}
