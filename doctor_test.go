package sluice_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/memstore"
)

func diagnose(tb testing.TB, g *sluice.Gate, since time.Time) inspect.ResourceDiagnosis {
	tb.Helper()
	d, err := g.Diagnose(context.Background(), since)
	if err != nil {
		tb.Fatal(err)
	}
	if len(d.Resources) != 1 {
		tb.Fatalf("the diagnosis is %+v", d)
	}
	return d.Resources[0]
}

// settings returns the settings that have advice.
func settings(tb testing.TB, g *sluice.Gate) []string {
	tb.Helper()
	list := []string{}
	for _, a := range diagnose(tb, g, bubbleStart).Advice {
		if a.Text == "" {
			tb.Errorf("no word about %s", a.Setting)
		}
		list = append(list, a.Setting)
	}
	return list
}

// wantAdvice fails unless the advice about a setting contains all of these texts.
func wantAdvice(tb testing.TB, g *sluice.Gate, setting string, says ...string) {
	tb.Helper()
	d := diagnose(tb, g, bubbleStart)
	i := slices.IndexFunc(d.Advice, func(a inspect.Advice) bool { return a.Setting == setting })
	if i < 0 {
		tb.Fatalf("advice is %+v, want some about %s", d.Advice, setting)
	}
	for _, s := range says {
		if !strings.Contains(d.Advice[i].Text, s) {
			tb.Errorf("the advice about %s is %q, want it to say %q", setting, d.Advice[i].Text, s)
		}
	}
	if yaml := d.Advice[i].YAML; yaml != "" {
		if _, err := config.Parse("snippet.yaml", []byte(yaml), nil); err != nil {
			tb.Errorf("the advice about %s is no configuration: %v\n%s", setting, err, yaml)
		}
	} else if setting != "agents" {
		tb.Errorf("the advice about %s changes nothing", setting)
	}
}

// advises reports whether any advice contains the text.
func advises(tb testing.TB, g *sluice.Gate, text string) bool {
	tb.Helper()
	return slices.ContainsFunc(diagnose(tb, g, bubbleStart).Advice, func(a inspect.Advice) bool { return strings.Contains(a.Text, text) })
}

// Two callers, one with a peak, compared with a quota per minute.
func TestDiagnosisSetsCallersAgainstTheQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, rolling(60, time.Minute), bucket(wide, time.Second, wide))
		spend(t, g, from("a"), 20)
		for range 9 {
			time.Sleep(time.Minute)
			spend(t, g, from("a"), 10)
			spend(t, g, from("b"), 20)
		}
		d := diagnose(t, g, bubbleStart)
		got := fmt.Sprintf("%.1f: mean %.1f, peak %.1f, ratio %.3f %s, one more %.3f", d.QuotaPerMin, d.MeanPerMin, d.PeakPerMin, d.Ratio, d.Verdict, d.OneMoreRatio)
		if want := "60.0: mean 31.0, peak 40.0, ratio 0.667 ok, one more 1.000"; got != want {
			t.Errorf("it is %s, want %s", got, want)
		}
		if len(d.Callers) != 2 || d.Callers[0].Name != "b" || d.Callers[0].PeakPerMin != 20 || len(d.Advice) != 0 {
			t.Errorf("callers are %+v, advice %+v", d.Callers, d.Advice)
		}
		time.Sleep(time.Minute)
		spend(t, g, from("b"), 28) // 48 of 60
		d = diagnose(t, g, bubbleStart)
		if d.Ratio != 0.8 || d.Verdict != "contention" || d.OneMoreRatio != 1.2 {
			t.Errorf("at 80%% it is %+v", d)
		}
		wantAdvice(t, g, "agents", "2 callers", "80% of the quota of 60", "120%")
		d = diagnose(t, g, time.Now().Add(time.Minute))
		if d.Ratio != 0 || d.Verdict != "ok" || len(d.Callers) != 0 || d.QuotaPerMin != 60 {
			t.Errorf("with nothing sent it is %+v", d)
		}
	})
}

