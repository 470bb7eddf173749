package provider

import (
	"strings"
	"testing"
)

func BenchmarkAsk(b *testing.B) {
	body := `{"model":"claude-opus-5-5","max_tokens":64000,"stream":true,"messages":[` + strings.Repeat(`{"role":"user","content":"so it goes, \"on\" and on, for a hundred bytes or so, as messages of people do, and then it ends"},`, 1000) + `{}]}`
	c := call("POST", "/v1/messages", body)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		anthropic.Ask(c)
	}
}

func BenchmarkObserve(b *testing.B) {
	h := with(openAIHeaders, "Content-Type: application/json", "Content-Length: 900", "Connection: keep-alive", "Server: cloudflare", "Cf-Ray: 8", "Cf-Cache-Status: DYNAMIC",
		"Openai-Organization: o", "Openai-Processing-Ms: 900", "Openai-Version: 2020-10-01", "X-Request-Id: r", "Strict-Transport-Security: max-age=1", "Alt-Svc: h3", "Vary: Origin")
	b.ReportAllocs()
	for b.Loop() {
		openAI.Observe(&Response{Status: 200, Header: h}, made)
	}
}

func BenchmarkUsageOfAStream(b *testing.B) {
	body := sample(b, "anthropic.sse")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := newUsageReader(&anthropic, "", "text/event-stream")
		r.Write(body)
	}
}

func BenchmarkUsageOfJSON(b *testing.B) {
	body := sample(b, "anthropic.json")
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		r := newUsageReader(&anthropic, "", "application/json")
		r.Write(body)
	}
}
