//go:build unix

package main

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/inspect"
)

// What doctor says can be pasted: every line of YAML that it prints is a configuration without a mistake or a warning, and
// built-in resources keep their provider.
func TestDoctorsAdviceCanBePasted(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "resources: {api: {limits: [{name: minute, size: 3/min}]}, open: {upstream: 'http://127.0.0.1:1'}}\n")
	for _, argv := range [][]string{
		{"acquire", "openai", "--agent", "a"}, {"acquire", "open", "--agent", "b"}, {"acquire", "api", "--agent", "c"}, {"acquire", "api", "--agent", "d"},
		{"observe", "api", "--status", "429"}, {"resume", "api"}, {"observe", "api", "--status", "429"},
	} {
		p := f.start(argv...)
		p.ends(0)
	}
	out := f.start("doctor", "--json")
	var d inspect.Diagnosis
	if err := json.NewDecoder(out.stdout).Decode(&d); err != nil {
		t.Fatal(err)
	}
	out.ends(0)
	text := f.start("doctor")
	lines, err := io.ReadAll(text.stdout)
	if err != nil {
		t.Fatal(err)
	}
	text.ends(0)
	printed := string(lines)
	var settings []string
	for _, r := range d.Resources {
		for _, a := range r.Advice {
			if a.YAML == "" {
				continue
			}
			settings = append(settings, a.Setting)
			if !strings.Contains(printed, "\n    "+a.YAML+"\n") {
				t.Errorf("the text does not have %s:\n%s", a.YAML, printed)
			}
			file := filepath.Join(t.TempDir(), "pasted.yaml")
			if err := os.WriteFile(file, []byte(a.YAML+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c, err := config.Load(file)
			if err != nil {
				t.Fatalf("%s: %v\n%s", a.Setting, err, a.YAML)
			}
			if warned := c.Warnings(); len(warned) > 0 {
				t.Errorf("%s: %v", a.YAML, warned)
			}
		}
	}
	for _, want := range []string{"resources.openai.limits", "resources.open.limits", "resources.api.use"} {
		if !slices.Contains(settings, want) {
			t.Errorf("no advice about %s: %q", want, settings)
		}
	}
}