// Each limit is compared with what was sent in a window of its length. The quota is the one that callers come closest to.
func TestQuotaIsTheLimitThatCallersComeClosestTo(t *testing.T) {
	own := sluice.Limit{Name: "own", Kind: sluice.Bucket, Size: 1, Window: time.Hour, Per: []sluice.Scope{sluice.PerAgent}}
	tokens := sluice.Limit{Name: "tokens", Kind: sluice.Rolling, Size: 1, Window: time.Hour, Unit: "tokens"}
	unknown := sluice.Limit{Name: "unknown", Kind: sluice.Rolling, Window: time.Hour}
	day := sluice.Limit{Name: "day", Kind: sluice.Fixed, Size: 14400, Window: 24 * time.Hour}
	for _, c := range []struct {
		limits []sluice.Limit
		want   float64
	}{
		{nil, 0},
		{[]sluice.Limit{places(5), own, tokens, unknown}, 0},
		{[]sluice.Limit{places(5), own, tokens, unknown, rolling(100, time.Minute)}, 100},
		{[]sluice.Limit{rolling(100, time.Minute), day}, 100},
		{[]sluice.Limit{bucket(5, time.Second, 1000), day}, 300},
		{[]sluice.Limit{day}, 10},
		{[]sluice.Limit{bucket(5, time.Second, 1000)}, 300}, // what it gives back, not what it holds
	} {
		g := open(t, c.limits...)
		pass(t, g, from("a"))
		if got := diagnose(t, g, time.Time{}).QuotaPerMin; got != c.want {
			t.Errorf("%+v: %v a minute, want %v", c.limits, got, c.want)
		}
	}
}

// One send is 1% of a hundred a day, for all requests together and for those of a model.
func TestLongWindowsAreJudgedOverTheirOwnLength(t *testing.T) {
	for _, per := range [][]sluice.Scope{nil, {sluice.PerModel}} {
		synctest.Test(t, func(t *testing.T) {
			g := open(t, sluice.Limit{Name: "day", Kind: sluice.Fixed, Size: 100, Window: 24 * time.Hour, Per: per})
			one := sluice.Request{Resource: "api", Agent: "a", Model: "m"}
			pass(t, g, one)
			if d := diagnose(t, g, bubbleStart); d.Verdict != "ok" || d.Ratio > 0.011 || d.OneMoreRatio > 0.021 || d.Fullest != "" || len(d.Advice) != 0 {
				t.Errorf("after one send it is %+v", d)
			}
			for range 84 {
				time.Sleep(time.Minute)
				pass(t, g, one)
			}
			if d := diagnose(t, g, bubbleStart); d.Verdict != "contention" || d.Ratio < 0.84 || d.Ratio > 0.86 {
				t.Errorf("after 85 sends it is %s at %v", d.Verdict, d.Ratio)
			}
		})
	}
}

// Requests that wait for a place tell nothing about a quota.
func TestNoVerdictOnPlacesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t, places(1))
		held := acquire(t, g, from("a"))
		c := &crowd{tb: t, gate: g}
		c.ask("b", from("b"))
		synctest.Wait()
		if d := diagnose(t, g, bubbleStart); d.Verdict != "unknown" || d.Ratio != 0 || d.Fullest != "" {
			t.Errorf("it is %+v", d)
		}
		end(t, held)
		c.order()
	})
}

// One refusal a week is bad luck. More lead to advice.
func TestRefusalsRaiseAnAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		resource sluice.Resource
		setting  string
		says     string
	}{
		"guard off":  {sluice.Resource{Guard: store.GuardOff, Limits: []sluice.Limit{rolling(wide, time.Minute)}}, "resources.api.guard", "auto"},
		"guard":      {sluice.Resource{Limits: []sluice.Limit{rolling(wide, time.Minute)}}, "resources.api.arrival_slack", "slack"},
		"use":        {sluice.Resource{Limits: []sluice.Limit{places(wide)}}, "resources.api.use", "95%"},
		"less use":   {sluice.Resource{Use: 80, Limits: []sluice.Limit{places(wide)}}, "resources.api.use", "75%"},
		"no limits":  {sluice.Resource{}, "resources.api.limits", "no limit is known"},
		"not stated": {sluice.Resource{Limits: []sluice.Limit{{Name: "m", Kind: sluice.Rolling, Window: time.Minute}}}, "resources.api.limits", "limit m"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openResource(t, c.resource)
				refuse(t, g, sluice.Answer{})
				if advises(t, g, "429") {
					t.Error("one refusal raises an advice")
				}
				time.Sleep(6 * 24 * time.Hour)
				refuse(t, g, sluice.Answer{})
				wantAdvice(t, g, c.setting, "2 requests were refused (429) in the last 7 days", c.says)
				if got := settings(t, g); got[0] != c.setting {
					t.Errorf("advice is about %q, want %s first", got, c.setting)
				}
				if n := state(t, g).Throttled7d; n != 2 {
					t.Errorf("%d refusals in seven days", n)
				}
				time.Sleep(24*time.Hour - 30*time.Minute)
				if n := state(t, g).Throttled7d; n != 2 {
					t.Errorf("%d refusals in seven days, half an hour before they are over", n)
				}
				time.Sleep(90 * time.Minute)
				if n := state(t, g).Throttled7d; n != 1 {
					t.Errorf("%d refusals in seven days, want the first forgotten", n)
				}
				time.Sleep(6 * 24 * time.Hour)
				if advises(t, g, "429") {
					t.Error("after a week there is still advice about them")
				}
			})
		})
	}
}

