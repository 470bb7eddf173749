//go:build linux || darwin

package sdk_test

import (
	"maps"
	"regexp"
	"slices"
	"testing"
)

// plain are cases that do not change how the next one fares: answers of all kinds, and errors that are
// the request's own.
var plain = map[string][]string{
	anthropic.script: {
		"create", "system", "cut", "events", "stream", "tool", "toolStream", "toolResult", "cached", "beta", "count", "models", "zipped", "zippedStream",
		"raw", "invalid", "missing", "broken",
	},
	openai.script: {
		"create", "cut", "chunks", "chunksUsage", "stream", "tool", "toolChunks", "response", "responseEvents", "responseStream", "responseTool",
		"responseToolEvents", "cached", "models", "zipped", "raw", "invalid", "missing", "broken",
	},
	octokit.script: {
		"request", "get", "user", "list", "search", "create", "graphql", "limit", "unchanged", "missing", "invalid", "broken",
	},
}

// thrown are the classes of errors that clients throw.
var thrown = map[string]map[string]string{
	anthropic.script: {"invalid": "BadRequestError", "missing": "NotFoundError", "broken": "InternalServerError"},
	openai.script:    {"invalid": "BadRequestError", "missing": "NotFoundError", "broken": "InternalServerError"},
	octokit.script:   {"invalid": "RequestError", "missing": "RequestError", "broken": "RequestError"},
}

// unread is how many of the plain cases the provider refuses before it counts them.
var unread = map[string]int64{anthropic.script: 1, openai.script: 1}

// emptyUsage is what the chunks of a chat have when somebody asks what they use, and not otherwise. docs/sdks.md
// tells of it.
var emptyUsage = regexp.MustCompile(`,"usage":null`)

// chats are the cases of a chat that is streamed to a client which does not ask for that.
var chats = []string{"chunks", "toolChunks", "stream"}

// TestServe: through sluice serve clients see what they see without it.
func TestServe(t *testing.T) {
	each(t, func(t *testing.T, c client) {
		r := begin(t, c, priced)
		without := r.direct(plain[c.script]...)
		r.forget()
		compare(t, c, without, r.gated(plain[c.script]...))
		audit(r, unread[c.script])
	})
}

// TestRun: and so they do through sluice run.
func TestRun(t *testing.T) {
	each(t, func(t *testing.T, c client) {
		s := priced
		s.noServe = true
		r := begin(t, c, s)
		without := r.direct(plain[c.script]...)
		r.forget()
		compare(t, c, without, r.run(plain[c.script]...))
		audit(r, unread[c.script])
	})
}

// TestRunBefore: where a variable says already where to send, sluice run sends there.
func TestRunBefore(t *testing.T) {
	each(t, func(t *testing.T, c client) {
		r := begin(t, c, setup{noServe: true, others: priced.others})
		elsewhere := begin(t, c, setup{noServe: true})
		args := []string{"run", "--config", r.config, "--agent", "sdk", "--quiet", "--", "node", c.script, plain[c.script][0]}
		got := r.results(output(t, r.env(elsewhere.mock), nodeDir, sluiceBinary, args...))
		compare(t, c, r.direct(plain[c.script][0]), got)
		if n := elsewhere.stats().Accepted; n != 1 {
			t.Errorf("%d requests came where the variable pointed, not 1", n)
		}
		if c := r.caller(); c.FirstSends != 1 {
			t.Errorf("the gate counted %d sends, not 1", c.FirstSends)
		}
	})
}

// TestPages: Octokit gets all pages of a list, and each of them passes the gate.
func TestPages(t *testing.T) {
	t.Parallel()
	r := begin(t, octokit, setup{})
	compare(t, octokit, r.direct("pages"), r.gated("pages"))
	if n := r.caller().FirstSends; n != 3 {
		t.Errorf("%d pages passed the gate, not 3", n)
	}
}

// each runs a test for every client.
func each(t *testing.T, test func(t *testing.T, c client)) {
	t.Parallel()
	for _, c := range []client{anthropic, openai, octokit} {
		t.Run(c.provider, func(t *testing.T) {
			t.Parallel()
			test(t, c)
		})
	}
}

// compare tells what a client has seen through the gate and not without it.
func compare(t *testing.T, c client, without, with results) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(without)) {
		got := with[name].line
		if c == openai && slices.Contains(chats, name) {
			got = emptyUsage.ReplaceAllString(got, "")
		}
		if want := without[name].line; got != want {
			t.Errorf("%s: through the gate it is\n%s\nand without it\n%s", name, got, want)
		}
		class := ""
		if e := with[name].Error; e != nil {
			class = e.Class
		}
		if want := thrown[c.script][name]; class != want {
			t.Errorf("%s: the client threw %q, not %q: %s", name, class, want, got)
		}
	}
	if len(with) != len(without) {
		t.Errorf("%d cases came back, not %d", len(with), len(without))
	}
}
