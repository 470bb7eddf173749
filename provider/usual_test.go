package provider

import "testing"

// A name that a caller states for a request and for its response is the same part of the API, and stays itself.
func TestUsualPart(t *testing.T) {
	for _, c := range []struct{ dialect, model, part string }{
		{"anthropic", "claude-opus-4-5", "opus-4"},
		{"anthropic", "opus-4", "opus-4"},
		{"openai", "gpt-4o-2024-08-06", "gpt-4o"},
		{"slack", "chat.postMessage", "chat.postMessage"}, // its paths name parts, its models none
		{"github", "code_search", "code_search"},
		{"generic", "big", "big"},
	} {
		d, ok := Lookup(c.dialect)
		if !ok {
			t.Fatal(c.dialect)
		}
		if part, _ := Usual(d, c.model); part != c.part {
			t.Errorf("%s: %s is %q, want %q", c.dialect, c.model, part, c.part)
		}
		if part := PartOf(d, c.model, &Observation{Limits: []Limit{{Resource: "other"}}}); part != c.part {
			t.Errorf("%s: a response for %s is about %q, want %q", c.dialect, c.model, part, c.part)
		}
	}
}
