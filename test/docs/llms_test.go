package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// llmsHead is the beginning of llms.txt, a list of the documentation for programs that read it.
const llmsHead = `# Sluice

> One gate that fleets of agents pass before they call a rate limited API: one static binary, no server or database needed. Every page below is plain
> Markdown.

Shortest start: ` + "`sluice run -- COMMAND`" + ` runs any command behind the gate, ` + "`sluice serve`" + ` serves it to programs, ` + "`sluice status`" + ` shows what waits and why.
`

// llms makes llms.txt of the index of the documentation.
func llms(index string) string {
	var b strings.Builder
	b.WriteString(llmsHead)
	link := regexp.MustCompile(`\[([^\]]+)\]\(([^)#]+\.md)\)`)
	for line := range strings.Lines(index) {
		if name, rest, ok := strings.Cut(strings.TrimPrefix(line, "**"), "**"); ok && strings.HasPrefix(line, "**") {
			b.WriteString("\n## " + name + "\n\n")
			_ = rest
			continue
		}
		if !strings.HasPrefix(line, "| [") {
			continue
		}
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for _, m := range link.FindAllStringSubmatch(cells[0], -1) {
			b.WriteString("- [" + m[1] + "](" + filepath.ToSlash(filepath.Join("docs", m[2])) + "): " + link.ReplaceAllString(strings.TrimSpace(cells[len(cells)-1]), "$1") + "\n")
		}
	}
	return b.String()
}

// llms.txt has every page of the documentation. -update writes it.
func TestLLMSHasEveryPage(t *testing.T) {
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	want := llms(string(index))
	if *update {
		if err := os.WriteFile("../../llms.txt", []byte(want), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile("../../llms.txt")
	if err != nil || string(have) != want {
		t.Errorf("llms.txt is not current (%v): go test ./test/docs -run LLMS -update", err)
	}
	all, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(all) < 40 {
		t.Fatal(all, err)
	}
	for _, page := range all {
		if name := filepath.Base(page); name != "README.md" && !strings.Contains(want, "(docs/"+name+")") {
			t.Errorf("docs/README.md does not list %s, so llms.txt does not", name)
		}
	}
}
