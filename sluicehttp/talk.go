package sluicehttp

import (
	"encoding/json"
)

// talk is a hash of what the requests of a conversation have in common.
type talk struct{ sum uint64 }

func newTalk() talk { return talk{14695981039346656037} }

// add adds a text, by FNV-1a.
func (t *talk) add(text string) {
	for i := range len(text) {
		t.sum = (t.sum ^ uint64(text[i])) * 1099511628211
	}
	t.sum = (t.sum ^ 0xff) * 1099511628211
}

// mix spreads the bits of a hash, as SplitMix64 does.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// talkOf returns a hash of the system prompt and the tools in a call's body: the start of what a provider's prompt
// cache holds. It is 0 if there are none. It looks for the fields of all providers, because compatible APIs mix them.
func talkOf(body []byte) uint64 {
	var call struct {
		System   json.RawMessage `json:"system"`            // Anthropic
		Gemini   json.RawMessage `json:"systemInstruction"` // Gemini
		Vertex   json.RawMessage `json:"system_instruction"`
		Says     json.RawMessage `json:"instructions"` // OpenAI's Responses
		Tools    json.RawMessage `json:"tools"`
		Messages json.RawMessage `json:"messages"`
		Input    json.RawMessage `json:"input"`
	}
	if json.Unmarshal(body, &call) != nil {
		return 0
	}
	h, any := newTalk(), false
	for _, part := range []json.RawMessage{call.System, call.Gemini, call.Vertex, call.Says, call.Tools, leading(call.Messages), leading(call.Input)} {
		any = any || len(part) > 0
		h.add(string(part))
	}
	if !any {
		return 0
	}
	return h.sum | 1 // never 0
}

// leading returns the content of the system and developer messages at the start of a list.
func leading(list json.RawMessage) (all json.RawMessage) {
	var messages []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if len(list) == 0 || json.Unmarshal(list, &messages) != nil {
		return nil
	}
	for _, m := range messages {
		if m.Role != "system" && m.Role != "developer" {
			break
		}
		all = append(append(all, m.Content...), 0)
	}
	return all
}
