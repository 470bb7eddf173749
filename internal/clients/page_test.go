package clients

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/clients-table.md anew")

// pagePath is the page that is made from the table.
var pagePath = filepath.Join("..", "..", "docs", "clients-table.md")

// Marks around what is made from the table. The rest of the page is written by hand.
const (
	madeFrom = "<!-- made from internal/clients/table by go test ./internal/clients -update -->"
	madeTo   = "<!-- end -->"
)

// TestPageIsMadeFromTheTable compares docs/clients-table.md with the table; -update writes it anew.
func TestPageIsMadeFromTheTable(t *testing.T) {
	was, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	want := string(was)
	for _, kind := range []Kind{Agent, Library, Runtime} {
		head := "## " + map[Kind]string{Agent: "Agents", Library: "Libraries", Runtime: "Runtimes"}[kind] + "\n"
		before, after, found := strings.Cut(want, head)
		intro, after, marked := strings.Cut(after, madeFrom)
		_, after, ended := strings.Cut(after, madeTo)
		if !found || !marked || !ended {
			t.Fatalf("%s: no %q with %s and %s", pagePath, strings.TrimSpace(head), madeFrom, madeTo)
		}
		want = before + head + intro + madeFrom + "\n\n" + section(kind) + "\n" + madeTo + after
	}
	if want == string(was) {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the table says: go test ./internal/clients -update", pagePath)
	}
	if err := os.WriteFile(pagePath, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}

// section is the table of one kind of clients.
func section(kind Kind) string {
	heads := []string{"client", "found by", "way", "variables and settings", "held streams", "tested", "notes"}
	if kind == Runtime {
		heads = []string{"runtime", "commands", "way", "notes"}
	}
	var b strings.Builder
	row := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	row(heads)
	b.WriteString(strings.Repeat("|---", len(heads)) + "|\n")
	for _, c := range Builtin().All() {
		if c.Kind != kind {
			continue
		}
		cells := []string{c.Title, foundBy(c), wayOf(c)}
		if kind != Runtime {
			cells = append(cells, settingsOf(c), heldBy(c), testedWith(c))
		}
		row(append(cells, notesOf(c)))
	}
	return b.String()
}

// code quotes words for a table.
func code(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "`" + strings.ReplaceAll(w, "|", `\|`) + "`"
	}
	return strings.Join(quoted, ", ")
}

func foundBy(c *Client) string {
	if c.Kind == Runtime {
		return code(c.Commands...)
	}
	var parts []string
	if len(c.Commands) > 0 {
		parts = append(parts, code(c.Commands...))
	}
	for _, manager := range slices.Sorted(maps.Keys(c.Packages)) {
		parts = append(parts, manager+" "+code(c.Packages[manager]))
	}
	if c.Kind == Library && len(c.Keys) > 0 {
		parts = append(parts, "keys "+code(c.Keys...))
	}
	return strings.Join(parts, "; ")
}

func wayOf(c *Client) string {
	return map[Way]string{ByBase: "base URL", ByIntercept: "interception", ByBoth: "base URL and interception", BySetting: "setting"}[c.Way]
}

func notesOf(c *Client) string {
	var parts []string
	if c.Why != "" {
		parts = append(parts, "it "+c.Why)
	}
	if len(c.Never) > 0 {
		parts = append(parts, "does not get "+code(c.Never...))
	}
	if c.Note != "" {
		parts = append(parts, c.Note)
	}
	return strings.Join(parts, "; ")
}

func settingsOf(c *Client) string {
	var parts []string
	for _, b := range c.Bases {
		parts = append(parts, code(b.Variable+"="+"{"+b.Provider+"}"+b.Suffix))
	}
	for _, s := range c.Settings {
		if s.Run != "" {
			parts = append(parts, code(s.Run))
			continue
		}
		parts = append(parts, code(s.Text)+" in "+code("~/"+s.File))
	}
	return strings.Join(parts, "; ")
}

func heldBy(c *Client) string {
	if len(c.KeepAlive) == 0 {
		return "as usual"
	}
	var parts []string
	for _, p := range slices.Sorted(maps.Keys(c.KeepAlive)) {
		words := map[KeepAlive]string{Event: "events", Comment: "comments", Blank: "blank lines", Nothing: "nothing"}[c.KeepAlive[p]]
		parts = append(parts, p+": "+words)
	}
	return strings.Join(parts, ", ")
}

func testedWith(c *Client) string {
	var parts []string
	for _, v := range c.Tested {
		parts = append(parts, v.Version+" ("+v.Date+")")
	}
	return cmp.Or(strings.Join(parts, ", "), "not yet")
}

// TestExampleOfAClientIsRead reads the file that the page shows, and looks for a word about every field.
func TestExampleOfAClientIsRead(t *testing.T) {
	page, err := os.ReadFile(pagePath)
	if err != nil {
		t.Fatal(err)
	}
	examples := regexp.MustCompile("(?s)```yaml\n(name: .*?)```").FindAllSubmatch(page, -1)
	if len(examples) != 1 {
		t.Fatalf("%d examples", len(examples))
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "own.yaml"), examples[0][1], 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := Builtin().With(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := table.Command([]string{"my-agent"})
	if c == nil || table.UserAgent("my-agent/2") != c || c.Bears("openai") != Comment || c.Try == nil {
		t.Errorf("%+v", c)
	}
	for i := range reflect.TypeFor[Client]().NumField() {
		name, _, _ := strings.Cut(reflect.TypeFor[Client]().Field(i).Tag.Get("yaml"), ",")
		if !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("the page says nothing of the field %s", name)
		}
	}
}
