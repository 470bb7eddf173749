package policy_test

import (
	"strings"
	"testing"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/policy"
)

// Every advice that names a setting has a line that a configuration takes as it is, and that keeps the provider.
func TestAdviceIsYAML(t *testing.T) {
	t.Parallel()
	contention := policy.Audit{Verdict: policy.VerdictContention, QuotaPerMin: 80, Ratio: 1, PeakPerMin: 80}
	for _, c := range []struct {
		facts policy.Facts
		want  string // in the first advice; empty: no setting helps
	}{
		{policy.Facts{Throttled7d: 3}, "use: 95%"},
		{policy.Facts{Throttled7d: 3, Use: 50}, ""},
		{policy.Facts{Throttled7d: 3, Observed: true}, "mode: gate"},
		{policy.Facts{Outside: 0.113, OutsideLimit: "hour"}, "reserve: 15%"},
		{policy.Facts{Outside: 0.3, OutsideLimit: "minute", OutsideFlow: true}, "use: 70%"},
		{policy.Facts{Recounted: "requests", CountedAs: policy.Stated{Name: "requests", Size: "10/min", Kind: "rolling"}}, "limits: [{name: requests, size: 10/min, kind: rolling}]"},
		{policy.Facts{Recounted: "input_tokens", CountedAs: policy.Stated{Name: "input_tokens", Size: "9/250ms", Kind: "bucket", Unit: "input_tokens"}}, "unit: input_tokens"},
		{policy.Facts{Free: "on", FreeAs: policy.Stated{Name: "on", Size: "10/day", Kind: "bucket"}}, `{name: "on", size: 10/day, kind: bucket}`},
		{policy.Facts{Free: "requests"}, ""},
		{policy.Facts{GuardOff: true}, "guard: auto"},
		{policy.Facts{GuardStrict: true, HeaderTime: 15_000_000, Window: 60_000_000}, "guard: auto"},
		{policy.Facts{Slack: 7_500_000, SlackLimit: "minute"}, "arrival_slack: 7.5s"},
		{policy.Facts{Cut: 95, CutLimit: "minute"}, "use: 90%"},
		{policy.Facts{Unknown: []policy.Stated{{}}}, "limits: [{name: minute, size: 80/min}]"},
		{policy.Facts{Unknown: []policy.Stated{{Name: "a", Size: "80/min"}, {Name: "1st", Size: "80/h", Unit: "tokens"}}}, `limits: [{name: a, size: 80/min}, {name: "1st", size: 80/h, unit: tokens}]`},
		{policy.Facts{Unanswered: "minute", UnansweredHold: "held", TTL: 600_000_000}, "ttl: 5m0s"},
		{policy.Facts{BreakerLimit: "hour"}, "breaker: off"},
		{policy.Facts{Callers: 2}, "limits: [{name: minute, size: 80/min}]"},
		{policy.Facts{Callers: 2, Audit: contention, Urgent: "me", Highest: "p0"}, "agents: {me: {class: p0}}"},
		{policy.Facts{Callers: 1, Audit: contention, Urgent: "me", Highest: "p0"}, ""},
		{policy.Facts{Callers: 1, Audit: contention, Observed: true}, "mode: gate"},
		{policy.Facts{Cycles: [][]string{{"a", "4+b"}}, Others: []string{"c", "true"}}, `agents: {"4+b": {waits_for: [c, "true"]}}`},
	} {
		for _, name := range []string{"openai", "1.5@x"} {
			if c.facts.Resource, c.facts.Provider = name, ""; name == "openai" {
				c.facts.Provider = name
			}
			all := policy.Advise(c.facts)
			if len(all) == 0 || !strings.Contains(all[0].YAML, c.want) || (all[0].YAML == "") != (c.want == "") {
				t.Fatalf("%+v: %+v, want %s", c.facts, all, c.want)
			}
			for _, a := range all {
				file, err := config.Parse("snippet.yaml", []byte(a.YAML+"\n"), nil)
				if err != nil {
					t.Errorf("%s: %v\n%s", a.Setting, err, a.YAML)
				} else if r, is := file.Resources[name]; is && r.Provider != c.facts.Provider {
					t.Errorf("the provider is %q: %s", r.Provider, a.YAML)
				}
			}
		}
	}
}
