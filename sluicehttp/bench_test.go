package sluicehttp

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
)

// canned is a base transport that answers at once, so that only the overhead is measured.
type canned struct {
	header http.Header
	body   string
}

func (c *canned) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return &http.Response{
		StatusCode: 200, Header: c.header, Body: io.NopCloser(strings.NewReader(c.body)), ContentLength: int64(len(c.body)), Request: r,
	}, nil
}

func benchmark(b *testing.B, t http.RoundTripper, body string) {
	b.ReportAllocs()
	buf := make([]byte, 32<<10)
	for b.Loop() {
		r, _ := http.NewRequestWithContext(b.Context(), http.MethodPost, "http://host/v1/chat/completions", strings.NewReader(body))
		r.Header["Content-Type"] = []string{"application/json"}
		resp, err := t.RoundTrip(r)
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = resp.Body.Read(buf)
		}
		resp.Body.Close()
	}
}

const benchCall = `{"model":"gpt-5-mini","max_completion_tokens":100,"messages":[{"role":"user","content":"What is the capital of France?"}]}`

func BenchmarkBaseAlone(b *testing.B) { benchmark(b, &canned{body: "ok"}, benchCall) }

func BenchmarkGeneric(b *testing.B) {
	x := newRig(b)
	x.Dialect, x.Base, x.Done = provider.Generic{}, &canned{header: http.Header{"Content-Type": {"application/json"}, "Date": {"Sat, 01 Jan 2000 00:00:03 GMT"}}, body: `{"ok":true}`}, nil
	benchmark(b, x.Transport, benchCall)
}

func BenchmarkOpenAI(b *testing.B) {
	dialect, ok := provider.Lookup("openai")
	if !ok {
		b.Fatal("there is no such dialect")
	}
	limits := []sluice.Limit{
		{Name: "requests", Kind: sluice.Bucket, Size: 1 << 38, Window: hour},
		{Name: "tokens", Kind: sluice.Bucket, Size: 1 << 38, Window: hour, Unit: "tokens"},
	}
	x := newRig(b, limits...)
	x.Dialect, x.Prices, x.Done = dialect, tenMicros, nil
	x.Base = &canned{
		header: http.Header{"Content-Type": {"application/json"}, "Date": {"Sat, 01 Jan 2000 00:00:03 GMT"}, "X-Ratelimit-Limit-Requests": {"99999999999"}, "X-Ratelimit-Remaining-Requests": {"99999999998"}},
		body:   `{"id":"x","model":"gpt-5-mini","choices":[{"message":{"role":"assistant","content":"Paris."}}],"usage":{"prompt_tokens":14,"completion_tokens":3,"total_tokens":17}}`,
	}
	benchmark(b, x.Transport, benchCall)
}

func BenchmarkFilter(b *testing.B) {
	f := &filter{only: func(data []byte) bool { return bytes.Contains(data, []byte(`"usage":{`)) }}
	chunk := []byte("data: {\"choices\":[{\"delta\":{\"content\":\" word\"}}]}\n\n")
	p := make([]byte, 4096)
	b.SetBytes(int64(len(chunk)))
	b.ReportAllocs()
	for b.Loop() {
		f.write(chunk)
		f.read(p)
	}
}
