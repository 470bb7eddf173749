package matrix_test

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/sluicehq/sluice/internal/clients"
)

// result is what became of one set-up.
type result struct {
	Name     string `yaml:"name"`
	Client   string `yaml:"client,omitempty"` // in the table of clients
	Package  string `yaml:"package"`
	Version  string `yaml:"version,omitempty"`
	Provider string `yaml:"provider"`
	// Calls are those that the provider answered in all ways, Refused those that it refused where limits are stated, and
	// RefusedUnknown where they are not.
	Calls          int64 `yaml:"calls,omitempty"`
	Refused        int64 `yaml:"refused,omitempty"`
	RefusedUnknown int64 `yaml:"refused_unknown,omitempty"`
	// Disagree is in how many ways the gate counted other tokens than the provider.
	Disagree int `yaml:"disagree,omitempty"`
	// Failed are the ways in which it failed.
	Failed []string `yaml:"failed,omitempty"`
	// Untested says why the client was not run.
	Untested string `yaml:"untested,omitempty"`
	Date     string `yaml:"date"`
}

const (
	resultsFile = "results.yaml"
	madeFrom    = "<!-- made from test/matrix/results.yaml by make clients -->"
	madeTo      = "<!-- end -->"
)

var pagePath = filepath.Join("..", "..", "docs", "clients-table.md")

// kept returns the results that were written last.
func kept() (all []result, err error) {
	text, err := os.ReadFile(resultsFile)
	if err != nil {
		return nil, err
	}
	return all, yaml.Unmarshal(text, &all)
}

// table shows results to people.
func table(all []result) string {
	var b strings.Builder
	b.WriteString("| client | version | provider | way | calls | refused, limits stated | refused, limits unknown | tokens agree | passes | on |\n")
	b.WriteString(strings.Repeat("|---", 10) + "|\n")
	for _, r := range all {
		if r.Untested != "" {
			fmt.Fprintf(&b, "| %s | | %s | | | | | | not tested: %s | %s |\n", r.Name, r.Provider, r.Untested, r.Date)
			continue
		}
		agree, passes := "yes", "all"
		if r.Disagree > 0 {
			agree = fmt.Sprintf("no, %d times", r.Disagree)
		}
		if len(r.Failed) > 0 {
			passes = "not: " + strings.Join(r.Failed, ", ")
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %d | %d | %d | %s | %s | %s |\n", r.Name, r.Version, r.Provider, wayOf(&r), r.Calls, r.Refused, r.RefusedUnknown, agree, passes, r.Date)
	}
	return b.String()
}

// wayOf is how sluice run leads the client's calls to the gate. Programs with libraries run in runtimes of the table.
func wayOf(r *result) string {
	runtime := map[string]string{"npm": "node", "pypi": "python"}
	manager, _, _ := strings.Cut(r.Package, " ")
	c := clients.Builtin().Find(r.Client)
	if c == nil || c.Kind == clients.Library {
		c = clients.Builtin().Find(runtime[manager])
	}
	if c == nil {
		return "base URL"
	}
	return map[clients.Way]string{clients.ByBase: "base URL", clients.ByIntercept: "interception", clients.ByBoth: "both", clients.BySetting: "setting"}[c.Way]
}

// order sorts results: agents first, then by name and provider.
func order(a, b result) int {
	rank := func(r result) int {
		if c := clients.Builtin().Find(r.Client); c != nil && c.Kind == clients.Agent {
			return 0
		}
		return 1
	}
	return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), strings.Compare(a.Provider, b.Provider))
}

// withResults returns the page with the table of results.
func withResults(page string, all []result) (string, error) {
	before, after, found := strings.Cut(page, madeFrom)
	_, after, ended := strings.Cut(after, madeTo)
	if !found || !ended {
		return "", fmt.Errorf("%s has no %s with %s", pagePath, madeFrom, madeTo)
	}
	return before + madeFrom + "\n\n" + table(all) + "\n" + madeTo + after, nil
}

// TestPageHasTheResults compares docs/clients-table.md with the results of make clients.
func TestPageHasTheResults(t *testing.T) {
	all, err := kept()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.IsSortedFunc(all, order) {
		t.Errorf("%s is not sorted", resultsFile)
	}
	want, err := withResults(string(page), all)
	if err != nil {
		t.Fatal(err)
	}
	if want != string(page) {
		t.Errorf("%s does not have the results of %s: make clients writes both", pagePath, resultsFile)
	}
	for _, r := range all {
		if c := clients.Builtin().Find(r.Client); r.Client != "" && c == nil {
			t.Errorf("%s: there is no client %s", r.Name, r.Client)
		}
	}
}
