package policy

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestAdvice(t *testing.T) {
	t.Parallel()
	week := "3 requests were refused (429) in the last 7 days, and "
	for _, c := range []struct {
		name  string
		facts Facts
		want  []Advice
	}{
		{"nothing", Facts{}, nil},
		{"one refusal a week", Facts{Throttled7d: 1}, nil},
		{"refusals with no reason", Facts{Throttled7d: 3}, []Advice{
			{Setting: "resources.github.use", Text: week + "nothing that is known explains it. Leave some room: resources.github.use: 95%."}}},
		{"though 90% are in use", Facts{Throttled7d: 3, Use: 90}, []Advice{
			{Setting: "resources.github.use", Text: week + "nothing that is known explains it. Leave some room: resources.github.use: 85%."}}},
		{"though half is in use", Facts{Throttled7d: 3, Use: 50}, []Advice{
			{Setting: "resources.github.limits", Text: week + "no more than 50% of the limits is used as it is. Compare the sizes in resources.github.limits with what the provider states."}}},
		{"refusals in mode observe", Facts{Throttled7d: 3, Observed: true}, []Advice{
			{Setting: "resources.github.mode", Text: week + "the gate only observes this resource. To hold requests until there is room for them, set resources.github.mode: gate."}}},
		{"refusals and outside use", Facts{Throttled7d: 3, Outside: 0.113, OutsideLimit: "hour", Slack: 4_000_000, SlackLimit: "hour"}, []Advice{
			{Setting: "resources.github.reserve", Text: week + "callers outside this gate used 12% of the limit hour with the same key. Find them and send their requests through this gate, or leave them a part: resources.github.reserve: 15%."},
			{Setting: "resources.github.arrival_slack", Text: "Refusals that nothing explains have widened the slack of the limit hour to 4s. If requests can take that long to arrive, keep it: resources.github.arrival_slack: 4s."}}},
		{"outside use alone", Facts{Outside: 3, OutsideLimit: "hour"}, []Advice{
			{Setting: "resources.github.reserve", Text: "Callers outside this gate used 100% of the limit hour with the same key. Find them and send their requests through this gate, or leave them a part: resources.github.reserve: 90%."}}},
		{"hardly any", Facts{Outside: 0.009, OutsideLimit: "hour"}, nil},
		{"refusals and a widened slack", Facts{Throttled7d: 3, Slack: 7_500_000, SlackLimit: "minute", Cut: 95, CutLimit: "minute", Unknown: []Stated{{Name: "day", Size: "80/min"}}}, []Advice{
			{Setting: "resources.github.arrival_slack", Text: week + "refusals that nothing explains have widened the slack of the limit minute to 7.5s. If requests can take that long to arrive, keep it: resources.github.arrival_slack: 7.5s."},
			{Setting: "resources.github.limits", Text: "The size of the limit day is not known: no answer has stated it. State the size in resources.github.limits, such as {name: day, size: 80/min}."},
			{Setting: "resources.github.use", Text: "Refusals that nothing explains have cut the limit minute by 9.5%, of which 1% comes back every hour. If they come again, leave that room for good: resources.github.use: 90%."}}},
		{"refusals and no limits", Facts{Throttled7d: 3, Unknown: []Stated{{}}, Callers: 2, Audit: Weigh(0, []Caller{{"a", 1, 2}, {"b", 1, 2}})}, []Advice{
			{Setting: "resources.github.limits", Text: week + "no limit is known: none is configured, and no answer has stated one. State the provider's limits in resources.github.limits, such as {name: minute, size: 80/min}."}}},
		{"a quota that is not known", Facts{Callers: 2, Audit: Weigh(0, []Caller{{"a", 1, 20.25}, {"b", 1, 2}})}, []Advice{
			{Setting: "resources.github.limits", Text: "The quota is not known, so the 22.2 a minute that callers send at most cannot be set against it. State a limit on requests in resources.github.limits."}}},
		{"the guard is off", Facts{Throttled7d: 3, GuardOff: true}, []Advice{
			{Setting: "resources.github.guard", Text: week + "the arrival guard is off, so requests that bunch up on the way can pass a limit. Set resources.github.guard: auto."}}},
		{"a strict guard is dear", Facts{GuardStrict: true, HeaderTime: 15_000_000, Window: 60_000_000}, []Advice{
			{Setting: "resources.github.guard", Text: "Answers take 15s to begin, and a strict guard holds a place in a window of 1m0s for so long: about 20% of the quota is lost. Set resources.github.guard: auto, which bounds arrivals by arrival_slack."}}},
		{"or not", Facts{GuardStrict: true, HeaderTime: 1_000_000, Window: 60_000_000}, nil},
		{"contention", Facts{Callers: 2, Audit: Weigh(80, []Caller{{"a", 10, 48}, {"b", 10, 48}})}, []Advice{
			{Setting: "agents", Text: "2 callers send up to 96 a minute if their busiest minutes coincide, 120% of the quota of 80; one more like them makes it 180%. They will queue: give the urgent ones a higher class under agents, spread their launches, or ask for a larger quota."}}},
		{"contention of one", Facts{Callers: 1, Audit: Weigh(1.0/3, []Caller{{"a", 1, 1}})}, []Advice{
			{Setting: "agents", Text: "1 caller sends up to 1 a minute, 300% of the quota of 0.33; one more like it makes it 600%. It will queue: let it send less, or ask for a larger quota."}}},
		{"contention over a day", Facts{Callers: 2, Over: (24 * time.Hour).Microseconds(), Audit: Weigh(100.0/1440, []Caller{{"a", 1, 60.0 / 1440}, {"b", 1, 30.0 / 1440}})}, []Advice{
			{Setting: "agents", Text: "2 callers send up to 90 a day if their busiest days coincide, 90% of the quota of 100; one more like them makes it 135%. They will queue: give the urgent ones a higher class under agents, spread their launches, or ask for a larger quota."}}},
		{"contention in mode observe", Facts{Callers: 2, Observed: true, Audit: Weigh(80, []Caller{{"a", 10, 48}, {"b", 10, 48}})}, []Advice{
			{Setting: "agents", Text: "2 callers send up to 96 a minute if their busiest minutes coincide, 120% of the quota of 80; one more like them makes it 180%. Mode observe holds no request, so the provider may refuse some: set resources.github.mode: gate, let them send less, or ask for a larger quota."}}},
		{"a full limit", Facts{Callers: 2, Fullest: "tokens (model=m)", Audit: Audit{Ratio: 1, Verdict: VerdictContention, QuotaPerMin: 80}}, []Advice{
			{Setting: "agents", Text: "2 callers share the limit tokens (model=m), of which 100% was used at the peak. They will queue: give the urgent ones a higher class under agents, spread their launches, or ask for a larger quota."}}},
		{"no contention", Facts{Callers: 1, Audit: Weigh(80, []Caller{{"a", 10, 48}})}, nil},
		{"limits of unknown size", Facts{Unknown: []Stated{{Name: "a", Size: "80/min"}, {Name: "b", Size: "80/h"}}}, []Advice{
			{Setting: "resources.github.limits", Text: "The size of the limits a and b is not known: no answer has stated it. State the size in resources.github.limits, such as {name: a, size: 80/min}."}}},
		{"others on a flow", Facts{Outside: 0.3, OutsideLimit: "minute", OutsideFlow: true}, []Advice{
			{Setting: "resources.github.use", Text: "Callers outside this gate used 30% of the limit minute with the same key. Find them and send their requests through this gate. Sluice subtracts such use when responses show it; if that is too late, set resources.github.use: 70%."}}},
		{"a breaker", Facts{BreakerLimit: "hour", BreakerUntil: "14:00"}, []Advice{
			{Setting: "resources.github.breaker", Text: "The limit hour would be gone before its reset at 14:00, so lower classes are held back until then. Let them send less, or run out instead: resources.github.breaker: off."}}},
		{"cycles", Facts{Cycles: [][]string{{"a", "b"}, {"c"}}}, []Advice{
			{Setting: "agents.b.waits_for", Text: "Agents wait for each other in a circle: a > b > a (and 1 more). Remove a from agents.b.waits_for, or from what that agent states at run time."}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.facts.Resource = "github"
			got := Advise(c.facts)
			if len(got) != len(c.want) {
				t.Fatalf("%+v", got)
			}
			for i, want := range c.want {
				if got[i].Setting != want.Setting || got[i].Text != want.Text {
					t.Errorf("advice %d:\n%s: %s\nwant\n%s: %s", i, got[i].Setting, got[i].Text, want.Setting, want.Text)
				}
			}
		})
	}
}

