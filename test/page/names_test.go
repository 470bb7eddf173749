package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// hostile are names that somebody chose to see what happens.
var hostile = []string{
	`<img src=x onerror="document.title='taken'">`,
	`<script>document.title='taken'</script>`,
	`"><svg onload=document.title='taken'><b id=theirs>`,
	`</title><h1 id=theirs>taken</h1>`,
	"\u202egnirts desrever\u202c", "\u2067\u05e9\u05dc\u05d5\u05dd",
	"javascript:document.title='taken'", "__proto__", "constructor", "toString",
	"line\nbreak\x00zero\u200bwidth", "🐉" + strings.Repeat("é", 100),
}

// theirs finds elements that no module of the page makes.
const theirs = `document.querySelectorAll('#theirs, img:not(header img), main script, body > script, iframe, main h1').length`

func harmless(b *tab) {
	b.Helper()
	if title := b.text(`document.title`); !strings.HasSuffix(title, "Sluice") || strings.Contains(title, "taken") {
		b.Errorf("the title is %q", title)
	}
	if n := b.text(theirs); n != "0" {
		b.Errorf("%s elements were made of names", n)
	}
	if b.is(`/[\u202a-\u202e\u200b]/.test(document.body.textContent)`) {
		b.Error("a name can turn text around, or hide some")
	}
	if b.is(`document.documentElement.scrollWidth > innerWidth`) {
		b.Errorf("the page is %s wide, of %s", b.text(`document.documentElement.scrollWidth`), b.text(`innerWidth`))
	}
}

// Through the gate: as agents, users, models and reasons.
func TestHostileNames(t *testing.T) {
	r := begin(t, plain)
	b := r.open(chromedp.EmulateViewport(360, 740))
	b.until(live)
	b.do(`const k = document.getElementById('event-kind'); k.value = 'all'; k.dispatchEvent(new Event('change'))`)
	shown := 0
	for i, name := range hostile {
		user := hostile[(i+1)%len(hostile)]
		if err := r.gate.Heartbeat(t.Context(), sluice.JoinRequest{Agent: name, User: user, Machine: name, WaitsFor: []string{user}}); err != nil {
			t.Logf("the gate itself refuses %q: %v", name, err)
			continue
		}
		shown++
		if ticket, err := r.gate.Try(t.Context(), sluice.Request{Resource: "search", Agent: name, Model: user}); err == nil {
			_ = ticket.Close()
		}
	}
	if err := r.gate.Pause(t.Context(), "search", time.Hour, hostile[0]); err != nil {
		t.Fatal(err)
	}
	b.until(paused)
	b.until(fmt.Sprintf(`document.querySelectorAll('.agents .agent').length >= %d`, shown))
	b.until(`document.getElementById('events').childElementCount > 3`)
	harmless(b)
}