func TestAdviceOnWhatIsSeen(t *testing.T) {
	stated := func(size, remaining int64) sluice.Answer {
		return sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "hour", Size: size, Remaining: remaining, ResetIn: time.Hour}}}
	}
	for _, c := range []struct {
		name    string
		config  sluice.Config
		limit   sluice.Limit
		prepare func(tb testing.TB, g *sluice.Gate)
		setting string
		says    []string
	}{
		{
			name: "outside", limit: hourly(1000), setting: "resources.api.reserve", says: []string{"Callers outside this gate used 30% of the limit hour", "30%"},
			prepare: func(tb testing.TB, g *sluice.Gate) {
				ticket := acquire(tb, g, from("a"))
				answer(tb, ticket, stated(1000, 700))
				end(tb, ticket)
			},
		},
		{
			name: "breaker", limit: hourly(1000), setting: "resources.api.breaker", says: []string{"limit hour", "2000-01-01T01:00:0", "off"},
			prepare: func(tb testing.TB, g *sluice.Gate) { trip(tb, g, "low", "p2") },
		},
		{
			name: "slack", limit: rolling(1000, time.Minute), setting: "resources.api.arrival_slack", says: []string{"limit rolling to 2s"},
			prepare: func(tb testing.TB, g *sluice.Gate) { refuse(tb, g, sluice.Answer{}) },
		},
		{
			name: "cycle", limit: hourly(1000), setting: "agents.b.waits_for", says: []string{"a > b > a"},
			config: sluice.Config{Agents: map[string]sluice.Agent{"a": {WaitsFor: []string{"b"}}, "b": {WaitsFor: []string{"a"}}}},
		},
		{
			name: "unknown", setting: "resources.api.limits", says: []string{"limit m is not known"},
			limit: sluice.Limit{Name: "m", Kind: sluice.Rolling, Window: time.Minute},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c.config.Resources = map[string]sluice.Resource{"api": {Limits: []sluice.Limit{c.limit}}}
				g := openConfig(t, c.config)
				if c.prepare != nil {
					c.prepare(t, g)
				}
				wantAdvice(t, g, c.setting, c.says...)
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		if got := settings(t, open(t, hourly(1000))); len(got) != 0 {
			t.Errorf("with nothing to say, advice is about %q", got)
		}
	})
}

func TestDiagnosisAsJSON(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := open(t)
		d, err := g.Diagnose(t.Context(), bubbleStart)
		if err != nil {
			t.Fatal(err)
		}
		v := asJSON(t, d)
		const want = "advice callers fullest mean_per_min name one_more_ratio peak_per_min quota_per_min ratio verdict"
		if got := keys(t, at(t, v, "resources", 0)); keys(t, v) != "resources" || got != want {
			t.Errorf("keys are\n  %s, want\n  %s", got, want)
		}
		if got := keys(t, at(t, v, "resources", 0, "advice", 0)); got != "setting text yaml" {
			t.Errorf("keys of an advice are %s", got)
		}
		if _, ok := at(t, v, "resources", 0, "callers").([]any); !ok || at(t, v, "resources", 0, "verdict") != "unknown" || at(t, v, "resources", 0, "quota_per_min") != nil || at(t, v, "resources", 0, "fullest") != nil {
			t.Errorf("it is %v", v)
		}
	})
}

