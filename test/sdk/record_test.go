//go:build linux || darwin

package sdk_test

import "math"

// priced is a rig whose books can be compared to the token and to the millionth of a dollar. Tokens that no limit
// counts are not in the report: there is one for each kind. With two resources, sluice run takes no turn of its own.
var priced = setup{
	file: `prices:
  claude-sonnet-5-5: {input: 3, output: 15, cache_read: 1, cache_write: 4}
  claude-opus-4-8: {input: 5, output: 25, cache_read: 1, cache_write: 6}
  gpt-6.1-terra: {input: 2, output: 10, cache_read: 1, cache_write: 2}`,
	resource: `limits:
  - {name: read, size: 1000000000/min, unit: input_tokens}
  - {name: written, size: 1000000000/min, unit: output_tokens}`,
	others: `  another:
    upstream: http://127.0.0.1:9`,
}

// model is what a model costs, in millionths of a dollar per token, and what it is counted as: some share a limit.
type model struct {
	counted                                string
	input, output, cacheRead, cacheWritten int64
}

var models = map[string]model{
	"claude-sonnet-5-5": {"sonnet-5-5", 3, 15, 1, 4},
	"claude-opus-4-8":   {"opus-4", 5, 25, 1, 6},
	"gpt-6.1-terra":     {"gpt-6.1-terra", 2, 10, 1, 2},
}

// audit compares the gate's books with the provider's, after all is over: the same requests, the same tokens of every
// model, and what they cost. Unread is how many requests the provider did not understand, and did not count.
func audit(r *rig, unread int64) {
	r.Helper()
	stats, caller, status := r.stats(), r.caller(), r.status()
	came := stats.Arrived + unread
	if r.client == octokit { // a list of models takes no turn
		came += stats.Free
	}
	if n := caller.FirstSends + caller.Retries; n != came || status.Sent != came {
		r.Errorf("the gate has counted %d sends, its status %d, and %d arrived", n, status.Sent, came)
	}
	if status.InFlight != 0 || stats.InFlight != 0 {
		r.Errorf("%d are in flight at the gate, %d at the provider", status.InFlight, stats.InFlight)
	}
	if len(stats.Ledger) == 0 && r.client != octokit {
		r.Error("the provider's ledger is empty")
	}
	micros := int64(0)
	for name, used := range stats.Ledger {
		m := models[name]
		got := caller.Models[m.counted].Units
		want := used.InputTokens + used.CacheWriteTokens
		if r.client == openai { // it counts what it reads from its cache
			want += used.CacheReadTokens
		}
		if got["input_tokens"] != want || got["output_tokens"] != used.OutputTokens {
			r.Errorf("%s: the gate has counted %v, the provider %+v", name, got, used)
		}
		micros += used.InputTokens*m.input + used.OutputTokens*m.output + used.CacheReadTokens*m.cacheRead + used.CacheWriteTokens*m.cacheWritten
	}
	if got := int64(math.Round(caller.USD * 1e6)); got != micros {
		r.Errorf("the gate has counted %d millionths of a dollar, the provider's ledger is worth %d", got, micros)
	}
}
