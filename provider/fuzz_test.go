package provider

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// FuzzObserve gives every dialect arbitrary responses. It must not panic, must stay within bounds, and must give the
// same result twice.
func FuzzObserve(f *testing.F) {
	f.Add(200, "RateLimit: \"a\";r=1;t=2\nRateLimit-Policy: \"a\";q=5;w=60", "")
	f.Add(429, "Retry-After: Sun, 15 Nov 2026 07:02:00 GMT\nDate: Sun, 15 Nov 2026 07:00:00 GMT\nretry-after-ms: 5", "rate limit")
	f.Add(429, "RateLimit: limit=100, remaining=50, reset=30\nAge: 5", "")
	f.Add(403, "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1794726060\nX-RateLimit-Resource: core", bodyPrimary)
	f.Add(200, "X-RateLimit-Resource: graphql\nX-RateLimit-Remaining: 0", bodyGraphQL)
	f.Add(200, "x-ratelimit-reset-tokens: 6m0s\nx-ratelimit-limit-req-minute: 5;w=9, 7;w=8", `{"errors":[{"type":1}]}`)
	f.Add(429, "Retry-After: 99999999999999999999\nretry-after-ms: 1e400\nX-RateLimit-Reset: 253402300799", `{"error":{"message":"try again in 1e400s"}}`)
	f.Add(429, "Retry-After: Fri, 31 Dec 9999 23:59:59 GMT\nDate: Mon, 01 Jan 0001 00:00:00 GMT", "retry in inf")
	f.Add(503, "Retry-After: 21600\nRateLimit: \"a\";r=0;t=21600", "")
	f.Fuzz(func(t *testing.T, status int, lines, body string) {
		h := map[string][]string{}
		for line := range strings.Lines(lines) {
			name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
			h[name] = append(h[name], strings.TrimSpace(value))
		}
		r := &Response{Status: status, Header: h, Body: []byte(body)}
		for _, name := range Names() {
			d, _ := Lookup(name)
			o := d.Observe(r, made)
			checkBounds(t, &o)
			if again := d.Observe(r, made); !reflect.DeepEqual(o, again) {
				t.Errorf("%s says %+v and then %+v", name, o, again)
			}
			preset, _ := Preset(name)
			o.Answer(preset.Limits)
		}
		_ = GitHub{}.Cost(body, lines)
	})
}

func checkBounds(t *testing.T, o *Observation) {
	t.Helper()
	if o.Verdict > store.VerdictError || o.RetryAfter < 0 || o.RetryAfter > max(retry.MaxHint, MaxReset) || o.Ignored < 0 {
		t.Errorf("out of bounds: %+v", o)
	}
	if len(o.Cause) > store.MaxName || len(o.Limits) > store.MaxLimits || o.Scope&^store.Shared != 0 {
		t.Errorf("out of bounds: %+v", o)
	}
	for _, l := range o.Limits {
		if l.Size == 0 || l.Size < -1 || l.Size > store.MaxAmount || l.Remaining < -1 || l.Remaining > store.MaxAmount {
			t.Errorf("amounts out of bounds: %+v", l)
		}
		if l.ResetIn < 0 && l.ResetIn != store.NotStated || l.ResetIn > MaxReset || l.Window < 0 || l.Window > store.MaxWindow {
			t.Errorf("times out of bounds: %+v", l)
		}
		if l.Unit == "" || len(l.Unit) > store.MaxName || len(l.Name) > store.MaxName || l.Kind > sluice.Concurrency {
			t.Errorf("names out of bounds: %+v", l)
		}
	}
}

// FuzzUsage gives every reader arbitrary bytes in two pieces. It must not panic, must stay within bounds, and must
// give the same result as in one piece.
func FuzzUsage(f *testing.F) {
	for _, s := range usageSamples {
		f.Add(string(sample(f, s.file)), 100, contentOf(s.file))
	}
	f.Add(string(frame("x", `{"usage":{"inputTokens":9}}`)), 20, "application/vnd.amazon.eventstream")
	f.Fuzz(func(t *testing.T, body string, cut int, contentType string) {
		cut = min(max(cut, 0), len(body))
		for _, name := range []string{"anthropic", "openai", "gemini", "slack"} {
			one, two := newUsageReader(vendorOf(name), "", contentType), newUsageReader(vendorOf(name), "", contentType)
			if one == nil {
				return
			}
			one.Write([]byte(body))
			two.Write([]byte(body[:cut]))
			two.Write([]byte(body[cut:]))
			u, failed := one.Usage(), one.Failed()
			if u != two.Usage() || !reflect.DeepEqual(failed, two.Failed()) {
				t.Errorf("%s: %+v whole, %+v in pieces", name, u, two.Usage())
			}
			checkUsage(t, &u)
			checkBounds(t, &failed)
		}
		g := &graphQLReader{}
		g.Write([]byte(body))
		failed := g.Failed()
		checkBounds(t, &failed)
	})
}

