package metrics

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/sluicehttp"
	"github.com/sluicehq/sluice/store"
)

var hostile = []string{
	"", `"} 1` + "\n" + `sluice_store_up{x="`, "\\", "a\nb", "<script>alert(1)</script>", "\u202Eright to left", "\xff\xfe\x00", strings.Repeat("x", 10_000),
	strings.Repeat("é", 10_000), strings.Repeat("x", maxText-1) + "é",
}

func TestClean(t *testing.T) {
	for _, name := range hostile {
		if got := clean(name); !utf8.ValidString(got) || len(got) > 3*maxText {
			t.Errorf("%.40q becomes %d bytes, valid: %v", name, len(got), utf8.ValidString(got))
		}
	}
	if got := clean(strings.Repeat("x", maxText-1) + "é"); got != strings.Repeat("x", maxText-1) {
		t.Errorf("a letter was cut in two: %q", got)
	}
}

// Names in events and exchanges come from outside. None breaks the output, or makes it grow without bound.
func TestHostileNames(t *testing.T) {
	r, _ := open(t, sluice.Config{Resources: api(hourly(10))})
	kinds := []string{
		inspect.EventSend, inspect.EventCancel, inspect.EventAnswer, inspect.EventUsage, inspect.EventThrottled, inspect.EventPause, inspect.EventResume, inspect.EventRefused,
		inspect.EventWouldWait, inspect.EventLeaseLost, inspect.EventStoreLost, inspect.EventStoreBack, inspect.EventDropped, inspect.EventBudget, "not known",
	}
	for _, name := range hostile {
		for _, kind := range kinds {
			r.Event(inspect.Event{
				Kind: kind, Resource: name, Class: name, Agent: name, Limit: name, Reason: name, Verdict: name, Scope: name, Mode: name, Error: name,
				WaitedMS: -1, ForMS: -1, Count: -1, Units: map[string]int64{name: 1, "input_tokens": -5, sluice.USD: -1},
			})
		}
		r.Done(sluicehttp.Exchange{Resource: name, Class: name, Ticket: name, Model: name, Agent: name, Status: -1, Micros: -1})
	}
	body := scrape(t, r)
	if _, err := r.registry.Gather(); err != nil {
		t.Error(err)
	}
	if n := len(grep(body, "sluice_store_up")); n != len("sluice_store_up 1\n") {
		t.Errorf("a name made up metrics:\n%s", grep(body, "sluice_store_up"))
	}
	has(t, body, `sluice_sends_total{class="unknown",resource="unknown"} 1`)
	if !strings.Contains(body, `resource="\"} 1\nsluice_store_up{x=\""`) {
		t.Error("names are not quoted")
	}
}

// series returns how many series a registry exports.
func series(tb testing.TB, r *Registry) (n int) {
	tb.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	for _, f := range families {
		if strings.HasPrefix(f.GetName(), prefix) {
			n += len(f.GetMetric())
		}
	}
	return n
}

// The output stays bounded, however many agents, models, users and keys there are.
func TestCardinality(t *testing.T) {
	r, g := open(t, sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{
		hourly(100_000), {Name: "each", Kind: sluice.Fixed, Size: 100, Window: time.Hour, Per: []sluice.Scope{sluice.PerAgent}},
		{Name: "model", Kind: sluice.Fixed, Size: 100_000, Window: time.Hour, Per: []sluice.Scope{sluice.PerModel}},
	}}}, Budgets: []sluice.Budget{{Name: "own", Per: sluice.BudgetUser, Micros: 1e6}}})
	ctx := context.Background()
	use := func(from, to int) {
		for i := from; i < to; i++ {
			name := fmt.Sprint("name-", i)
			tk, err := g.Try(ctx, sluice.Request{
				Resource: "api", Agent: name, User: name, Model: name, Tool: name, Class: sluice.P0, Cost: []sluice.Amount{{Unit: sluice.USD, N: 10}},
			})
			if err != nil {
				t.Fatal(err)
			}
			r.Done(sluicehttp.Exchange{Resource: "api", Class: sluice.P0, Ticket: tk.ID(), Agent: name, User: name, Model: name, Status: 200})
			r.Done(sluicehttp.Exchange{Resource: "api", Class: name, Agent: name})
			if err := tk.Close(sluice.Amount{Unit: name, N: 1}); err != nil {
				t.Fatal(err)
			}
			if err := g.Observe(ctx, sluice.Request{Resource: "api", Agent: name, Class: name}, sluice.Answer{Verdict: store.VerdictOK}); err != nil {
				t.Fatal(err)
			}
		}
	}
	use(0, 200)
	series(t, r) // to read is an operation of the store, which is told from the next scrape on
	before := series(t, r)
	use(200, 600)
	if after := series(t, r); after != before || after > 1000 {
		t.Errorf("%d series, %d before more came", after, before)
	}
	body := scrape(t, r)
	used := grep(body, "sluice_limit_used")
	if n := strings.Count(used, `scope="agent=`) + strings.Count(used, `scope="model=`); n != MaxScopes {
		t.Errorf("%d scopes are shown, want %d", n, MaxScopes)
	}
	if n := strings.Count(grep(body, "sluice_budget_used_dollars"), "\n"); n > MaxScopes+1 {
		t.Errorf("%d accounts are shown", n)
	}
}

