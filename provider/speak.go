package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sluicehq/sluice"
)

// Units of language models. A provider's preset says which of them the provider limits. All of them are stated, so
// that a user's own limits can count any of them.
const (
	unitInput  = "input_tokens"
	unitOutput = sluice.OutputTokens
	unitTokens = "tokens"

	unitSearches = "search_units"
)

// Usage returns a reader for the response to a call.
func (v *vendor) Usage(asked *ParsedRequest, contentType string) UsageReader {
	if !v.models || !asked.Tokens {
		return nil
	}
	return newUsageReader(v, asked.Model, contentType)
}

// Spent returns what the usage takes from limits.
func (v *vendor) Spent(u *Usage) []sluice.Amount {
	if !v.models {
		return nil
	}
	in := u.Input + u.CacheWrite + u.CacheLong
	if !v.free || countsReads(u.Model) {
		in += u.CacheRead
	}
	list := []sluice.Amount{{Unit: unitInput, N: in}, {Unit: unitOutput, N: u.Output}, {Unit: unitTokens, N: in + u.Output}}
	if u.Searches > 0 {
		list = append(list, sluice.Amount{Unit: unitSearches, N: u.Searches})
	}
	return list
}

// countsReads reports whether model is one of the old models for which Anthropic counts tokens read from a cache.
func countsReads(model string) bool {
	return strings.Contains(model, "claude-3-haiku") || strings.Contains(model, "claude-3-5-haiku")
}

// Rename returns the path and body of a call with another model.
func (v *vendor) Rename(c *Call, model string) (path string, body []byte, ok bool) {
	if !v.models || plainModel(model) == "" || strings.HasPrefix(fieldOf(c.Header, "authorization"), "AWS4-") { // the signature covers the model
		return "", nil, false
	}
	path, body = c.Path, c.Body
	if at, there := inPath(path); there {
		path = path[:at.from] + escaped(model) + path[at.to:]
		ok = true
	}
	spans := values(body, "model")
	if len(spans) == 0 {
		return path, body, ok && formOf(path) != nil && !strings.HasSuffix(path, ":batchEmbedContents") // which has the model inside
	}
	name := model
	for _, p := range spans {
		if body[p.from] != '"' {
			return "", nil, false
		}
		if bytes.HasPrefix(body[p.from:p.to], []byte(`"models/`)) {
			name = "models/" + model
		}
	}
	quoted, err := json.Marshal(name)
	if err != nil {
		return "", nil, false
	}
	return path, replace(body, spans, quoted), true
}

// AskUsage changes the body of a call so that its response reports usage.
func (v *vendor) AskUsage(body []byte) []byte {
	const field, value = `"stream_options":`, `{"include_usage":true}`
	if skip(body, blank(body, 0)) < 0 {
		return body
	}
	if spans := values(body, "stream_options"); len(spans) > 0 {
		last := spans[len(spans)-1]
		return replace(body, spans, withUsage(body[last.from:last.to]))
	}
	i := blank(body, 0)
	if body[i] != '{' {
		return body
	}
	with := field + value
	if j := blank(body, i+1); j < len(body) && body[j] != '}' {
		with += ","
	}
	return replace(body, []span{{i + 1, i + 1}}, []byte(with))
}

// withUsage adds include_usage to existing options.
func withUsage(options []byte) []byte {
	var all map[string]json.RawMessage
	if json.Unmarshal(options, &all) != nil || all == nil {
		all = map[string]json.RawMessage{}
	}
	all["include_usage"] = json.RawMessage("true")
	out, err := json.Marshal(all)
	if err != nil {
		return options
	}
	return out
}

// OnlyUsage reports whether a piece of a stream contains only usage.
func (v *vendor) OnlyUsage(data []byte) bool {
	usage, choices := values(data, "usage"), values(data, "choices")
	if len(usage) != 1 || len(choices) != 1 || data[usage[0].from] != '{' {
		return false
	}
	list := data[choices[0].from:choices[0].to]
	return list[0] == '[' && blank(list, 1) == len(list)-1
}

// escaped encodes a name as one segment of a path.
func escaped(name string) string {
	var b strings.Builder
	for i := range len(name) {
		c := name[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~@:$&+=", c) >= 0 {
			b.WriteByte(c)
			continue
		}
		fmt.Fprintf(&b, "%%%02X", c)
	}
	return b.String()
}
