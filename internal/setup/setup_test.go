package setup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/clients"
)

func machine(env map[string]string, there ...string) Machine {
	has := func(name string) bool {
		for _, t := range there {
			if t == name {
				return true
			}
		}
		return false
	}
	return Machine{
		Home: "/home/me", Env: func(name string) string { return env[name] }, Exists: has,
		Program: func(name string) (string, error) {
			if has("bin:" + name) {
				return "/bin/" + name, nil
			}
			return "", errors.New("it is not there")
		},
	}
}

func TestFind(t *testing.T) {
	g := Endpoint{URL: "http://127.0.0.1:7979", Socket: "/home/me/a b/gate.sock"}
	table := clients.Builtin()
	if got := Find(machine(nil), g, table); len(got) != 0 || got == nil {
		t.Errorf("%v", got)
	}
	if got := Find(machine(map[string]string{"OPENAI_API_KEY": "x"}, "bin:python", "bin:node"), g, table); len(got) != 1 || got[0].Client != "sdk-openai" {
		t.Errorf("a runtime is no client, and a key is not one of an agent: %+v", got)
	}
	for _, k := range table.All() {
		for _, there := range k.Commands {
			if got := Find(machine(nil, "bin:"+there), g, table); k.Kind != clients.Runtime && (len(got) != 1 || got[0].Name != k.Title || got[0].Program != "/bin/"+there || len(got[0].Lines) == 0) {
				t.Errorf("%s: %+v", there, got)
			}
		}
		for _, there := range k.Files {
			if got := Find(machine(nil, "/home/me/"+there), g, table); len(got) != 1 || got[0].Client != k.Name || got[0].Ready || got[0].Program != "" {
				t.Errorf("%s: %+v", there, got)
			}
		}
	}
	got := Find(machine(map[string]string{"ANTHROPIC_API_KEY": "SECRET", "ANTHROPIC_BASE_URL": "http://127.0.0.1:7979/anthropic/", "OPENAI_API_KEY": "SECRET"}, "bin:gh", "bin:claude"), g, table)
	all := strings.Join(append(Exports(got), Resources(got)...), " ")
	if len(got) != 4 || got[0].Client != "claude-code" || !got[0].Ready || got[1].Ready || strings.Contains(all, "SECRET") || !Socket(got) || Socket(got[:1]) {
		t.Errorf("%+v", got)
	}
	if want := "export ANTHROPIC_BASE_URL=http://127.0.0.1:7979/anthropic"; !strings.HasPrefix(all, "export ANTHROPIC_API_BASE=") || !strings.Contains(all, want) || !strings.HasSuffix(all, "anthropic github openai") {
		t.Errorf("%s, want %s", all, want)
	}
	if line := got[1].Lines[1]; line != (Line{Run, "gh config set http_unix_socket '/home/me/a b/gate.sock'"}) {
		t.Errorf("%v", line)
	}
}

// TestWhatWorksComesFirst looks at the first step of one client of each way.
func TestWhatWorksComesFirst(t *testing.T) {
	g := Endpoint{URL: "http://127.0.0.1:7979"}
	for there, want := range map[string]Line{
		"bin:claude":   {Shell, "export ANTHROPIC_BASE_URL=http://127.0.0.1:7979/anthropic"},
		"bin:codex":    {Start, "sluice run -- codex"},
		"bin:opencode": {Start, "sluice run -- opencode"},
		"bin:copilot":  {Start, "COPILOT_PROVIDER_BASE_URL=http://127.0.0.1:7979/openai/v1 copilot"},
	} {
		got := Find(machine(nil, there), g, clients.Builtin())
		if len(got) != 1 || got[0].Lines[0] != want {
			t.Errorf("%s: %+v, want %v", there, got, want)
		}
	}
	dir := t.TempDir()
	own := "name: mine\nkind: agent\ncommands: [mine]\nproviders: [openai]\nway: setting\nwhy: reads its file only\nsettings:\n  - {file: .mine.toml, text: 'url = \"{openai}/v1\"'}\n"
	if err := os.WriteFile(filepath.Join(dir, "mine.yaml"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	table, err := clients.Builtin().With(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := Find(machine(nil, "bin:mine"), g, table); len(got) != 1 || got[0].Lines[0] != (Line{"/home/me/.mine.toml", `url = "http://127.0.0.1:7979/openai/v1"`}) || got[0].Note != "it reads its file only" {
		t.Errorf("%+v", got)
	}
}

// TestEnvLeavesOutWhatBreaksAClient: the Gemini CLI does not start with the variable that SDKs of Gemini need.
func TestEnvLeavesOutWhatBreaksAClient(t *testing.T) {
	g, keys := Endpoint{URL: "http://127.0.0.1:7979"}, map[string]string{"GEMINI_API_KEY": "x"}
	want := "export GOOGLE_GEMINI_BASE_URL=http://127.0.0.1:7979/gemini"
	if got := Exports(Find(machine(keys), g, clients.Builtin())); !slices.Contains(got, want) {
		t.Errorf("%v", got)
	}
	with := Find(machine(keys, "bin:gemini", "bin:copilot"), g, clients.Builtin())
	if got := Exports(with); len(got) != 0 {
		t.Errorf("%v", got)
	}
	if with[1].Client != "gemini-cli" || !strings.HasSuffix(with[1].Note, "; env.sh leaves out GOOGLE_GEMINI_BASE_URL") {
		t.Errorf("%+v", with[1])
	}
}

// TestFrameworksAreNotRepeated: a key of an SDK does not show which framework uses it.
func TestFrameworksAreNotRepeated(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a-framework": "way: base\nkeys: [OPENAI_API_KEY]\nbases: [{variable: OPENAI_BASE_URL, provider: openai, suffix: /v1}]\n",
		"b-framework": "way: base\nkeys: [OPENAI_API_KEY, B_KEY]\nbases: [{variable: OPENAI_BASE_URL, provider: openai, suffix: /v1}]\n",
		"c-framework": "way: base\nkeys: [OPENAI_API_KEY]\nbases: [{variable: C_URL, provider: openai}]\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name+".yaml"), []byte("name: "+name+"\nkind: library\nproviders: [openai]\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table, err := clients.Builtin().With(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, c := range Find(machine(map[string]string{"OPENAI_API_KEY": "x", "B_KEY": "y"}), Endpoint{URL: "http://127.0.0.1:7979"}, table) {
		names = append(names, c.Client)
	}
	if got := strings.Join(names, " "); got != "b-framework c-framework sdk-openai" {
		t.Errorf("%s", got)
	}
}