func TestLevels(t *testing.T) {
	var all []inspect.LimitStatus
	at := time.Unix(1e9, 0)
	var want int64
	for i := range 100 {
		all = append(all, inspect.LimitStatus{
			Name: "each", Unit: "requests", Scope: fmt.Sprint("agent=", i), Limit: 1000, Used: int64(i), Remaining: int64(1000 - i), ResetAt: &at,
			Light: "amber", Breaker: "gliding",
		})
		want += int64(i)
	}
	all = append(all, inspect.LimitStatus{Name: "all", Unit: "requests", Limit: 5, Breaker: "open", Light: "red", ResetAt: &at}, inspect.LimitStatus{Name: "new", Unit: "requests"})
	list := levels(all)
	if len(list) != 2+MaxScopes+1 {
		t.Fatalf("%d are shown", len(list))
	}
	if l := list[0]; l.name != "all" || l.light != 2 || l.breaker != 2 || l.reset == nil || !l.known || list[1].known {
		t.Errorf("limits without a scope: %+v, %+v", l, list[1])
	}
	if l := list[2]; l.scope != "agent=99" || l.used != 99 {
		t.Errorf("the most used comes first: %+v", l)
	}
	last := list[len(list)-1]
	if last.scope != rest || last.size != 36*1000 || last.light != 1 || last.breaker != 1 || last.reset != nil {
		t.Errorf("the rest: %+v", last)
	}
	var sum int64
	for _, l := range list {
		sum += l.used
	}
	if sum != want {
		t.Errorf("%d are used in all, want %d", sum, want)
	}
}

// Names that differ only beyond the cut are merged.
func TestLongNamesMerge(t *testing.T) {
	long := strings.Repeat("n", 300)
	list := levels([]inspect.LimitStatus{
		{Name: "l", Scope: long + "a", Limit: 10, Used: 1}, {Name: "l", Scope: long + "b", Limit: 10, Used: 2},
	})
	if len(list) != 1 || list[0].used != 3 || list[0].size != 20 {
		t.Errorf("%+v", list)
	}
	ch := make(chan prometheus.Metric, 100)
	var d budgetDescs
	d.init((&maker{}).desc)
	d.tell(&teller{ch}, []inspect.BudgetStatus{{Name: "b", Who: long + "a", SizeUSD: 1, UsedUSD: 1}, {Name: "b", Who: long + "b", SizeUSD: 1}, {Name: "free"}})
	if len(ch) != 4 {
		t.Errorf("%d are told, want 4", len(ch))
	}
}

func TestBounded(t *testing.T) {
	b := bounded{most: 2}
	for _, x := range [][2]string{{"a", "a"}, {"", unknown}, {"b", "b"}, {"c", other}, {"a", "a"}} {
		if got := b.label(x[0]); got != x[1] {
			t.Errorf("%q becomes %q, want %q", x[0], got, x[1])
		}
	}
	if got := b.optional(""); got != "" {
		t.Errorf("none becomes %q", got)
	}
}
