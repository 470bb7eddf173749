package proxy_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
)

// A call whose model could not be read was charged to a meter of its own, and so passed although its model's was full.
func TestACallWhoseModelIsNotReadGetsNoRoomOfItsOwn(t *testing.T) {
	limits := []sluice.Limit{{Name: "requests", Kind: sluice.Rolling, Size: 2, Window: time.Hour, Per: []sluice.Scope{sluice.PerModel}}}
	var arrived [][]byte
	r := begin(t, limits, func(w http.ResponseWriter, q *http.Request) {
		b, _ := io.ReadAll(q.Body)
		arrived = append(arrived, b)
		hello(w, q)
	}, func(o *proxy.Options) {
		res := o.Resources["api"]
		res.Dialect, _ = provider.Lookup("openai")
		o.Resources["api"] = res
	})
	const chat = "/@a/api/v1/chat/completions"
	named := func(model string) string { return `{"messages":[],"model":"` + model + `"}` }
	long := func(model string) string {
		return `{"messages":[{"content":"` + strings.Repeat("hi there ", provider.MaxCall/8) + `"}],"model":"` + model + `","user":"u"}`
	}
	zipped := func(text string) string {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	deep := `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `,"model":"m"}`
	for range 2 {
		r.send(http.MethodPost, chat, strings.NewReader(named("m")))
	}
	for _, c := range []struct {
		name, path, body string
		status           int
		header           []string
	}{
		{"full", chat, named("m"), 429, nil},
		{"long", chat, long("m"), 429, nil},
		{"long and compressed", chat, zipped(long("m")), 429, []string{"Content-Encoding", "gzip"}},
		{"deep", chat, deep, 400, nil},
		{"deep and compressed", chat, zipped(deep), 400, []string{"Content-Encoding", "gzip"}},
		{"deep, elsewhere", "/@a/api/v1/audio/speech", deep, 400, []string{"Content-Type", "application/json"}},
		{"two models", chat, `{"model":"other","model":"m"}`, 400, nil},
		{"other letters", chat, `{"Model":"m"}`, 429, nil},
		{"UTF-16", chat, "{\x00\"\x00m\x00o\x00d\x00e\x00l\x00\"\x00:\x00\"\x00m\x00\"\x00}\x00", 400, nil},
		{"another model", chat, long("n"), 200, nil},
		{"another model, compressed", chat, zipped(long("n")), 200, []string{"Content-Encoding", "gzip"}},
		{"an upload", "/@a/api/v1/audio/transcriptions", "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--x--\r\n", 200, []string{"Content-Type", "multipart/form-data; boundary=x"}},
		{"a batch", "/@a/api/v1/batches", deep, 200, []string{"Content-Type", "application/json"}},
		{"zstd, as Codex sends it", chat, "\x28\xb5\x2f\xfd\x04\x00", 200, []string{"Content-Encoding", "zstd"}},
	} {
		before := len(arrived)
		resp, text := r.send(http.MethodPost, c.path, strings.NewReader(c.body), c.header...)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, text)
		}
		if c.status == http.StatusBadRequest && (!strings.Contains(text, `"type":"invalid_request_error"`) || !strings.Contains(text, "model")) {
			t.Errorf("%s: %s", c.name, text)
		}
		if c.status == http.StatusOK && (len(arrived) != before+1 || string(arrived[before]) != c.body) {
			t.Errorf("%s: it did not arrive as it was", c.name)
		}
	}
}
