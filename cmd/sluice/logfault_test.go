package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
)

var someFaults = []inspect.Event{
	{Reason: "poisoned", Position: "1.0.70", Writer: "4f3a", Error: "the entry makes the replica fail: boom"},
	{Reason: "poisoned", Position: "1.0.70", Writer: "4f3a", Error: "the entry makes the replica fail: boom"}, // another process tells of the same
	{Reason: "diverged", Position: "1.0.90", Writer: "4f3a"},
	{Reason: "diverged", Position: "1.0.99", Writer: "51"},
	{Reason: "lost", Position: "1.0.120"},
	{Reason: "behind", Position: "2.0.10"},
	{Reason: "of a later release", Position: "2.0.10"},
}

func TestDoctorTellsOfFaultsOfTheLog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := eventlog.Open(dir)
	for i, e := range someFaults {
		e.Kind, e.Resource, e.Time = inspect.EventLogFault, "api", noon.Add(time.Duration(i)*time.Minute)
		log.Add(e)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := readLogFaults(&session{dir: dir, label: "file"}, noon)
	if err != nil || len(got) != 1 || len(got["api"]) != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	for i, want := range []string{
		"An entry of the log makes Sluice fail: once in this period, the last time at 2026-03-01T12:01:00Z, position 1.0.70, in an entry of the process 4f3a (the entry makes",
		"The log grows faster than this process can read it: once",
		"The store has lost the log, or its end: once",
		"Two processes have decided differently: 2 times in this period, the last time at 2026-03-01T12:03:00Z, position 1.0.99, in an entry of the process 51. Sluice: loaded",
	} {
		if a := got["api"][i]; a.Setting != storeFault || !strings.HasPrefix(a.Text, want) || !strings.Contains(a.Text, "What to do: ") {
			t.Errorf("%+v, want %q", a, want)
		}
	}
}

func TestDoctorNamesWhoHoldsTheRulesBack(t *testing.T) {
	t.Parallel()
	l := &inspect.LogStatus{Rules: 1, RulesKnown: 2, HoldBack: []string{"4f3a", "51"}}
	if a, ok := rulesAdvice(l); !ok || !strings.Contains(a.Text, "rules 1, although this release knows 2") || !strings.Contains(a.Text, "4f3a, 51.") {
		t.Errorf("%+v, %v", a, ok)
	}
	l.HoldBack = nil
	if a, ok := rulesAdvice(l); ok {
		t.Errorf("%+v", a)
	}
}

// Each fault is one line that says what happened, what Sluice did and what to do.
func TestFaultsOfTheLogAreLogged(t *testing.T) {
	var out bytes.Buffer
	tell := newTeller(slog.New(slog.NewTextHandler(&out, nil)))
	for _, e := range someFaults {
		e.Kind, e.Resource = inspect.EventLogFault, "api"
		tell.Event(e)
	}
	tell.close()
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(someFaults)-1 {
		t.Fatalf("it logged:\n%s", out.String())
	}
	for _, line := range lines {
		for _, want := range []string{"level=WARN", "resource=api", "position=", "sluice=", "hint="} {
			if !strings.Contains(line, want) {
				t.Errorf("%s: has no %s", line, want)
			}
		}
	}
	if !strings.Contains(lines[0], "process=4f3a") {
		t.Error(lines[0])
	}
}
