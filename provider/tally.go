package provider

import (
	"math"
	"strconv"

	"github.com/sluicehq/sluice/store"
)

// tally is what one usage object states. Unstated fields are negative.
//
// All common forms are read in the same way for every provider, because providers adopt each other's forms. The
// forms differ in which counts include others; the names tell them apart.
type tally struct {
	in, out, total int64
	// In addition to in, as Anthropic and Bedrock count.
	read, write, long int64
	// Included in in, as OpenAI and Gemini count.
	cached, written int64
	// In addition to in and out, as Gemini counts. out includes reasoned tokens for most providers, but not all.
	tools, thoughts, reasoned int64
	// What Cohere bills. It counts where nothing else is stated.
	billedIn, billedOut, searches int64
	micros                        int64
	// Sums over the rounds of one call, where each round is stated separately.
	rounds roundTally
}

type roundTally struct{ n, in, out, read, write int64 }

var noTally = tally{
	in: -1, out: -1, total: -1, read: -1, write: -1, long: -1, cached: -1, written: -1,
	tools: -1, thoughts: -1, reasoned: -1, billedIn: -1, billedOut: -1, searches: -1, micros: -1, rounds: roundTally{},
}

// note records a field of a usage object. parent is the nested object that the field is in, or empty.
func (t *tally) note(parent, field string, s *scanner) {
	if field == "cost" && parent == "" {
		if usd, err := strconv.ParseFloat(string(s.value()), 64); err == nil && !s.quoted && s.size < longestTime && usd >= 0 && usd < 1e6 {
			t.micros = int64(math.Round(usd * 1e6))
		}
		return
	}
	n, ok := s.count()
	if !ok {
		return
	}
	switch parent {
	case "":
		t.plain(field, n)
	case "tokens": // Cohere's, next to the billed units
		t.plain(field, n)
	case "billed_units":
		t.billed(field, n)
	case "iterations":
		t.round(field, n)
	default:
		t.detail(field, n)
	}
}

func (t *tally) plain(field string, n int64) {
	switch field {
	case "input_tokens", "prompt_tokens", "promptTokenCount", "inputTokens":
		t.in = n
	case "output_tokens", "completion_tokens", "candidatesTokenCount", "responseTokenCount", "outputTokens":
		t.out = n
	case "total_tokens", "totalTokenCount", "totalTokens":
		t.total = n
	case "cache_read_input_tokens", "cacheReadInputTokens":
		t.read = n
	case "cache_creation_input_tokens", "cacheWriteInputTokens":
		t.write = n
	case "cachedContentTokenCount", "prompt_cache_hit_tokens", "cached_tokens":
		t.cached = n
	case "toolUsePromptTokenCount":
		t.tools = n
	case "thoughtsTokenCount":
		t.thoughts = n
	}
}

func (t *tally) billed(field string, n int64) {
	switch field {
	case "input_tokens":
		t.billedIn = n
	case "output_tokens":
		t.billedOut = n
	case "search_units":
		t.searches = n
	}
}

func (t *tally) detail(field string, n int64) {
	switch field {
	case "cached_tokens":
		t.cached = n
	case "cache_write_tokens", "cache_creation_tokens":
		t.written = n
	case "ephemeral_1h_input_tokens":
		t.long = n
	case "reasoning_tokens":
		t.reasoned = n
	}
}

func (t *tally) round(field string, n int64) {
	switch field {
	case "input_tokens":
		t.rounds.n++
		t.rounds.in += n
	case "output_tokens":
		t.rounds.out += n
	case "cache_read_input_tokens":
		t.rounds.read += n
	case "cache_creation_input_tokens":
		t.rounds.write += n
	}
}

// into adds the stated counts to a usage. Counts only grow during a response, so the last one wins. But a 0 may
// stand for a missing value, and never replaces a larger count.
func (t *tally) into(u *Usage) {
	if r := &t.rounds; r.n > 1 { // the other fields are about the last round alone
		t.in, t.out = max(t.in, r.in), max(t.out, r.out)
		t.read, t.write = max(t.read, r.read), max(t.write, r.write)
	}
	if t.in < 0 && t.out < 0 {
		t.in, t.out = t.billedIn, t.billedOut
	}
	u.Searches = max(u.Searches, t.searches)
	t.input(u)
	if t.out > 0 {
		u.Output = t.output()
	}
	if t.in < 0 && t.out < 0 && t.total > 0 { // some embeddings
		u.Input = t.total
	}
	if t.micros > 0 {
		u.Micros = t.micros
	}
	if t.in >= 0 || t.out >= 0 || t.total >= 0 || t.searches >= 0 {
		u.Known = true
	}
	u.clamp()
}

func (t *tally) input(u *Usage) {
	if t.read > 0 {
		u.CacheRead = t.read
	}
	if t.write > 0 {
		u.CacheLong = min(max(t.long, 0), t.write)
		u.CacheWrite = t.write - u.CacheLong
	}
	if t.in <= 0 {
		return
	}
	u.Input = t.in + max(t.tools, 0)
	if t.cached > 0 && t.read < 0 {
		u.CacheRead = min(t.cached, u.Input)
		u.Input -= u.CacheRead
	}
	if t.written > 0 && t.write < 0 {
		u.CacheWrite = min(t.written, u.Input)
		u.Input -= u.CacheWrite
	}
}

// output returns all produced tokens. The total shows whether out includes reasoned tokens.
func (t *tally) output() int64 {
	out := t.out + max(t.thoughts, 0)
	if t.reasoned > 0 && t.in >= 0 && t.in+t.out+t.reasoned == t.total {
		out += t.reasoned
	}
	return out
}

// clamp keeps counts within the range of amounts.
func (u *Usage) clamp() {
	for _, n := range [...]*int64{&u.Input, &u.CacheRead, &u.CacheWrite, &u.CacheLong, &u.Output, &u.Searches} {
		*n = min(max(*n, 0), store.MaxAmount)
	}
}
