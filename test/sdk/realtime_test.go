//go:build linux || darwin

package sdk_test

import "testing"

// TestRealtime: the official client's WebSockets pass the gate, and are counted to the token.
func TestRealtime(t *testing.T) {
	t.Parallel()
	r := begin(t, client{"realtime.mjs", "openai", "/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"}, setup{resource: priced.resource + "\n  - {name: inflight, concurrency: 1}"})
	got := r.gated("realtime", "responses")
	sum := int64(0)
	for _, name := range []string{"realtime", "responses"} {
		used := value[[]int64](t, got, name)
		if len(used) != 5 {
			t.Errorf("%s: %v", name, used)
		}
		for _, n := range used {
			sum += n
		}
	}
	r.until("the gate counts everything", func() bool { return r.status().InFlight == 0 })
	caller, stats := r.caller(), r.stats()
	theirs := int64(0)
	for _, u := range stats.Ledger {
		theirs += u.InputTokens + u.OutputTokens
	}
	ours := caller.Units["input_tokens"] + caller.Units["output_tokens"]
	if stats.Accepted != 10 || stats.Throttled != 0 || theirs != sum || ours != sum {
		t.Errorf("the clients were told of %d tokens, the gate counts %d, the provider %d in %d responses", sum, ours, theirs, stats.Accepted)
	}
}