// With all facts at once, each setting is mentioned once, refusals come first, and lists are short.
func TestAdviceOnEverything(t *testing.T) {
	t.Parallel()
	var many []string
	for i := range 100 {
		many = append(many, fmt.Sprintf("agent-%d", i))
	}
	var unknown []Stated
	for _, name := range many {
		unknown = append(unknown, Stated{Name: name, Size: "80/min"})
	}
	f := Facts{
		Resource: "r", Throttled7d: 9, Outside: 0.5, OutsideLimit: "l", Slack: 1, SlackLimit: "l", Cut: 50, CutLimit: "l",
		Unknown: unknown, Audit: Weigh(1e-300, []Caller{{"a", 1e300, 1e300}}), Callers: 1,
		GuardOff: true, GuardStrict: true, HeaderTime: 1 << 40, Window: 1, BreakerLimit: "l", Cycles: [][]string{many},
	}
	said := make(map[string]bool)
	for i, a := range Advise(f) {
		if said[a.Setting] || a.Setting == "" {
			t.Errorf("%q is named twice", a.Setting)
		}
		said[a.Setting] = true
		if len(a.Text) > 350 || strings.ContainsAny(a.Text, "\n") || strings.Contains(a.Text, "Inf") {
			t.Errorf("%d characters: %s", len(a.Text), a.Text)
		}
		if first := strings.Contains(a.Text, "429"); first != (i == 0) {
			t.Errorf("advice %d: %s", i, a.Text)
		}
	}
	if len(said) != 8 {
		t.Errorf("%d settings are named: %v", len(said), said)
	}
}
