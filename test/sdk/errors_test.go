//go:build linux || darwin

package sdk_test

import "testing"

// hasty is a gate that pauses only shortly, and sends a request no more often than it is told.
func hasty(attempts string) setup {
	return setup{resource: "backoff: {start: 1s, factor: 1, cap: 1s}", file: "retry: {attempts: " + attempts + ", base: 10ms, cap: 10ms}\nretry_windows: {}"}
}

// TestErrorsPass: clients see the provider's errors as they are: those that are about everybody, and those within an
// answer that began well.
func TestErrorsPass(t *testing.T) {
	cases := map[client][]string{
		anthropic: {"early", "inside", "overloaded"}, openai: {"early", "inside", "insideResponse", "overloaded"}, octokit: {"missing", "broken"},
	}
	each(t, func(t *testing.T, c client) {
		r := begin(t, c, hasty("1"))
		without := r.direct(cases[c]...)
		r.forget()
		with := r.gated(cases[c]...)
		for _, name := range cases[c] {
			if with[name].line != without[name].line {
				t.Errorf("%s: through the gate it is\n%s\nand without it\n%s", name, with[name].line, without[name].line)
			}
		}
		if s, got := r.stats(), r.caller(); s.Arrived != int64(len(cases[c])) || got.FirstSends != s.Arrived || got.Retries != 0 {
			t.Errorf("the provider saw %+v, the gate counted %+v", s, got)
		}
	})
}

// TestRetriesDoNotMultiply: a client sends three times before it gives up. What it has sent before the gate sends once, and
// counts as what it is.
func TestRetriesDoNotMultiply(t *testing.T) {
	t.Parallel()
	for _, c := range []client{anthropic, openai} {
		t.Run(c.provider, func(t *testing.T) {
			t.Parallel()
			r := begin(t, c, hasty("2"))
			class := failure(t, r.gated("stubborn"), "stubborn").Class
			if class != "InternalServerError" {
				t.Errorf("the client threw %s", class)
			}
			if s, got := r.stats(), r.caller(); s.Failed != 3 || got.FirstSends != 1 || got.Retries != 2 {
				t.Errorf("of an error that is not safe to repeat the provider saw %+v, the gate counted %+v", s, got)
			}
			r.forget()
			failure(t, r.gated("stubbornOverload"), "stubbornOverload")
			// The gate sends the first one twice, and the two that the client repeats once.
			if s, got := r.stats(), r.caller(); s.Failed != 4 || got.FirstSends != 2 || got.Retries != 5 {
				t.Errorf("of an overload the provider saw %+v, the gate counted %+v", s, got)
			}
		})
	}
}

// TestAbort: of a request that its client gives up in the middle nothing is left, and the next one goes through.
func TestAbort(t *testing.T) {
	each(t, func(t *testing.T, c client) {
		r := begin(t, c, setup{resource: "abort: free\nlimits:\n  - {name: one, concurrency: 1}", others: priced.others})
		first := plain[c.script][0]
		for _, way := range []func(...string) results{r.gated, r.run} {
			all := way("abort", first, "abort", first)
			got := value[struct{ Pieces, Aborted bool }](t, all, "abort")
			if !got.Pieces || !got.Aborted {
				t.Errorf("the client was not aborted in the middle: %s", all["abort"].line)
			}
			if e := all[first].Error; e != nil {
				t.Errorf("the next request failed: %+v", e)
			}
			r.until("no request is in flight", func() bool { return r.status().InFlight == 0 && r.stats().InFlight == 0 })
		}
		if s := r.stats(); s.Accepted != 8 || s.Aborted != 4 {
			t.Errorf("the provider saw %+v", s)
		}
	})
}
