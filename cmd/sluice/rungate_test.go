package main

import (
	"testing"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/clients"
)

// A base URL that the user has set without the usual prefix names a server without one: its paths stay as they are written.
func TestABaseURLWithoutThePrefixIsExact(t *testing.T) {
	for set, want := range map[string]string{
		"http://127.0.0.1:9/v1": "http://127.0.0.1:9", "http://127.0.0.1:9": "http://127.0.0.1:9/", "http://127.0.0.1:9/": "http://127.0.0.1:9/",
		"http://127.0.0.1:9/llm": "http://127.0.0.1:9/llm",
	} {
		t.Setenv("OPENAI_BASE_URL", set)
		t.Setenv("ANTHROPIC_BASE_URL", set)
		g := &runGate{file: config.Default(), names: map[string]string{"openai": "openai"}, upstreams: map[string]string{}, bare: map[string]bool{}}
		g.readBases(clients.Builtin())
		if got := g.upstreams["openai"]; got != want {
			t.Errorf("%s: the upstream is %s, want %s", set, got, want)
		}
	}
}
