package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	half, none := 0.5, 0
	table := table{Workers: 6, Callers: 8, Load: "10s", Took: "5m", Runs: []*run{
		{Fault: "none", What: "nothing happens", Grants: 123, Use: 0.975, Errors: map[string]int{}, Twice: &none, Back: some(12), Rolling: 60, Strict: 20, Bucket: 10, Places: 5},
		{Fault: "kill-9", What: "it is killed", Errors: map[string]int{"store": 3, "full": 2, "odd": 1}, InFault: &half, First: some(1500), Late: 3, Allowed: 110, Broken: []string{"a rule"}, Notes: []string{"a note"}},
	}}
	text := table.text()
	lines := strings.Split(text, "\n")
	if len(lines[1]) != len(lines[2]) || len(lines[2]) != len(lines[3]) {
		t.Errorf("not of one width:\n%s", text)
	}
	for i, want := range map[int][]string{
		0: {"6 processes of 8 callers, load of 10s"},
		2: {"none ", " 123 ", " 98% ", " 60/20/10/5 ", " 12ms ", "kept"},
		3: {"kill-9", " 50% ", " 3/110 ", " 1.5s ", "BROKEN 1"},
	} {
		for _, w := range want {
			if !strings.Contains(lines[i], w) {
				t.Errorf("line %d has no %q:\n%s", i, w, text)
			}
		}
	}
	for _, want := range []string{"kill-9: BROKEN: a rule\n", "kill-9: a note\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q:\n%s", want, text)
		}
	}
	page := table.markdown()
	for _, want := range []string{"| fault | grants |", "| --- | ---: |", "| kill-9 | 0 | 0% | 50% | 3 | 0 | 3 |", "- `twice`:", "| kill-9 | it is killed |"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q:\n%s", want, page)
		}
	}
}

// The time package of the Go in use has the expected source, so a worker with a wrong clock can be built.
func TestShifted(t *testing.T) {
	pkg, err := timePackage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(pkg, "time.go"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := shifted(string(source))
	if err != nil || strings.Count(text, "wallShift") != 1 || len(text) <= len(source) {
		t.Errorf("%d of %d bytes, %v", len(text), len(source), err)
	}
	if _, err := shifted("package time"); err == nil {
		t.Error("something else is taken for it")
	}
}
