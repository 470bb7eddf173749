package setup

import (
	"errors"
	"strings"
	"testing"
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
	if got := Find(machine(nil), g); len(got) != 0 || got == nil {
		t.Errorf("%v", got)
	}
	for there, want := range map[string]string{
		"bin:claude": "Claude Code", "/home/me/.claude": "Claude Code", "bin:codex": "Codex", "/home/me/.codex": "Codex", "bin:gemini": "Gemini CLI", "bin:gh": "gh",
		"/home/me/.config/gh": "gh", "bin:aider": "aider", "/home/me/.aider.conf.yml": "aider",
	} {
		got := Find(machine(nil, there), g)
		if len(got) != 1 || got[0].Name != want || len(got[0].Lines) == 0 || got[0].Ready {
			t.Errorf("%s: %+v", there, got)
		}
	}
	got := Find(machine(map[string]string{"ANTHROPIC_API_KEY": "SECRET", "ANTHROPIC_BASE_URL": "http://127.0.0.1:7979/anthropic/", "OPENAI_API_KEY": "SECRET"}, "bin:gh", "bin:aider"), g)
	all := strings.Join(append(Exports(got), Resources(got)...), " ")
	if len(got) != 4 || !got[2].Ready || got[1].Ready || strings.Contains(all, "SECRET") || !Socket(got) {
		t.Errorf("%+v", got)
	}
	if want := "export ANTHROPIC_BASE_URL=http://127.0.0.1:7979/anthropic export OPENAI_API_BASE=http://127.0.0.1:7979/openai/v1 export OPENAI_BASE_URL=http://127.0.0.1:7979/openai/v1 anthropic github openai"; all != want {
		t.Errorf("%s, want %s", all, want)
	}
	if line := got[0].Lines[0]; line != (Line{Run, "gh config set http_unix_socket '/home/me/a b/gate.sock'"}) {
		t.Errorf("%v", line)
	}
}
