package main

import (
	"log/slog"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
)

// Envoy's service reads the configuration in force, which a reload can replace at any time. Without KEDA's scaler it read
// the session's own until the first reload.
func TestEnvoyReadsTheConfigurationInForce(t *testing.T) {
	t.Parallel()
	g, err := sluice.Open(t.Context(), sluice.Config{Resources: map[string]sluice.Resource{"api": {}}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = g.Close() }()
	f := config.Default()
	f.AddPresets()
	s := &session{file: f, gate: g, notes: slog.New(slog.DiscardHandler)}
	flags := envoyFlags()
	flags.listen = "127.0.0.1:0"
	end, err := s.limit(t.Context(), flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	if s.inForce.Load() != f {
		t.Error("none is in force")
	}
	s.file = nil // only a reload uses it
	if got := s.modelClass("anthropic", "claude-opus-4-5"); got != "opus-4" {
		t.Errorf("the class is %q", got)
	}
}