// Doctor ignored limits per model that responses had stated, and said ok at 120 of 120. It also ignored a used-up token
// limit.
func TestDiagnosisAtSaturationOfLearnedLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		each := sluice.Limit{Name: "rpm", Kind: sluice.Bucket, Window: time.Minute, Per: []sluice.Scope{sluice.PerModel}}
		tokens := sluice.Limit{Name: "tokens", Kind: sluice.Rolling, Size: 1000, Window: time.Minute, Unit: "tokens", Per: each.Per}
		g := open(t, each, tokens)
		if d := diagnose(t, g, bubbleStart); d.Verdict != "unknown" || d.QuotaPerMin != 0 {
			t.Errorf("before anything is known it is %+v", d)
		}
		for model, size := range map[string]int64{"opus": 120, "haiku": 600} {
			ticket := acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Model: model})
			answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "rpm", Size: size, Remaining: size - 1, ResetIn: time.Second}}})
			end(t, ticket)
		}
		for range 119 {
			end(t, acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Model: "opus"}))
		}
		d := diagnose(t, g, bubbleStart)
		if d.Verdict != "contention" || d.QuotaPerMin != 720 || d.Ratio < 1 || d.Fullest != "rpm (model=opus)" {
			t.Errorf("at 120 of 120 it is %s: quota %v, ratio %v, %q", d.Verdict, d.QuotaPerMin, d.Ratio, d.Fullest)
		}
		p, err := g.Pool(t.Context(), "api")
		if err != nil || p.TotalLimit != 720 || p.Allocations["a"].Allocated != 720 || p.Allocations["a"].Used != 121 {
			t.Errorf("%+v %v", p, err)
		}
		time.Sleep(2 * time.Minute)
		end(t, acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Model: "haiku", Cost: []sluice.Amount{{Unit: "tokens", N: 1000}}}))
		if d := diagnose(t, g, time.Now().Add(-time.Minute)); d.Verdict != "contention" || d.Fullest != "tokens (model=haiku)" {
			t.Errorf("without tokens it is %s, %q", d.Verdict, d.Fullest)
		}
	})
}

// What a response states of one model is known of the limit: doctor said that no answer has stated it, and advised a size that caps
// every model.
func TestALimitThatOneModelStatesIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		per := []sluice.Scope{sluice.PerModel}
		g := open(t, sluice.Limit{Name: "rpm", Kind: sluice.Bucket, Window: time.Minute, Per: per})
		pass(t, g, sluice.Request{Resource: "api", Agent: "a", Model: "opus"})
		ticket := acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Model: "haiku"})
		answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "rpm", Size: 600, Remaining: 599, ResetIn: time.Second}}})
		end(t, ticket)
		if d := diagnose(t, g, bubbleStart); len(d.Advice) > 0 {
			t.Errorf("doctor says %v", d.Advice)
		}
	})
}

// A program that uses the same key without the gate shows in the remaining amounts of responses. Its use is measured,
// subtracted, and forgotten when it has recovered.
func TestOutsideUseOfFlows(t *testing.T) {
	for _, c := range []struct {
		limit sluice.Limit
		gone  time.Duration // after which nothing of it is left
	}{
		{rolling(100, time.Minute), time.Minute + time.Second},
		{bucket(100, time.Minute, 100), 25 * time.Second},
	} {
		t.Run(c.limit.Kind.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := open(t, c.limit)
				says := func(remaining int64) {
					ticket := acquire(t, g, from("a"))
					answer(t, ticket, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{
						{Limit: c.limit.Name, Size: 100, Remaining: remaining, ResetIn: store.NotStated},
					}})
					end(t, ticket)
				}
				for i := range 10 {
					says(int64(99 - i)) // that is us
				}
				if l := state(t, g).Limits[0]; l.Outside != 0 || l.Used != 10 {
					t.Errorf("our own use is taken for somebody else's: %+v", l)
				}
				says(59) // 11 of them ours
				l := state(t, g).Limits[0]
				if l.Outside != 30 || l.Used != 41 || l.Remaining != 59 {
					t.Errorf("with 30 spent by somebody else, it is %+v", l)
				}
				if !advises(t, g, "Callers outside this gate used 30% of the limit "+c.limit.Name) {
					t.Errorf("no word of it: %+v", diagnose(t, g, bubbleStart).Advice)
				}
				says(58)
				if l := state(t, g).Limits[0]; l.Outside != 30 {
					t.Errorf("it is counted twice: %+v", l)
				}
				spend(t, g, from("a"), 58)
				wantRefused(t, g, from("a"), "limit") // the rest is theirs
				time.Sleep(c.gone)
				if l := state(t, g).Limits[0]; c.limit.Kind == sluice.Rolling && (l.Outside != 0 || l.Used != 0) {
					t.Errorf("after %v it is %+v", c.gone, l)
				}
				time.Sleep(time.Minute)
				if l := state(t, g).Limits[0]; l.Outside != 0 || l.Used != 0 {
					t.Errorf("after another minute it is %+v", l)
				}
				if advises(t, g, "Somebody else") {
					t.Error("there is still advice about it")
				}
			})
		})
	}
}

