package nearest

import (
	"strings"
	"testing"
)

func TestName(t *testing.T) {
	commands := []string{"status", "acquire", "release", "report", "repair", "resume", "run", "serve", "setup", "pool", "pause"}
	for _, c := range []struct {
		name  string
		names []string
		want  string
	}{
		{"statsu", commands, "status"},
		{"STATUS", commands, "status"},
		{"acq", commands, "acquire"},
		{"acquier", commands, "acquire"},
		{"frobnicate", commands, ""},
		{"re", commands, ""},
		{"", commands, ""},
		{"p4", []string{"p0", "p1", "p2"}, ""}, // all are equally near
		{"P1", []string{"p0", "p1", "p2"}, "p1"},
		{"antropic", []string{"anthropic", "openai", "github"}, "anthropic"},
		{"git", []string{"github", "gitlab"}, ""},
		{strings.Repeat("x", 100_000), []string{"x"}, ""},
		{"status", nil, ""},
		{"nowhere", []string{"cohere", "openai"}, ""},
		{"openroter", []string{"openrouter", "openai"}, "openrouter"},
		{"opnroter", []string{"openrouter", "openai"}, "openrouter"},
		{"x", []string{"y"}, ""},
	} {
		if got := Name(c.name, c.names); got != c.want {
			t.Errorf("Name(%.20q) is %q, want %q", c.name, got, c.want)
		}
	}
}