// Whatever the API may say, in every place where it says something: markup, and ten kilobytes of it.
func TestHostileAnswers(t *testing.T) {
	r := begin(t, plain)
	names := append([]string{strings.Repeat("<b id=theirs>", 800), strings.Repeat("w", 10_000), strings.Repeat("\u202eא", 5000)}, hostile...)
	now := time.Now()
	at := now.Add(time.Hour)
	r.fake = func(path string) any {
		switch path {
		case "/v1/status":
			s := inspect.Status{Store: names[0]}
			for _, n := range names {
				c := inspect.ResourceStatus{Name: n, Key: n, Mode: n, State: n, Reason: n, Until: &at, Light: n, PausedUntil: &at, PauseReason: n, Last429: &now, Waiting: map[string]int{n: 3}}
				c.Limits = []inspect.LimitStatus{{Name: n, Kind: n, Unit: n, Limit: 10, Used: 5, Outside: 2, Light: n, Breaker: n, DiffersFrom: n, GoneAt: &at, ResetAt: &at}, {Name: n, Scope: n, Limit: 1, Used: 1}}
				c.Gates = []inspect.PauseStatus{{Scope: n, Phase: n, Cause: n, Until: &at}}
				c.Outage = &inspect.OutageStatus{Why: n, Mode: n}
				s.Resources = append(s.Resources, c)
				s.Agents = append(s.Agents, inspect.AgentStatus{Name: n, Class: n, User: n, Machine: n, Resource: n, State: n, PauseChain: []string{n, n}, WaitsFor: []string{n}, LeaseExpiresAt: &at})
				s.Budgets = append(s.Budgets, inspect.BudgetStatus{Name: n, Who: n, SizeUSD: 1, UsedUSD: 2, Period: string(n), Over: string(n)})
			}
			s.Cycles = [][]string{names}
			return s
		case "/v1/why":
			var all []inspect.Waiting
			for _, n := range names {
				all = append(all, inspect.Waiting{Ticket: n + ".1-1", Agent: n, Class: n, Limit: n, HeldBy: names, Reason: n, ExpectedAt: &at})
			}
			return map[string]any{"waiting": all}
		case "/v1/recent":
			var list, last []any
			for _, n := range names {
				last = append(last, map[string]any{"name": n, "sends": 3})
				list = append(list, map[string]any{"time": now, "resource": n, "agent": n, "class": n, "model": n, "state": n, "verdict": n, "status": 200})
			}
			return map[string]any{"requests": list, "resources": last, "agents": last}
		case "/v1/history":
			var list []any
			var events []inspect.Event
			for _, n := range names {
				list = append(list, map[string]any{"resource": n, "name": n, "total": map[string]any{"sends": 5, "usd": 1, "guessed_usd": 0.5, "input_tokens": 1, "output_tokens": 1}, "points": []any{map[string]any{"at": now, "sends": 3, "classes": map[string]any{n: 3}}}})
				events = append(events, inspect.Event{Time: now, Kind: "pause", Resource: n, Scope: n, Reason: n, Until: &at}, inspect.Event{Time: now, Kind: "state", State: n, Was: n, Reason: n})
			}
			return map[string]any{"since": now.Add(-time.Hour), "until": now, "step_ms": 60_000, "resources": list, "models": list, "agents": list, "events": events}
		case "/v1/config":
			return map[string]any{"yaml": names[0], "version": names[0], "served": []any{map[string]any{"resource": names[0], "provider": "anthropic"}, map[string]any{"resource": "x", "provider": names[0]}}}
		}
		return nil
	}
	b := r.open(chromedp.EmulateViewport(360, 740))
	b.until(live)
	b.until(fmt.Sprintf(`document.querySelectorAll('tbody.resource').length === %d`, len(names)))
	b.do(`document.querySelectorAll('details').forEach(d => d.setAttribute('open', '')); document.querySelectorAll('.row-button').forEach(d => d.click())`)
	b.until(`document.querySelectorAll('.waiters li').length > 3 && document.querySelectorAll('.money tbody tr').length > 3 && document.querySelectorAll('.recent tbody tr').length > 3`)
	for _, n := range names {
		r.hub.Add(inspect.Event{Time: now, Kind: "pause", Resource: n, Agent: n, Class: n, Model: n, Reason: n, Limit: n, Scope: n, Mode: n, Error: n, Verdict: n})
		r.hub.Add(inspect.Event{Time: now, Kind: n, Resource: n})
	}
	b.until(`document.getElementById('events').childElementCount > 20`)
	b.do(`document.querySelector('.actions button').click()`)
	b.until(`document.getElementById('control').open`)
	harmless(b)
	if long := b.text(`Math.max(...[...document.querySelectorAll('bdi')].map(e => e.textContent.length))`); len(long) > 3 {
		t.Errorf("a name of %s characters is shown", long)
	}
	if long := b.text(`Math.max(...[...document.querySelectorAll('[title]')].map(e => e.title.length))`); len(long) > 3 {
		t.Errorf("a title of %s characters is there", long)
	}
}

// A large fleet is shown, and following it does not keep the browser busy.
func TestManyAgents(t *testing.T) {
	const agents, resources = 500, 50
	text := "resources:\n"
	for i := range resources {
		text += fmt.Sprintf("  api-%02d: {limits: [{name: minute, size: 600/min}, {name: day, size: 10000/day, kind: fixed, resets: \"00:00 UTC\"}]}\n", i)
	}
	r := begin(t, text)
	for i := range agents {
		m := sluice.JoinRequest{Agent: fmt.Sprintf("agent-%03d", i), Class: []string{"p0", "p1", "p2"}[i%3], User: "u", Machine: fmt.Sprintf("box-%d", i%20)}
		if err := r.gate.Heartbeat(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	b := r.open(chromedp.EmulateViewport(1440, 900))
	b.do(`window.faster = 4`)
	b.until(fmt.Sprintf(`document.querySelectorAll('.agents .agent').length === %d`, agents))
	b.until(live)
	// Resources that nobody uses are folded, and named.
	b.until(`document.querySelectorAll('tbody.resource').length === 0 && document.getElementById('unused').textContent.includes('50 resources are ready')`)
	b.do(`document.querySelector('#unused button').click()`)
	b.until(fmt.Sprintf(`document.querySelectorAll('tbody.resource').length === %d`, resources))
	before := r.asked.Load()
	b.do(`window.row = document.querySelector('.agents .agent')`)
	soon(b.ctx, t, "it is asked again and again", func() bool { return r.asked.Load() >= before+3 })
	if !b.is(`window.row.isConnected`) {
		t.Error("rows are made anew with every answer")
	}
	b.do(`const f = document.getElementById('agent-filter'); f.value = 'agent-49'; f.dispatchEvent(new Event('input'))`)
	b.until(`document.querySelectorAll('.agents .agent').length === 10`)
	// Those who leave go.
	if err := r.gate.Leave(sluice.JoinRequest{Agent: "agent-499"}); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelectorAll('.agents .agent').length === 9`)
}