// A response that took long to arrive reports use that has recovered since. That is not outside use.
func TestOldAnswersAreNoOutsideUse(t *testing.T) {
	for _, limit := range []sluice.Limit{rolling(100, time.Minute), bucket(100, time.Minute, 100)} {
		synctest.Test(t, func(t *testing.T) {
			g := open(t, limit)
			spend(t, g, from("a"), 50)
			time.Sleep(30 * time.Second)
			late := acquire(t, g, from("slow"))
			time.Sleep(40 * time.Second) // the fifty are a window old
			answer(t, late, sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{
				{Limit: limit.Name, Size: 100, Remaining: 49, ResetIn: store.NotStated},
			}})
			end(t, late)
			want := int64(0)
			if limit.Kind == sluice.Bucket {
				want = 50 - 25 // half of it had drained when the request was granted: the other half was not ours
			}
			if l := state(t, g).Limits[0]; l.Outside > want {
				t.Errorf("%s: %+v", limit.Kind, l)
			}
		})
	}
}

// The busiest minute hides bursts. Doctor said ok while a window of ten seconds was three times full, and after that while
// most sends had been refused.
func TestBurstsAreContention(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := memstore.New()
		defer st.Close()
		opened := func(c sluice.Config) *sluice.Gate {
			g, err := sluice.OpenWithStore(t.Context(), st, c)
			if err != nil {
				t.Fatal(err)
			}
			return g
		}
		short := func(observe bool) sluice.Config {
			return sluice.Config{Resources: map[string]sluice.Resource{"api": {Observe: observe, Limits: []sluice.Limit{rolling(20, 10*time.Second)}}}}
		}
		g := opened(short(true))
		defer g.Close()
		for i := range 60 {
			v := store.VerdictOK
			if i >= 20 {
				v = store.VerdictThrottled
			}
			sends(t, g, from("a"), v)
		}
		if d := diagnose(t, g, bubbleStart); d.Verdict != "contention" || d.Fullest == "" || d.Ratio < 3 {
			t.Errorf("while it is full: %s, ratio %v of %q", d.Verdict, d.Ratio, d.Fullest)
		}
		time.Sleep(5 * time.Minute)
		if d := diagnose(t, g, bubbleStart); d.Verdict != "contention" || d.Ratio >= 0.8 || d.Refused != 40 || d.Sent != 60 {
			t.Errorf("later: %s, ratio %v, %d of %d refused", d.Verdict, d.Ratio, d.Refused, d.Sent)
		}
		wantAdvice(t, g, "agents", "refused 40 of 60 requests (429), although 1 caller sends up to 60 a minute", "resources.api.mode: gate")

		// After a switch to mode gate, advice to switch is out of date.
		c := short(false)
		defer opened(c).Close()
		c.ReadOnly, c.Others = true, func(pool string) string { return pool }
		look := opened(c)
		d, err := look.Diagnose(t.Context(), bubbleStart)
		if err != nil || len(d.Resources) != 2 {
			t.Fatalf("%+v, %v", d, err)
		}
		for _, a := range d.Resources[1].Advice {
			if strings.Contains(a.Setting+a.Text, "(observed)") || strings.Contains(a.Text, "mode: gate") {
				t.Errorf("advice %+v", a)
			}
		}
		if s, err := look.Status(t.Context()); err != nil || s.Resources[1].Advice != nil {
			t.Errorf("%+v, %v", s, err)
		}
		if err := look.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A full window of ten seconds is contention. One send fills a limit of 1/s for a moment, which is none.
func TestFullShortWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		full := open(t, rolling(20, 10*time.Second))
		spend(t, full, from("a"), 20)
		if d := diagnose(t, full, bubbleStart); d.Verdict != "contention" || d.Fullest == "" {
			t.Errorf("%s, ratio %v of %q", d.Verdict, d.Ratio, d.Fullest)
		}
		g := open(t, rolling(1, time.Second))
		spend(t, g, from("a"), 1)
		if d := diagnose(t, g, bubbleStart); d.Verdict != "ok" {
			t.Errorf("%s, ratio %v of %q", d.Verdict, d.Ratio, d.Fullest)
		}
	})
}
