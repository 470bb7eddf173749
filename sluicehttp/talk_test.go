package sluicehttp

import "testing"

func TestConversationsAreToldApart(t *testing.T) {
	same := [][2]string{
		{`{"system":"a","tools":[],"messages":[{"role":"user","content":"1"}]}`, `{"messages":[{"role":"user","content":"2"},{"role":"assistant","content":"x"}],"tools":[],"system":"a"}`},
		{`{"messages":[{"role":"system","content":"a"},{"role":"user","content":"1"}]}`, `{"messages":[{"role":"system","content":"a"},{"role":"user","content":"2"}]}`},
		{`{"instructions":"a","input":"1"}`, `{"instructions":"a","input":[{"role":"user","content":"2"}]}`},
		{`{"systemInstruction":{"parts":[{"text":"a"}]},"contents":[]}`, `{"systemInstruction":{"parts":[{"text":"a"}]},"contents":[{}]}`},
	}
	for _, s := range same {
		if a, b := talkOf([]byte(s[0])), talkOf([]byte(s[1])); a == 0 || a != b {
			t.Errorf("%s and %s: %x %x", s[0], s[1], a, b)
		}
	}
	seen := map[uint64]string{}
	for _, body := range []string{
		`{"system":"a"}`, `{"system":"b"}`, `{"tools":[1]}`, `{"system":"a","tools":[1]}`, `{"instructions":"a"}`,
		`{"messages":[{"role":"developer","content":"a"}]}`, `{"input":[{"role":"system","content":"b"}]}`,
	} {
		h := talkOf([]byte(body))
		if was, twice := seen[h]; twice || h == 0 {
			t.Errorf("%s is as %s", body, was)
		}
		seen[h] = body
	}
	for _, body := range []string{``, `[]`, `{`, `{"messages":[{"role":"user","content":"1"}]}`, `{"messages":7,"input":"x"}`} {
		if h := talkOf([]byte(body)); h != 0 {
			t.Errorf("%s has a conversation: %x", body, h)
		}
	}
}
