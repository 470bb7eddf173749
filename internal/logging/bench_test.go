package logging

import (
	"io"
	"testing"
)

func BenchmarkRequestLine(b *testing.B) {
	log, _ := New(io.Discard, "json", "info")
	for b.Loop() {
		log.Info("request", "request_id", "1z3k9f0a8b7c6", "agent", "blog-autopilot", "class", "p1", "resource", "anthropic", "model", "claude-sonnet-4-5-20250929",
			"waited_ms", 12, "status", 200, "input_tokens", 1200, "output_tokens", 300, "usd", 0.0123)
	}
}
