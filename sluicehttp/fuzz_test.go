package sluicehttp

import (
	"encoding/json"
	"testing"
)

// FuzzTalk reads any body as a call. What is no JSON belongs to no conversation, and the user's messages do not change the conversation.
func FuzzTalk(f *testing.F) {
	for _, body := range []string{
		`{"system":"a","messages":[{"role":"user","content":"b"}]}`, `{"messages":[{"role":"system","content":"a"},{"role":"user","content":"b"}]}`, `{"instructions":"a","input":"b","tools":[]}`,
		`{"systemInstruction":{"parts":[]},"contents":[]}`, `{"messages":{"role":1}}`, `[]`, `{`, ``,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		h := talkOf(body)
		if h != 0 && !json.Valid(body) {
			t.Errorf("%q has a conversation", body)
		}
		if h != talkOf(body) {
			t.Errorf("%q has two", body)
		}
	})
}
