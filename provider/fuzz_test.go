package provider

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// FuzzObserve gives every dialect anything: it must not panic, stay within bounds, and say
// the same when it is asked again.
func FuzzObserve(f *testing.F) {
	f.Add(200, "RateLimit: \"a\";r=1;t=2\nRateLimit-Policy: \"a\";q=5;w=60", "")
	f.Add(429, "Retry-After: Sun, 15 Nov 2026 07:02:00 GMT\nDate: Sun, 15 Nov 2026 07:00:00 GMT\nretry-after-ms: 5", "rate limit")
	f.Add(429, "RateLimit: limit=100, remaining=50, reset=30\nAge: 5", "")
	f.Add(403, "X-RateLimit-Limit: 60\nX-RateLimit-Remaining: 0\nX-RateLimit-Reset: 1794726060\nX-RateLimit-Resource: core", bodyPrimary)
	f.Add(200, "X-RateLimit-Resource: graphql\nX-RateLimit-Remaining: 0", bodyGraphQL)
	f.Add(200, "x-ratelimit-reset-tokens: 6m0s\nx-ratelimit-limit-req-minute: 5;w=9, 7;w=8", `{"errors":[{"type":1}]}`)
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
	if o.Verdict > sluice.VerdictError || o.RetryAfter < 0 || o.RetryAfter > max(retry.MaxHint, MaxReset) || o.Ignored < 0 {
		t.Errorf("out of bounds: %+v", o)
	}
	if len(o.Cause) > store.MaxName || len(o.Limits) > store.MaxLimits || o.Scope&^store.Shared != 0 {
		t.Errorf("out of bounds: %+v", o)
	}
	for _, l := range o.Limits {
		if l.Size == 0 || l.Size < -1 || l.Size > store.MaxAmount || l.Remaining < -1 || l.Remaining > store.MaxAmount {
			t.Errorf("amounts out of bounds: %+v", l)
		}
		if l.ResetIn < 0 && l.ResetIn != sluice.NotStated || l.ResetIn > MaxReset || l.Window < 0 || l.Window > store.MaxWindow {
			t.Errorf("times out of bounds: %+v", l)
		}
		if l.Unit == "" || len(l.Unit) > store.MaxName || len(l.Name) > store.MaxName || l.Kind > sluice.Concurrency {
			t.Errorf("names out of bounds: %+v", l)
		}
	}
}

// FuzzReset: any text is a time within bounds, or none.
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
