package provider

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// made is when the answers of these tests were made, and late what a wrong local clock says.
var (
	made = time.Date(2026, 11, 15, 7, 0, 0, 0, time.UTC)
	late = made.Add(9 * time.Hour)
)

// header builds a header from lines, with a Date.
func header(lines ...string) http.Header {
	h := http.Header{"Date": {made.Format(httpDates[0])}}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		h.Add(name, strings.TrimSpace(value))
	}
	return h
}

func limit(name, unit string, size, remaining int64, reset, window time.Duration) Limit {
	return Limit{Name: name, Unit: unit, Kind: sluice.Rolling, Size: size, Remaining: remaining, ResetIn: reset, Window: window}
}

func TestGenericReadsLimits(t *testing.T) {
	const no = store.NotStated
	s := time.Second
	tests := []struct {
		name    string
		lines   []string
		want    []Limit
		ignored int
	}{
		{"nothing", nil, nil, 0},
		{"draft 11", []string{`RateLimit-Policy: "default";q=100;w=60`, `RateLimit: "default";r=50;t=30`},
			[]Limit{limit("default", "requests", 100, 50, 30*s, 60*s)}, 0},
		{"several policies, one of which is spoken of", []string{`RateLimit-Policy: "burst";q=100;w=60, "daily";q=1000;w=86400`, `RateLimit: "daily";r=5;t=3600`},
			[]Limit{limit("daily", "requests", 1000, 5, time.Hour, 24*time.Hour), limit("burst", "requests", 100, no, no, 60*s)}, 0},
		{"tokens instead of strings", []string{`RateLimit-Policy: default;q=100;w=60`, `RateLimit: default;r=50;t=30`},
			[]Limit{limit("default", "requests", 100, 50, 30*s, 60*s)}, 0},
		{"on two lines", []string{`RateLimit: "a";r=1;t=2`, `RateLimit: "b";r=3;t=4`},
			[]Limit{limit("a", "requests", no, 1, 2*s, 0), limit("b", "requests", no, 3, 4*s, 0)}, 0},
		{"units and partitions", []string{`RateLimit-Policy: "bytes";q=65535;qu="content-bytes";w=10;pk=:sdfjLJUOUH==:`, `RateLimit: "bytes";r=0;t=4`},
			[]Limit{limit("bytes", "content_bytes", 65535, 0, 4*s, 10*s)}, 0},
		{"concurrency", []string{`RateLimit-Policy: "c";q=20;qu="concurrent-requests"`},
			[]Limit{{Name: "c", Unit: "requests", Kind: sluice.Concurrency, Size: 20, Remaining: no, ResetIn: no}}, 0},
		{"no reset, no remaining", []string{`RateLimit: "a";r=1, "b";t=5`},
			[]Limit{limit("a", "requests", no, 1, no, 0), limit("b", "requests", no, no, 5*s, 0)}, 0},
		{"a comma in a name", []string{`RateLimit: "a,b;c\"d\\";r=1;t=2`},
			[]Limit{limit(`a,b;c"d\`, "requests", no, 1, 2*s, 0)}, 0},
		{"with a prefix", []string{`Beta-RateLimit-Policy: "global-app-quota";q=65000;w=3600`, `Beta-RateLimit: "global-app-quota";r=13000;t=600`},
			[]Limit{limit("global-app-quota", "requests", 65000, 13000, 600*s, time.Hour)}, 0},
		{"draft 07", []string{`RateLimit: limit=100, remaining=50, reset=30`, `RateLimit-Policy: 100;w=60, 1000;w=3600`},
			[]Limit{limit("", "requests", 100, 50, 30*s, 60*s), limit("", "requests", 1000, no, no, time.Hour)}, 0},
		{"draft 07, two", []string{`RateLimit: limit=100, remaining=50, reset=30`, `RateLimit: limit=10000, remaining=90, reset=200`},
			[]Limit{limit("", "requests", 100, 50, 30*s, 0), limit("", "requests", 10000, 90, 200*s, 0)}, 0},
		{"draft 06", []string{"RateLimit-Limit: 10", "RateLimit-Policy: 10;w=1, 50;w=60", "RateLimit-Remaining: 9", "RateLimit-Reset: 1"},
			[]Limit{limit("", "requests", 10, 9, s, s), limit("", "requests", 50, no, no, 60*s)}, 0},
		{"draft 06, the policy that holds is not the first", []string{"RateLimit-Limit: 10", "RateLimit-Policy: 50;w=60, 10;w=1", "RateLimit-Remaining: 9"},
			[]Limit{limit("", "requests", 10, 9, no, s), limit("", "requests", 50, no, no, 60*s)}, 0},
		{"draft 03", []string{`RateLimit-Limit: 100, 100;w=60;comment="fixed window", 5000;w=86400`, "RateLimit-Remaining: 50", "RateLimit-Reset: 50"},
			[]Limit{limit("", "requests", 100, 50, 50*s, 60*s), limit("", "requests", 5000, no, no, 24*time.Hour)}, 0},
		{"a registry of images", []string{"ratelimit-limit: 100;w=21600", "ratelimit-remaining: 76;w=21600"},
			[]Limit{limit("", "requests", 100, 76, no, 6*time.Hour)}, 0},
		{"X- with an epoch", []string{"X-RateLimit-Limit: 60", "X-RateLimit-Remaining: 56", "X-RateLimit-Reset: 1794727800"},
			[]Limit{limit("", "requests", 60, 56, 30*time.Minute, 0)}, 0},
		{"X- with milliseconds", []string{"X-RateLimit-Limit: 20", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1794726060500"},
			[]Limit{limit("", "requests", 20, 0, 60500*time.Millisecond, 0)}, 0},
		{"X- with a delay", []string{"X-Rate-Limit-Limit: 900", "X-Rate-Limit-Remaining: 3", "X-Rate-Limit-Reset: 2513"},
			[]Limit{limit("", "requests", 900, 3, 2513*s, 0)}, 0},
		{"X- with an ISO date", []string{"X-RateLimit-Limit: 350", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 2026-11-15T07:01Z"},
			[]Limit{limit("", "requests", 350, 0, 60*s, 0)}, 0},
		{"used, and fractions", []string{"X-Ratelimit-Used: 5", "X-Ratelimit-Remaining: 595.0", "X-Ratelimit-Reset: 120"},
			[]Limit{limit("", "requests", no, 595, 120*s, 0)}, 0},
		{"used instead of remaining", []string{"X-RateLimit-Limit: 100", "X-RateLimit-Used: 30"},
			[]Limit{limit("", "requests", 100, 70, no, 0)}, 0},
		{"reset-after", []string{"X-RateLimit-Limit: 5", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 1794726001", "X-RateLimit-Reset-After: 0.75", "X-RateLimit-Bucket: abcd1234"},
			[]Limit{limit("", "requests", 5, 0, 750*time.Millisecond, 0)}, 0},
		{"requests and tokens", []string{
			"x-ratelimit-limit-requests: 60", "x-ratelimit-limit-tokens: 150000", "x-ratelimit-remaining-requests: 59",
			"x-ratelimit-remaining-tokens: 149984", "x-ratelimit-reset-requests: 1s", "x-ratelimit-reset-tokens: 6m0s",
		}, []Limit{limit("requests", "requests", 60, 59, s, 0), limit("tokens", "tokens", 150000, 149984, 6*time.Minute, 0)}, 0},
		{"windows in names", []string{
			"x-ratelimit-limit-req-minute: 188", "x-ratelimit-remaining-req-minute: 187", "x-ratelimit-limit-tokens-minute: 625000",
			"x-ratelimit-remaining-tokens-minute: 624982", "x-ratelimit-tokens-query-cost: 18",
		}, []Limit{limit("req-minute", "requests", 188, 187, no, time.Minute), limit("tokens-minute", "tokens", 625000, 624982, no, time.Minute)}, 0},
		{"a gateway", []string{"X-RateLimit-Limit-Hour: 10000", "X-RateLimit-Remaining-Hour: 9999", "RateLimit-Limit: 10000", "RateLimit-Remaining: 9999", "RateLimit-Reset: 1800"},
			[]Limit{limit("", "requests", 10000, 9999, 1800*s, 0), limit("hour", "requests", 10000, 9999, no, time.Hour)}, 0},
		{"renewal periods", []string{
			"x-ratelimit-limit-tokens: 1500000", "x-ratelimit-remaining-tokens: 1499000", "x-ratelimit-renewalperiod-tokens: 60", "x-ratelimit-reset-tokens: 30",
		}, []Limit{limit("tokens", "tokens", 1500000, 1499000, 30*s, 60*s)}, 0},
		{"the role last", []string{
			"anthropic-ratelimit-input-tokens-limit: 2000000", "anthropic-ratelimit-input-tokens-remaining: 1999000", "anthropic-ratelimit-input-tokens-reset: 2026-11-15T07:00:05Z",
		}, []Limit{limit("input-tokens", "input_tokens", 2000000, 1999000, 5*s, 0)}, 0},
		{"the standard before the rest", []string{"RateLimit: limit=10, remaining=1, reset=2", "X-RateLimit-Limit: 99", "X-RateLimit-Limit-Tokens: 5"},
			[]Limit{limit("", "requests", 10, 1, 2*s, 0), limit("tokens", "tokens", 5, no, no, 0)}, 0},
		{"one bad field leaves the others", []string{"X-RateLimit-Limit: 100", "X-RateLimit-Remaining: many", "X-RateLimit-Reset: soon"},
			[]Limit{limit("", "requests", 100, no, no, 0)}, 2},
		{"one bad member leaves the others", []string{`RateLimit: "a";r=1;t=2, "b;r=3`}, []Limit{limit("a", "requests", no, 1, 2*s, 0)}, 1},
		{"a policy without a quota", []string{`RateLimit-Policy: "a";w=60, "b";q=1`}, []Limit{limit("b", "requests", 1, no, no, 0)}, 1},
		{"not limited", []string{"x-ratelimit-limit-requests: 0", "x-ratelimit-remaining-requests: 0"}, nil, 1},
		{"not told", []string{"x-ratelimit-limit-requests: -1", "x-ratelimit-remaining-requests: -1"}, nil, 2},
		{"a reset after the end of its window", []string{`RateLimit-Policy: "a";q=9;w=60`, `RateLimit: "a";r=1;t=3600`},
			[]Limit{limit("a", "requests", 9, 1, no, 60*s)}, 1},
		{"bad parameters leave the member", []string{`RateLimit-Policy: "a";q=9;w=long`, `RateLimit: "a";r=x;t=-1`},
			[]Limit{limit("a", "requests", 9, no, no, 0)}, 3},
		{"nothing left of it", []string{`RateLimit: "a";r=x;t=soon`}, []Limit{}, 2},
		{"a dictionary with extensions", []string{`RateLimit: limit=10;w=60, remaining=1, reset=2, policy=x`},
			[]Limit{limit("", "requests", 10, 1, 2*s, 60*s)}, 0},
		{"joined lines", []string{"X-RateLimit-Limit: 100, 200", "X-RateLimit-Remaining: 7, 8"},
			[]Limit{limit("", "requests", 100, 7, no, 0)}, 0},
		{"a blank field", []string{"X-RateLimit-Limit:", "X-RateLimit-Remaining: 5"}, []Limit{limit("", "requests", no, 5, no, 0)}, 0},
		{"a name that is too long", []string{`RateLimit: "` + strings.Repeat("a", 65) + `";r=1, "b";r=2`}, []Limit{limit("b", "requests", no, 2, no, 0)}, 1},
		{"not ASCII", []string{"RateLimit: \"\u00e9\";r=1, \u00e9;r=1, \"b\";r=2"}, []Limit{limit("b", "requests", no, 2, no, 0)}, 2},
		{"vendors after the rest", []string{"Acme-RateLimit-Limit: 7", "X-RateLimit-Limit: 8"}, []Limit{limit("", "requests", 8, no, no, 0)}, 0},
		{"too large", []string{"X-RateLimit-Limit: 99999999999999999999", "X-RateLimit-Remaining: 1099511627777", "X-RateLimit-Reset: 1e9"}, nil, 3},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Generic{}.Observe(&Response{Status: 200, Header: header(tt.lines...)}, late)
			if len(o.Limits)+len(tt.want) > 0 && !reflect.DeepEqual(o.Limits, tt.want) {
				t.Errorf("limits\n%+v, want\n%+v", o.Limits, tt.want)
			}
			if o.Verdict != store.VerdictOK || o.Ignored != tt.ignored {
				t.Errorf("verdict %v, %d ignored, want %d", o.Verdict, o.Ignored, tt.ignored)
			}
		})
	}
}

func TestGenericVerdicts(t *testing.T) {
	tests := []struct {
		name    string
		status  int
		lines   []string
		body    string
		verdict store.Verdict
		wait    time.Duration // -1: no hint
	}{
		{"success", 200, nil, "", store.VerdictOK, -1},
		{"a hint of something else", 202, []string{"Retry-After: 5"}, "", store.VerdictOK, -1},
		{"not modified", 304, nil, "", store.VerdictOK, -1},
		{"not signed in", 401, nil, "", store.VerdictOK, -1},
		{"not found", 404, nil, "", store.VerdictOK, -1},
		{"not for us", 403, nil, "forbidden", store.VerdictOK, -1},
		{"not an answer", 0, nil, "", store.VerdictNone, -1},
		{"informational", 103, nil, "", store.VerdictNone, -1},
		{"from a cache", 200, []string{"Age: 30"}, "", store.VerdictNone, -1},
		{"429", 429, nil, "", store.VerdictThrottled, -1},
		{"429 from a cache", 429, []string{"Age: 30", "Retry-After: 9"}, "", store.VerdictThrottled, 9 * time.Second},
		{"429 with seconds", 429, []string{"Retry-After: 30"}, "", store.VerdictThrottled, 30 * time.Second},
		{"429 with a fraction", 429, []string{"retry-after: 7.66"}, "", store.VerdictThrottled, 7660 * time.Millisecond},
		{"429 with a unit", 429, []string{"retry-after: 7.66s"}, "", store.VerdictThrottled, 7660 * time.Millisecond},
		{"429 with a date", 429, []string{"Retry-After: Sun, 15 Nov 2026 07:02:00 GMT"}, "", store.VerdictThrottled, 2 * time.Minute},
		{"429 with milliseconds", 429, []string{"Retry-After: 2", "retry-after-ms: 1500"}, "", store.VerdictThrottled, 1500 * time.Millisecond},
		{"429 with milliseconds alone", 429, []string{"retry-after-ms: 250.5"}, "", store.VerdictThrottled, 250500 * time.Microsecond},
		{"429 with useless milliseconds", 429, []string{"Retry-After: 1", "retry-after-ms: 0"}, "", store.VerdictThrottled, time.Second},
		{"429 with a contradiction", 429, []string{"Retry-After: 60", "retry-after-ms: 10"}, "", store.VerdictThrottled, time.Minute},
		{"429 with zero", 429, []string{"Retry-After: 0"}, "", store.VerdictThrottled, 0},
		{"429 with nonsense", 429, []string{"Retry-After: tomorrow"}, "", store.VerdictThrottled, -1},
		{"429 with a reset", 429, []string{"X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 40"}, "", store.VerdictThrottled, 40 * time.Second},
		{"429 with only a reset", 429, []string{"X-RateLimit-Reset: 40"}, "", store.VerdictThrottled, 40 * time.Second},
		{"429 with only a reset far away", 429, []string{"X-RateLimit-Reset: 7200"}, "", store.VerdictThrottled, 2 * time.Hour},
		{"429 though something remains", 429, []string{"X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 4", "X-RateLimit-Reset: 40"}, "", store.VerdictThrottled, -1},
		{"429 with two limits, one of which is used up", 429, []string{
			"x-ratelimit-remaining-requests: 59", "x-ratelimit-reset-requests: 9h", "x-ratelimit-remaining-tokens: 0", "x-ratelimit-reset-tokens: 12s",
		}, "", store.VerdictThrottled, 12 * time.Second},
		{"a daily quota", 429, []string{`RateLimit-Policy: "day";q=1000;w=86400`, `RateLimit: "day";r=0;t=7200`}, "", store.VerdictExhausted, 2 * time.Hour},
		{"the end of an hourly quota", 429, []string{`RateLimit-Policy: "h";q=1000;w=3600`, `RateLimit: "h";r=0;t=20`}, "", store.VerdictExhausted, 20 * time.Second},
		{"Retry-After before the reset", 429, []string{"Retry-After: 3", `RateLimit: "h";r=0;t=7200`}, "", store.VerdictThrottled, 3 * time.Second},
		{"Retry-After that the reset confirms", 429, []string{"Retry-After: 7200", `RateLimit: "h";r=0;t=7201`}, "", store.VerdictExhausted, 2 * time.Hour},
		{"Retry-After past the reset", 429, []string{"Retry-After: 7200", `RateLimit: "h";r=0;t=60`}, "", store.VerdictThrottled, 2 * time.Hour},
		{"Retry-After though something remains", 429, []string{"Retry-After: 7200", `RateLimit: "h";r=5;t=7200`}, "", store.VerdictThrottled, 2 * time.Hour},
		{"402", 402, nil, "", store.VerdictBilling, -1},
		{"402 that comes back", 402, []string{"Retry-After: 60"}, "", store.VerdictExhausted, time.Minute},
		{"403 with Retry-After", 403, []string{"Retry-After: 60"}, "", store.VerdictThrottled, time.Minute},
		{"403 with nothing left", 403, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 40"}, "", store.VerdictThrottled, 40 * time.Second},
		{"403 with nothing left, for another reason", 403, []string{"X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 40"}, "no such right", store.VerdictOK, -1},
		{"403 that says so", 403, nil, `{"error":{"errors":[{"reason":"userRateLimitExceeded"}]}}`, store.VerdictThrottled, -1},
		{"503", 503, []string{"Retry-After: 5"}, "", store.VerdictOverloaded, 5 * time.Second},
		{"529", 529, nil, "", store.VerdictOverloaded, -1},
		{"500", 500, nil, "", store.VerdictError, -1},
		{"502", 502, nil, "", store.VerdictError, -1},
		{"408", 408, nil, "", store.VerdictError, -1},
		{"501", 501, nil, "", store.VerdictOK, -1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o := Generic{}.Observe(&Response{Status: tt.status, Header: header(tt.lines...), Body: []byte(tt.body)}, late)
			if o.Verdict != tt.verdict || o.Hinted != (tt.wait >= 0) || o.Hinted && o.RetryAfter != tt.wait {
				t.Errorf("%v, hint %v %v; want %v, %v", o.Verdict, o.Hinted, o.RetryAfter, tt.verdict, tt.wait)
			}
			if o.Scope != 0 {
				t.Errorf("scope %v: nothing narrower than everything is proved", o.Scope)
			}
		})
	}
}

func TestTimesWithoutADate(t *testing.T) {
	h := http.Header{"X-Ratelimit-Remaining": {"1"}, "X-Ratelimit-Reset": {"1794726060"}}
	for _, tt := range []struct {
		received, now time.Time
		want          time.Duration
	}{
		{made.Add(20 * time.Second), late, 40 * time.Second},
		{time.Time{}, made, time.Minute},
		{time.Time{}, made.Add(time.Hour), 0},
		{time.Time{}, made.Add(48 * time.Hour), store.NotStated},
	} {
		o := Generic{}.Observe(&Response{Status: 200, Header: h, Received: tt.received}, tt.now)
		if len(o.Limits) != 1 || o.Limits[0].ResetIn != tt.want {
			t.Errorf("received %v, now %v: %+v, want %v", tt.received, tt.now, o.Limits, tt.want)
		}
	}
}

func TestTooMuchIsIgnored(t *testing.T) {
	h := http.Header{}
	for i := range 200 {
		h.Set("X-Ratelimit-Limit-"+strings.Repeat("a", 1+i%40)+string(rune('a'+i/40)), "5")
	}
	h.Set("Ratelimit-Policy", strings.Repeat("9", 2000))
	o := Generic{}.Observe(&Response{Status: 200, Header: h}, made)
	if len(o.Limits) != maxLimits || o.Ignored < 100 {
		t.Errorf("%d limits, %d ignored", len(o.Limits), o.Ignored)
	}
}

// One absurd number must not hold all requests: it counts as not stated, in any field.
func TestAbsurdRetryAfterIsDiscarded(t *testing.T) {
	values := []string{
		"99999999999999999999", "2678401", "1e400", "1e9", "inf", "Infinity", "NaN", "-1", "-5", "+5", "0x7fffffff", "9223372036854775807",
		"9223372036854775808", "18446744073709551616", strings.Repeat("9", 400), "1.5.5", "..", "1_000",
		"Fri, 31 Dec 9999 23:59:59 GMT", "Thu, 01 Jan 1970 00:00:00 GMT", "9999-12-31T23:59:59Z", "32d", "31d1s", "1000000h", "-5s",
	}
	for _, name := range Names() {
		d, _ := Lookup(name)
		for _, field := range []string{
			"Retry-After", "Retry-After-Ms", "X-RateLimit-Reset", "RateLimit-Reset", "anthropic-ratelimit-requests-reset", "x-ratelimit-reset-requests",
			"x-ratelimit-renewalperiod-requests",
		} {
			for _, v := range values {
				if field == "Retry-After-Ms" && (v == "2678401") {
					continue // three quarters of an hour
				}
				h := header(field+": "+v, "X-RateLimit-Remaining: 0")
				o := d.Observe(&Response{Status: 429, Header: h}, late)
				if o.Hinted {
					t.Errorf("%s believes %s: %s, and waits for %v", name, field, v, o.RetryAfter)
				}
			}
		}
		for _, v := range values {
			for _, body := range []string{
				`{"error":{"code":429,"details":[{"retryDelay":"` + v + `"}]}}`,
				`{"error":{"message":"rate limit: try again in ` + v + ` seconds"}}`,
				`{"error":{"message":"retry after ` + v + `"}}`,
				`{"error":{"metadata":{"headers":{"X-RateLimit-Reset":"` + v + `"}}}}`,
			} {
				if o := d.Observe(&Response{Status: 429, Header: header(), Body: []byte(body)}, late); o.Hinted && o.RetryAfter > time.Hour {
					t.Errorf("%s believes %s, and waits for %v", name, body, o.RetryAfter)
				}
			}
		}
	}
}

// A field that makes no sense must not hide a valid one.
func TestAbsurdRetryAfterHidesNothing(t *testing.T) {
	absurd := "Retry-After: 99999999999999999999"
	for _, tt := range []struct {
		name    string
		status  int
		lines   []string
		verdict store.Verdict
		wait    time.Duration
	}{
		{"milliseconds", 429, []string{"retry-after-ms: 2500"}, store.VerdictThrottled, 2500 * time.Millisecond},
		{"a reset", 429, []string{"X-RateLimit-Limit: 9", "X-RateLimit-Remaining: 0", "X-RateLimit-Reset: 40"}, store.VerdictThrottled, 40 * time.Second},
		{"a quota that is gone", 429, []string{`RateLimit-Policy: "day";q=1000;w=86400`, `RateLimit: "day";r=0;t=7200`}, store.VerdictExhausted, 2 * time.Hour},
		{"a billing stop", 402, nil, store.VerdictBilling, -1},
		{"an overload", 503, nil, store.VerdictOverloaded, -1},
		{"nothing", 429, nil, store.VerdictThrottled, -1},
	} {
		o := Generic{}.Observe(&Response{Status: tt.status, Header: header(append(tt.lines, absurd)...)}, late)
		if o.Verdict != tt.verdict || o.Hinted != (tt.wait >= 0) || o.Hinted && o.RetryAfter != tt.wait || o.Ignored == 0 {
			t.Errorf("%s: %+v, want %v and %v", tt.name, o, tt.verdict, tt.wait)
		}
	}
}
