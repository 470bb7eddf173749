package proxy_test

import (
	"bytes"
	"compress/gzip"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
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

// A body whose model is in its first 4 MiB was sent as it was, although a second model behind that decides at the provider.
func TestASecondModelBehindALongBodyIsRefused(t *testing.T) {
	var whole atomic.Int64
	r := begin(t, nil, func(w http.ResponseWriter, q *http.Request) {
		if _, err := io.ReadAll(q.Body); err == nil {
			whole.Add(1)
		}
		hello(w, q)
	}, func(o *proxy.Options) {
		res := o.Resources["api"]
		res.Dialect, _ = provider.Lookup("openai")
		o.Resources["api"] = res
	})
	random := make([]byte, provider.MaxCall+provider.MaxCall/8) // so that it is long when it is compressed, too
	_, _ = rand.Read(random)
	text := base64.StdEncoding.EncodeToString(random)
	zipped := func(text string) string {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		_, _ = io.WriteString(z, text)
		_ = z.Close()
		return b.String()
	}
	long := func(filler, end string) string { return `{"model":"m","messages":[{"content":"` + filler + `"}]` + end }
	short := strings.Repeat("hi there ", provider.MaxCall/8)
	deep := `,"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for _, c := range []struct {
		name, body string
		zipped     bool
		status     int
	}{
		{"one model", long(text, "}"), false, 200},
		{"the same again", long(text, `,"model":"m"}`), false, 200},
		{"of an object inside", long(text, `,"metadata":{"model":"n"}}`), false, 200},
		{"two models", long(text, `,"model":"n"}`), false, 400},
		{"two models, other letters", long(text, `,"M\u006fdel":"n" }`), false, 400},
		{"two documents", long(text, `}{"model":"n"}`), false, 400},
		{"too deep to tell", long(text, deep+`,"model":"n"}`), false, 400},
		{"two models, and long after that", long(text, `,"model":"n","user":"`+text+`"}`), false, 400},
		{"one model, compressed", zipped(long(text, "}")), true, 200},
		{"two models, compressed", zipped(long(text, `,"model":"n"}`)), true, 400},
		{"two models, in two parts", zipped(long(text, "")) + zipped(`,"model":"n"}`), true, 400},
		{"two models, well compressed", zipped(long(short, `,"model":"n"}`)), true, 400},
		{"one model, well compressed", zipped(long(short, "}")), true, 200},
		{"more than can be looked through", zipped(long(strings.Repeat(short, 16), "}")), true, 400},
	} {
		for _, chunked := range []bool{false, true} {
			before := whole.Load()
			body, header := io.Reader(strings.NewReader(c.body)), []string{"Content-Type", "application/json"}
			if chunked {
				body = io.MultiReader(body)
			}
			if c.zipped {
				header = append(header, "Content-Encoding", "gzip")
			}
			resp, text := r.send(http.MethodPost, "/@a/api/v1/chat/completions", body, header...)
			if resp.StatusCode != c.status {
				t.Errorf("%s, chunked %v: %d %s", c.name, chunked, resp.StatusCode, text)
			}
			if c.status == http.StatusBadRequest && (!strings.Contains(text, `"type":"invalid_request_error"`) || !strings.Contains(text, "model")) {
				t.Errorf("%s, chunked %v: %s", c.name, chunked, text)
			}
			if sent := whole.Load() - before; sent != int64(map[int]int{200: 1, 400: 0}[c.status]) {
				t.Errorf("%s, chunked %v: it arrived %d times", c.name, chunked, sent)
			}
		}
	}
}

// The rest of a body whose beginning was refused was taken for the next request of its connection.
func TestTheRestOfARefusedBodyIsNoRequest(t *testing.T) {
	var smuggled atomic.Bool
	r := begin(t, nil, func(w http.ResponseWriter, q *http.Request) {
		smuggled.Store(smuggled.Load() || strings.Contains(q.URL.Path, "smuggled"))
		_, _ = io.Copy(io.Discard, q.Body)
		hello(w, q)
	}, func(o *proxy.Options) {
		res := o.Resources["api"]
		res.Dialect, _ = provider.Lookup("openai")
		o.Resources["api"] = res
	})
	body := `{"model":"m","messages":[{"content":"` + strings.Repeat("hi there ", provider.MaxCall/8) + `"}],"model":"n"` +
		strings.Repeat("A", 600<<10) + " /@a/api/v1/smuggled HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
	conn, err := net.Dial("tcp", r.proxy.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	go func() {
		_, _ = fmt.Fprintf(conn, "POST /@a/api/v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	}()
	answers, _ := io.ReadAll(conn) // a reset is no failure: the server need not read the rest
	if len(answers) > 0 && !strings.HasPrefix(string(answers), "HTTP/1.1 400 ") || strings.Count(string(answers), "HTTP/1.1 ") > 1 || smuggled.Load() {
		t.Errorf("smuggled %v, and %s", smuggled.Load(), answers)
	}
}
