package docs

import (
	"regexp"
	"strings"
	"sync"
	"testing"
)

var newChecker = sync.OnceValues(NewChecker)

func checker(t *testing.T) *Checker {
	t.Helper()
	c, err := newChecker()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGoOfThePagesCompiles(t *testing.T) {
	t.Parallel()
	c := checker(t)
	seen := 0
	for _, p := range pages(t) {
		_, blocks := p.Split()
		for _, b := range blocks {
			if b.Language != "go" {
				continue
			}
			seen++
			if err := c.Check(p.Path, b); err != nil {
				t.Errorf("%v", err)
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d blocks of Go were found", seen)
	}
}

// What pages name of Go packages and types is there: config.Load, Gate.Acquire, Transport.Bodies.
func TestNamesOfTheAPIExist(t *testing.T) {
	t.Parallel()
	c := checker(t)
	named := regexp.MustCompile(`^&?([a-z]+|[A-Z]\w*)(\.[A-Z]\w*[a-z]\w*){1,2}\b`)
	seen := 0
	for _, p := range pages(t) {
		if p.Path == "docs/clients.md" {
			continue // which is about other languages
		}
		prose, _ := p.Split()
		for _, s := range Spans(prose) {
			name := strings.TrimPrefix(named.FindString(s), "&")
			if name == "" {
				continue
			}
			seen++
			if wrong := c.Missing(name); wrong != "" {
				t.Errorf("%s: %s", p.Path, wrong)
			}
		}
	}
	if seen < 80 {
		t.Errorf("only %d names were found", seen)
	}
}

// The two tests above find these mistakes, at their lines.
func TestWrongGoIsFound(t *testing.T) {
	t.Parallel()
	c := checker(t)
	for name, of := range map[string]struct{ text, want string }{
		"a fragment":              {"gate, err := sluice.Open(ctx, sluice.Config{Store: \"mem:\"})\n", ""},
		"declarations":            {"func f() *sluice.Gate { return gate }\n", ""},
		"a method that is gone":   {"f, err := config.Load(\"sluice.yaml\")\nc, err := f.Gate()\n", "page.md:8:13: f.Gate undefined"},
		"a field that is gone":    {"import _ \"github.com/sluicehq/sluice/store/memstore\"\n\n_ = sluice.Config{Stores: \"mem:\"}\n", "page.md:9:19: unknown field Stores"},
		"in a declaration":        {"var x = 1\n\nfunc f() int64 { return x }\n", "page.md:9:25: cannot use x"},
		"an ellipsis":             {"c := sluice.Config{Store: \"mem:\", ...}\n", "page.md:7:35: expected operand, found '...'"},
		"a package that is gone":  {"import _ \"github.com/sluicehq/sluice/store/etcd\"\n", "page.md:7:10: could not import"},
		"a whole program":         {"package main\n\nfunc main() {}\n", ""},
		"an import without use":   {"package main\n\nimport \"log\"\n\nfunc main() {}\n", "page.md:9:8: \"log\" imported and not used"},
		"a program without names": {"package main\n\nfunc main() { gate.Close() }\n", "page.md:9:15: undefined: gate"},
	} {
		err := c.Check("page.md", Block{Language: "go", Text: of.text, Line: 7})
		if of.want == "" && err != nil || of.want != "" && (err == nil || !strings.HasPrefix(err.Error(), of.want)) {
			t.Errorf("%s: got %v, want %q", name, err, of.want)
		}
	}
	for name, missing := range map[string]bool{
		"config.Load": false, "File.GateConfig": false, "sluicehttp.Letters.Do": false, "http.Server": false, "Ticket.Close": false,
		"config.Lode": true, "File.Gate": true, "sluicehttp.Letters.Undo": true, "Ticket.finish": true,
	} {
		if got := c.Missing(name) != ""; got != missing {
			t.Errorf("%s: missing is %t", name, got)
		}
	}
}
