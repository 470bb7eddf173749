package provider

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// planOf is a window as an answer states it.
func planOf(name string, remaining int64, reset, window time.Duration) Limit {
	return Limit{Name: name, Unit: planUnit(name), Kind: sluice.Fixed, Size: PlanSize, Remaining: remaining, ResetIn: reset, Window: window}
}

func TestWindowsOfSubscriptions(t *testing.T) {
	const h, day = time.Hour, 24 * time.Hour
	claude := func(lines ...string) http.Header {
		for i := range lines {
			lines[i] = unifiedPrefix + lines[i]
		}
		return header(lines...)
	}
	for _, tt := range []struct {
		name, provider string
		status         int
		model          string
		header         http.Header
		body           string
		want           []Limit
		verdict        store.Verdict
		wait           time.Duration
		ignored        int
		overage        bool
	}{
		{name: "Claude", provider: "anthropic", status: 200,
			header: claude("5h-utilization: 0.42", "5h-reset: 1794736800", "5h-status: allowed", "7d-utilization: 0", "7d-reset: 1795158000", "status: allowed"),
			want:   []Limit{planOf("plan-5h", 580000, 3*h, 5*h), planOf("plan-7d", 1000000, 5*day, 7*day)}},
		{name: "a window of the model, and one of another", provider: "anthropic", status: 200, model: "claude-Sonnet-5",
			header: claude("7d-sonnet-utilization: 0.5", "7d_opus-utilization: 0.9", "7d_oi-utilization: 0.7"),
			want:   []Limit{planOf("plan-7d-model", 500000, store.NotStated, 7*day)}},
		{name: "a window that nobody knows refuses", provider: "anthropic", status: 429, model: "claude-opus-5",
			header:  claude("status: rejected", "7d_oi-utilization: 1", "7d_oi-status: rejected", "7d_oi-reset: 1795158000", "5h-utilization: 0.1"),
			want:    []Limit{planOf("plan-5h", 900000, store.NotStated, 5*h), planOf("plan-7d-model", 0, 5*day, 7*day)},
			verdict: store.VerdictExhausted, wait: 5 * day},
		{name: "the claim refuses, though its figure is rounded", provider: "anthropic", status: 429,
			header:  claude("status: rejected", "representative-claim: five_hour", "5h-utilization: 0.99", "5h-reset: 1794736800", "7d-utilization: 0.2"),
			want:    []Limit{planOf("plan-5h", 0, 3*h, 5*h), planOf("plan-7d", 800000, store.NotStated, 7*day)},
			verdict: store.VerdictExhausted, wait: 3 * h},
		{name: "no figure, but a refusal", provider: "anthropic", status: 429, header: claude("status: rejected", "5h-status: rejected", "5h-reset: 1794736800"),
			want: []Limit{planOf("plan-5h", 0, 3*h, 5*h)}, verdict: store.VerdictExhausted, wait: 3 * h},
		{name: "only when it is back", provider: "anthropic", status: 429, header: with(claude("status: rejected"), "retry-after: 7200"),
			want: []Limit{planOf("plan-5h", 0, 2*h, 5*h)}, verdict: store.VerdictExhausted, wait: 2 * h},
		{name: "paid for beyond", provider: "anthropic", status: 200, overage: true,
			header: claude("5h-utilization: 1.3", "overage-status: allowed", "overage-in-use: true", "overage-utilization: 0.2"),
			want:   []Limit{planOf("plan-5h", 0, store.NotStated, 5*h)}},
		{name: "nonsense", provider: "anthropic", status: 200, ignored: 7,
			header: claude("5h-utilization: NaN", "7d-utilization: -1", "1h-utilization: 1e400", "2h-utilization: 42", "7d-sonnet-utilization: x", "99999d-utilization: 0.5",
				"-utilization: 0.5", "h-utilization: 0.5", "3h-utilization: 0.5", "3h-reset: 99999999999999"),
			model: "sonnet", want: []Limit{planOf("plan-5h", 500000, store.NotStated, 3*h)}},
		{name: "a reset that is not the window's", provider: "anthropic", status: 200, ignored: 1, header: claude("5h-utilization: 0.5", "5h-reset: 1795158000"),
			want: []Limit{planOf("plan-5h", 500000, store.NotStated, 5*h)}},

		{name: "Codex", provider: "openai", status: 200,
			header: header("x-codex-primary-used-percent: 42.5", "x-codex-primary-window-minutes: 300", "x-codex-primary-reset-at: 1794736800",
				"x-codex-secondary-used-percent: 7", "x-codex-secondary-window-minutes: 10080", "x-codex-secondary-reset-after-seconds: 3600"),
			want: []Limit{planOf("plan-5h", 575000, 3*h, 5*h), planOf("plan-7d", 930000, h, 7*day)}},
		{name: "Codex, a family", provider: "openai", status: 200,
			header: header("x-codex-active-limit: spark", "x-codex-spark-primary-used-percent: 10", "x-codex-other-primary-used-percent: 90", "x-codex-primary-used-percent: 20"),
			want:   []Limit{planOf("plan-5h", 800000, store.NotStated, 5*h), planOf("plan-5h-model", 900000, store.NotStated, 5*h)}},
		{name: "Codex, a month", provider: "openai", status: 200,
			header: header("x-codex-primary-used-percent: 10", "x-codex-primary-window-minutes: 43200"), want: []Limit{planOf("plan-30d", 900000, store.NotStated, 30*day)}},
		{name: "Codex refuses", provider: "openai", status: 429,
			header:  header("x-codex-primary-used-percent: 100", "x-codex-primary-window-minutes: 300", "x-codex-primary-reset-at: 1794736800"),
			body:    `{"error":{"type":"usage_limit_reached","message":"The usage limit has been reached","plan_type":"pro","resets_at":1794736800,"resets_in_seconds":10800}}`,
			want:    []Limit{planOf("plan-5h", 0, 3*h, 5*h)},
			verdict: store.VerdictExhausted, wait: 3 * h},
		{name: "Codex refuses without windows", provider: "openai", status: 429, header: header(),
			body:    `{"error":{"code":"usage_limit_reached","message":"x","resets_in_seconds":100000}}`,
			want:    []Limit{planOf("plan-7d", 0, 100000*time.Second, 7*day)},
			verdict: store.VerdictExhausted, wait: 100000 * time.Second},
		{name: "Codex, nonsense", provider: "openai", status: 200, ignored: 3,
			header: header("x-codex-primary-used-percent: 50", "x-codex-primary-window-minutes: 0", "x-codex-secondary-used-percent: many", "x-codex-secondary-reset-at: never", "x-codex-tertiary-used-percent: 5",
				"x-codex-a-primary-used-percent: 5", "x-codex-active-limit: a", "x-codex-a-primary-reset-after-seconds: -5")},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := vendorOf(tt.provider).Observe(&Response{Status: tt.status, Header: tt.header, Body: []byte(tt.body), Model: tt.model}, late)
			if tt.name == "Codex, nonsense" {
				tt.want = []Limit{planOf("plan-5h-model", 950000, store.NotStated, 5*h)}
			}
			if !reflect.DeepEqual(o.Limits, tt.want) {
				t.Errorf("\n%+v, want\n%+v", o.Limits, tt.want)
			}
			verdict := tt.verdict
			if verdict == store.VerdictNone {
				verdict = store.VerdictOK
			}
			if o.Verdict != verdict || o.RetryAfter != tt.wait || o.Ignored != tt.ignored || o.Overage != tt.overage {
				t.Errorf("%v, wait %v, %d ignored, overage %v; want %v, %v, %d, %v", o.Verdict, o.RetryAfter, o.Ignored, o.Overage, verdict, tt.wait, tt.ignored, tt.overage)
			}
		})
	}
}

// The presets have a limit for each subscription window that Sluice can handle.
func TestPresetsHaveWindows(t *testing.T) {
	for _, name := range []string{"anthropic", "openai"} {
		preset, _ := Preset(name)
		for _, length := range []time.Duration{time.Hour, 5 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour} {
			for _, ofModel := range []bool{false, true} {
				l := planLimit(length, ofModel)
				if k := byName(&l, preset.Limits); k < 0 || !preset.Limits[k].Plan || preset.Limits[k].Window < length {
					t.Errorf("%s has no limit for a window of %v", name, length)
				}
			}
		}
	}
}
