package config

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var valueOfLine = regexp.MustCompile(`(?m)^( *(?:- )?(?:[^:\n"]+|"[^"\n]*"):) ([^ \n].*)$|[\[ ]([^\[\], \n]+)[\],]`)

// No message and no printed configuration shows the value of a variable, wherever it is used and whatever is wrong with
// it.
func TestVariablesAreNotShown(t *testing.T) {
	t.Parallel()
	held := []string{
		"hunter2 ${x}", "77777777", "77777777/77d", "7777h", "77.7777%", "77777777 eur/day", "https://hunter2:77777777@example.com",
		"hunter2/77777777", "00:00 hunter2", "hunter2:77777777", strings.Repeat("hunter2", 100),
	}
	f, err := Parse("everything.yaml", read(t, "testdata/good/everything.yaml"), environment)
	if err != nil {
		t.Fatal(err)
	}
	printed, _ := f.YAML()
	src, tried, refused := string(printed), 0, 0
	for _, m := range valueOfLine.FindAllStringSubmatchIndex(src, -1) {
		from, to := m[4], m[5]
		if from < 0 {
			from, to = m[6], m[7]
		}
		for _, value := range held {
			file := src[:from] + `"${HELD}"` + src[to:]
			got, err := Parse("x.yaml", []byte(file), func(name string) (string, bool) {
				if name == "HELD" {
					return value, true
				}
				return environment(name)
			})
			tried++
			var said string
			if err != nil {
				refused++
				said = spoken(err)
			} else {
				shown, _ := got.YAML()
				said = string(shown)
			}
			if strings.Contains(said, "hunter2") || strings.Contains(said, "7777") {
				t.Fatalf("%s = %q is shown:\n%s", src[from:to], value, said)
			}
		}
	}
	if tried < 1000 || refused < tried/2 {
		t.Errorf("only %d tried and %d refused: does the test still find the values?", tried, refused)
	}
}

// The content of a variable is a value, and never structure.
func TestVariablesCannotInject(t *testing.T) {
	t.Parallel()
	src := "agents:\n  bot: {user: \"${X}\"}\nlisten: ${X:-127.0.0.1:1}\n"
	for _, value := range []string{"x\norder: fifo", "x}, other: {class: p0", "x # ", "*a", "&a", "!!int 5", "${USERNAME}", "$$", "\xff"} {
		f, err := Parse("x.yaml", []byte(src), func(string) (string, bool) { return value, true })
		if err == nil {
			t.Errorf("%q: taken as %+v", value, f)
		}
	}
	// The content is not expanded again.
	f, err := Parse("x.yaml", []byte("alerts: {webhook: \"https://example.com/${X}\"}"), func(string) (string, bool) { return "$${Y}", true })
	if err != nil || f.Alerts.Webhook != "https://example.com/$${Y}" {
		t.Errorf("got %+v, %v", f, err)
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	f := parse(t, string(read(t, "testdata/good/variables.yaml")))
	api := f.Resources["api"]
	if f.Store != "redis://:none@localhost:6379" || api.Upstream != "https://api.example.com" || !api.Light.Off || api.MaxWaiting != 500 ||
		api.Limits[1].Concurrency != 20 || api.Inject.Prefix != "$1" || f.Tools["${NAME}"] != 5 || f.Agents["one"].User != "me" {
		t.Errorf("got %+v", f)
	}
	printed, _ := f.YAML()
	for _, want := range []string{"${PASSWORD:-none}", "${LIMIT}", "${WEBHOOK}", `"$$1"`} {
		if !strings.Contains(string(printed), want) {
			t.Errorf("%s is not in\n%s", want, printed)
		}
	}
	// What was changed afterwards is printed as it is.
	f.Store = "mem:"
	if printed, _ := f.YAML(); !strings.HasPrefix(string(printed), "store: \"mem:\"\n") {
		t.Errorf("got %s", printed)
	}
}

func TestLoad(t *testing.T) {
	t.Setenv("SLUICE_TEST_ORDER", "fifo")
	dir := t.TempDir()
	path := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(path, []byte("order: ${SLUICE_TEST_ORDER}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path)
	if err != nil || f.Order != "fifo" {
		t.Errorf("got %+v, %v", f, err)
	}
	for _, path := range []string{filepath.Join(dir, "missing.yaml"), dir} {
		if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got %v", path, err)
		}
	}
	if err := os.WriteFile(path, []byte("order: "+strings.Repeat("x", 300<<10)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), "262144 bytes") {
		t.Errorf("got %.200v", err)
	}
}