func checkUsage(t *testing.T, u *Usage) {
	t.Helper()
	for _, n := range []int64{u.Input, u.CacheRead, u.CacheWrite, u.CacheLong, u.Output, u.Seen} {
		if n < 0 || n > store.MaxAmount {
			t.Errorf("out of bounds: %+v", u)
		}
	}
	if len(u.Model) > maxModel || u.Micros < 0 || u.Final && !u.Known {
		t.Errorf("out of bounds: %+v", u)
	}
	if micros, _ := DefaultPrices().Micros(u.Model, u); micros < 0 {
		t.Errorf("%+v costs %d", u, micros)
	}
}

// FuzzCall gives every dialect arbitrary requests. A changed JSON body must still be JSON, and a model that a server finds
// is found or reported as unread.
func FuzzCall(f *testing.F) {
	f.Add("POST", "/v1/chat/completions", `{"model":"a","stream":true,"stream_options":null,"n":2}`)
	f.Add("POST", "/v1/messages", `{"model":"claude-opus-4-5","max_tokens":5,"messages":[{"content":"\u00e9\""}]}`)
	f.Add("POST", "/v1beta/models/a:streamGenerateContent", `{"generationConfig":{"maxOutputTokens":1}}`)
	f.Add("POST", "/v1/messages", `{"a":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`,"model":"m"}`)
	f.Add("POST", "/v1/embeddings", `{"Model":"a","generationConfig":{"model":"b"},"model":"c"}`)
	f.Add("POST", "/v1/responses", "{\x00\"\x00m\x00\"\x00:\x001\x00}\x00")
	f.Add("POST", "/graphql", `{"query":"mutation { a(b: \"\"\"x\"\"\") }"}`)
	f.Fuzz(func(t *testing.T, method, path, body string) {
		for _, name := range Names() {
			s := speaker(t, name)
			c := &Call{Method: method, Path: path, Body: []byte(body), Whole: true, Size: int64(len(body)), Header: map[string][]string{path: {body}}}
			a := s.Ask(c)
			if a.Text < 0 || a.MaxOutput < 0 || a.MaxOutput > store.MaxAmount || len(a.Model) > maxModel || len(a.Part) > store.MaxName {
				t.Errorf("%s: out of bounds: %+v", name, a)
			}
			var server struct{ Model string }
			v, _ := s.(*vendor)
			if f := formOf(path); f != nil && f.part == "" && v != nil && v.models && method == "POST" && pathModel(path) == "" &&
				json.Unmarshal([]byte(body), &server) == nil && plainModel(server.Model) != "" && a.Model != server.Model && !a.Unread {
				t.Errorf("%s: %q names %q, and %q was found", name, body, server.Model, a.Model)
			}
			s.Key(c.Header)
			s.OnlyUsage(c.Body)
			asked := s.AskUsage(c.Body)
			_, renamed, ok := s.Rename(c, "b")
			if json.Valid(c.Body) && (!json.Valid(asked) || ok && len(renamed) > 0 && !json.Valid(renamed)) {
				t.Errorf("%s: %q became %q and %q", name, body, asked, renamed)
			}
			if string(c.Body) != body {
				t.Errorf("%s changed the call", name)
			}
		}
	})
}

// FuzzScan compares the scanner with encoding/json: it finds the same scalars in valid JSON.
func FuzzScan(f *testing.F) {
	f.Add(`{"a":[1,{"b":"c\n"},null],"d":{"e":true}}`)
	f.Add(`[[],{}," ",-1.5e3]`)
	f.Fuzz(func(t *testing.T, body string) {
		var c counting
		s := newScanner(&c)
		s.write([]byte(body))
		s.write([]byte{'\n'})
		if !json.Valid([]byte(body)) || strings.Count(body, "[")+strings.Count(body, "{") >= maxDepth {
			return
		}
		if want := scalars(t, body); c.scalars != want {
			t.Errorf("%q: %d scalars, want %d", body, c.scalars, want)
		}
		if c.docs != 1 {
			t.Errorf("%q: %d documents", body, c.docs)
		}
	})
}

type counting struct{ scalars, docs int }

func (c *counting) scalar(*scanner) { c.scalars++ }
func (c *counting) closed(*scanner) {}
func (c *counting) done()           { c.docs++ }

// scalars counts the values that are neither objects nor arrays.
func scalars(t *testing.T, body string) int {
	t.Helper()
	var raw json.RawMessage = []byte(body)
	switch strings.TrimLeft(body, " \t\r\n")[0] {
	case '[':
		var list []json.RawMessage
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, e := range list {
			n += scalars(t, string(e))
		}
		return n
	case '{':
		d := json.NewDecoder(strings.NewReader(body))
		if _, err := d.Token(); err != nil {
			t.Fatal(err)
		}
		n := 0
		for d.More() {
			if _, err := d.Token(); err != nil { // the name
				t.Fatal(err)
			}
			if err := d.Decode(&raw); err != nil {
				t.Fatal(err)
			}
			n += scalars(t, string(raw))
		}
		return n
	}
	return 1
}

// FuzzLive gives the readers of every kind of connection arbitrary messages of both sides. Statements stay within bounds,
// a refusal is JSON, and no message starts a response unnoticed.
func FuzzLive(f *testing.F) {
	f.Add("/v1/realtime", "model=gpt-realtime", `{"type":"response.create","event_id":"a"}`, `{"type":"response.done","response":{"id":"r","status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}`)
	f.Add("/v1/realtime", "model=%67pt+x", `{"type":"session.update","session":{"model":"m","max_output_tokens":9}}`, `{"type":"rate_limits.updated","rate_limits":[{"name":"tokens","limit":9,"remaining":1,"reset_seconds":2}]}`)
	f.Add("/v1/responses", "", `{"type":"response.create","model":"m","input":"x"}`, `{"type":"error","status":429,"error":{"code":"rate_limit_exceeded","message":"try again in 2s"}}`)
	f.Add("/ws/x.BidiGenerateContent", "", `{"setup":{"model":"models/m","generationConfig":{"maxOutputTokens":5}}}`, `{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":3}}`)
	f.Add("/v1/realtime", "model=m", `{"a":`+strings.Repeat("[", 600)+strings.Repeat("]", 600)+`,"type":"response.create"}`, ``)
	f.Add("/v1/responses", "", `{"type":"response.create","type":"x"}{"Type":"response.create"}`, ``)
	f.Add("/ws/x.BidiGenerateContent", "", `{"realtimeInput":{"audio":{}},"clientContent":{"turnComplete":true}}`, ``)
	f.Fuzz(func(t *testing.T, path, query, said, told string) {
		var event struct{ Type string } // as a server in Go reads it
		read := json.Unmarshal([]byte(said), &event) == nil
		for _, name := range Names() {
			s, ok := speaker(t, name).(interface{ Live(*Call) Live })
			if !ok {
				continue
			}
			l := s.Live(&Call{Method: "GET", Path: path, Query: query})
			if l == nil {
				continue
			}
			for range 2 {
				c := l.Said([]byte(said))
				_, isGemini := l.(*liveGemini)
				starts := event.Type == "response.create" && !isGemini
				if read && starts && !c.Starts && !c.Unread {
					t.Errorf("%s: %q starts a response and is not held", name, said)
				}
				e := l.Told([]byte(told))
				status, _ := l.Closed(told)
				if e.Status < 0 || status < 0 || status > 999 {
					t.Errorf("%s: status %d, closed with %d", name, e.Status, status)
				}
				for _, a := range []*ParsedRequest{new(l.Asked()), c.Asked} {
					if a != nil && (a.Text < 0 || a.MaxOutput < 0 || a.MaxOutput > store.MaxAmount || len(a.Model) > maxModel) {
						t.Errorf("%s: out of bounds: %+v", name, a)
					}
				}
				if text := l.Refuse(&c, 429, "wait", time.Second); text != nil && !json.Valid(text) {
					t.Errorf("%s refuses with %q", name, text)
				}
			}
		}
	})
}

// FuzzReset checks that any text is either a time within bounds or not a time.
func FuzzReset(f *testing.F) {
	for _, s := range []string{"30", "1794726060", "1794726060500", "6m0s", "1d2h", "2026-11-15T07:00:05Z", "Sun, 15 Nov 2026 07:00:09 GMT"} {
		f.Add(s, made.Unix())
	}
	f.Fuzz(func(t *testing.T, s string, base int64) {
		if d, ok := parseReset(s, time.Unix(base, 0)); d < 0 || d > MaxReset || !ok && d != 0 {
			t.Errorf("%q: %v, %v", s, d, ok)
		}
	})
}

// FuzzPriceMap reads arbitrary price files. Errors have a text, and no price makes a cost negative.
func FuzzPriceMap(f *testing.F) {
	f.Add(`{"m": {"input_cost_per_token": 1e-06, "output_cost_per_token": 0, "input_cost_per_token_above_200k_tokens": 2e-6, "cache_read_input_token_cost": 1e-7}}`)
	f.Add(`{"sample_spec": {}, "vertex_ai/m": {"input_cost_per_token": 1e308, "output_cost_per_token": 1e308}, "m": {"input_cost_per_token": "x"}}`)
	f.Add(`{"m": {"input_cost_per_token": -1, "output_cost_per_token": 1e-6}}`)
	f.Add(`[]`)
	u := Usage{Input: 300_000, CacheRead: 5, CacheWrite: 7, CacheLong: 3, Output: store.MaxAmount}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := ParsePriceMap([]byte(text), "2026-11-15")
		if err != nil {
			if err.Error() == "" || m != nil {
				t.Errorf("%v, %v", m, err)
			}
			return
		}
		prices := DefaultPrices().WithMap(func() *PriceMap { return m })
		for name := range m.exact {
			if micros, _ := prices.Micros(name, &u); micros < 0 {
				t.Errorf("%q costs %d", name, micros)
			}
		}
	})
}
