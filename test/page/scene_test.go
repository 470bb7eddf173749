package page

import (
	"fmt"
	"math"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// scene is a moment in the life of a fleet, as the API tells of it.
type scene struct {
	name   string
	now    time.Time
	status inspect.Status
	why    []inspect.Waiting
	recent map[string]any
	past   func(length time.Duration) map[string]any
	served []map[string]string
	says   []string // words that are on the page
}

func in(now time.Time, d time.Duration) *time.Time {
	t := now.Add(d).UTC()
	return &t
}

// answer is what the API would say.
func (s *scene) answer(path, query string) any {
	switch path {
	case "/v1/status":
		return s.status
	case "/v1/why":
		return map[string]any{"waiting": s.why}
	case "/v1/recent":
		return s.recent
	case "/v1/history":
		length := time.Hour
		for _, r := range []struct {
			text string
			d    time.Duration
		}{{"since=15m", 15 * time.Minute}, {"since=24h", 24 * time.Hour}, {"since=7d", 7 * 24 * time.Hour}} {
			if len(query) >= len(r.text) && query[:len(r.text)] == r.text {
				length = r.d
			}
		}
		return s.past(length)
	case "/v1/config":
		return map[string]any{"yaml": "store: redis://:***@10.0.0.5:6379\nresources:\n  anthropic:\n    provider: anthropic\n", "served": s.served, "version": "v0.1.0"}
	}
	return nil
}

// traffic describes what a resource did: sends in a minute by class, from a share of the time on.
type traffic struct {
	name      string
	perMinute map[string]float64
	models    map[string]float64 // dollars for a thousand sends
	hits      []float64          // when refusals came, as a part of the time
	errors    []float64
	latency   int64
	guessed   bool
	until     float64 // part of the time after which nothing is sent; 0: all of it
}

// figures are totals as the API has them.
func figures(sends, throttled, errors, latency int64, usd, guessed float64) map[string]any {
	return map[string]any{
		"sends": sends, "retries": sends / 50, "waits": sends / 4, "waited_ms": sends * 300, "throttled": throttled, "refused": 0, "errors": errors, "answers": sends - errors,
		"latency_ms": sends * latency, "input_tokens": sends * 1800, "output_tokens": sends * 320, "tokens": 0, "elsewhere": 0, "usd": usd, "guessed_usd": guessed,
		"latency_p50_ms": latency, "latency_p95_ms": latency * 3,
	}
}

// history makes the past of a fleet.
func history(now time.Time, all []traffic, agents []string, events []inspect.Event) func(time.Duration) map[string]any {
	return func(length time.Duration) map[string]any {
		step := time.Minute
		if length > 2*time.Hour {
			step = 5 * time.Minute
		}
		if length > 48*time.Hour {
			step = 30 * time.Minute
		}
		since := now.Add(-length).Truncate(step)
		n := int(now.Sub(since)/step) + 1
		var resources, models, people []map[string]any
		total := 0.0
		for ti, tr := range all {
			var points []map[string]any
			sum, hits, errs, usd := 0.0, int64(0), int64(0), 0.0
			for i := range n {
				part := float64(i) / float64(n)
				if tr.until > 0 && part > tr.until {
					break
				}
				p := map[string]any{"at": since.Add(time.Duration(i) * step).UTC()}
				classes, sends := map[string]int64{}, int64(0)
				for c, rate := range tr.perMinute {
					wave := 0.75 + 0.25*math.Sin(float64(i)/(5+float64(ti)*3)+float64(len(c))) + float64((i*7+ti*3)%9)/40
					k := int64(rate * wave * step.Minutes())
					if k > 0 {
						classes[c], sends = k, sends+k
					}
				}
				for _, h := range tr.hits {
					if int(h*float64(n)) == i {
						p["throttled"] = int64(1)
						hits++
					}
				}
				for _, h := range tr.errors {
					if int(h*float64(n)) == i {
						p["errors"] = int64(3)
						errs += 3
					}
				}
				if sends > 0 {
					p["sends"], p["answers"], p["classes"] = sends, sends, classes
					p["latency_p50_ms"] = tr.latency + int64(40*math.Sin(float64(i)/6))*tr.latency/200
					p["latency_p95_ms"] = tr.latency*3 + int64((i*13)%17)*tr.latency/20
				}
				sum += float64(sends)
				if len(p) > 1 {
					points = append(points, p)
				}
			}
			for name, price := range tr.models {
				cost := sum / float64(len(tr.models)) * price / 1000
				usd += cost
				g := 0.0
				if tr.guessed {
					g = cost
				}
				models = append(models, map[string]any{"resource": tr.name, "name": name, "total": figures(int64(sum)/int64(len(tr.models)), 0, 0, tr.latency, cost, g)})
			}
			g := 0.0
			if tr.guessed {
				g = usd
			}
			total += sum
			resources = append(resources, map[string]any{"name": tr.name, "total": figures(int64(sum), hits, errs, tr.latency, usd, g), "points": points})
		}
		for i, a := range agents {
			share := total / float64(len(agents)) * (1.6 - 1.2*float64(i)/float64(len(agents)))
			people = append(people, map[string]any{"name": a, "total": figures(int64(share), 0, 0, 900, share*0.011, 0)})
		}
		none := []map[string]any{}
		if events == nil {
			events = []inspect.Event{}
		}
		out := map[string]any{"since": since.UTC(), "until": now.UTC(), "step_ms": step.Milliseconds(), "kept_since": now.Add(-200 * time.Hour).UTC(), "resources": resources, "models": models, "agents": people, "events": events, "more_events": 0}
		for _, k := range []string{"resources", "models", "agents"} {
			if len(out[k].([]map[string]any)) == 0 {
				out[k] = none
			}
		}
		if len(all) == 0 {
			out["kept_since"] = nil
		}
		return out
	}
}

func lastMinute(name string, sends, throttled, errors int64) map[string]any {
	return map[string]any{"name": name, "sends": sends, "throttled": throttled, "errors": errors}
}

func request(now time.Time, ago time.Duration, agent, class, resource, model string, waited, took int64, status int, state string, usd float64, guessed bool) map[string]any {
	var money any
	in, out := int64(0), int64(0)
	if usd > 0 {
		money, in, out = usd, 1840+waited%700, 310+took%200
	}
	return map[string]any{"time": now.Add(-ago).UTC(), "resource": resource, "agent": agent, "class": class, "model": model, "waited_ms": waited, "took_ms": took, "status": status, "verdict": "ok", "state": state, "retry": false, "input_tokens": in, "output_tokens": out, "usd": money, "guessed": guessed}
}

// limit is a limit as the status has it.
func limit(name, unit, kind string, window time.Duration, size, used int64) inspect.LimitStatus {
	return inspect.LimitStatus{Name: name, Unit: unit, Kind: kind, WindowMS: window.Milliseconds(), Limit: size, Used: used, Remaining: size - used, Light: "green"}
}

// resource is a resource in a state.
func resource(name, state, reason string, limits ...inspect.LimitStatus) inspect.ResourceStatus {
	return inspect.ResourceStatus{Name: name, Configured: true, Mode: "gate", State: state, Reason: reason, Light: "green", Waiting: map[string]int{"p0": 0, "p1": 0, "p2": 0}, Limits: limits}
}

func agent(now time.Time, name, class, user, machine, resource, state string, used, allocated int64, chain ...string) inspect.AgentStatus {
	return inspect.AgentStatus{Name: name, Class: class, User: user, Machine: machine, Resource: resource, State: state, Used: used, Allocated: allocated, LeaseStartedAt: in(now, -time.Hour), LeaseExpiresAt: in(now, 4*time.Minute), PauseChain: chain, Leased: machine != ""}
}

var presets = []string{"azure", "bedrock", "cohere", "deepseek", "gemini", "groq", "mistral", "openrouter", "together", "xai"}

// withPresets adds resources that are ready and were never used.
func withPresets(list []inspect.ResourceStatus) []inspect.ResourceStatus {
	for _, name := range presets {
		list = append(list, resource(name, inspect.StateIdle, "no request was sent yet"))
	}
	return list
}

// scenes are the moments that a person opens the page in.
func scenes(now time.Time) []*scene {
	var list []*scene
	for _, make := range []func(time.Time) *scene{idle, first, flowing, queueing, paused1, billing, failing, storeAway, memoryLost, many} {
		s := make(now)
		s.now = now
		s.status.Store = "redis://10.0.0.5:6379"
		if s.served == nil {
			for _, r := range s.status.Resources {
				s.served = append(s.served, map[string]string{"resource": r.Name, "provider": r.Name})
			}
		}
		if s.recent == nil {
			s.recent = map[string]any{"time": now, "requests": []any{}, "resources": []any{}, "agents": []any{}}
		}
		list = append(list, s)
	}
	return list
}

// first is a daemon that has not seen a request.
func first(now time.Time) *scene {
	return &scene{
		name: "empty", status: inspect.Status{Resources: withPresets([]inspect.ResourceStatus{resource("anthropic", inspect.StateIdle, "no request was sent yet"), resource("openai", inspect.StateIdle, "no request was sent yet"), resource("github", inspect.StateIdle, "no request was sent yet")})},
		past: history(now, nil, nil, nil), says: []string{"No request yet. 13 resources are ready", "Send the first request", "sluice run -- claude", "export ANTHROPIC_BASE_URL=http", "/openai/v1", "Waiting for the first request"},
	}
}

// idle had work before.
func idle(now time.Time) *scene {
	a := resource("anthropic", inspect.StateIdle, "no request was sent in the last minute", limit("requests", "requests", "bucket", time.Minute, 120, 0), limit("input", "input_tokens", "bucket", time.Minute, 400_000, 0))
	a.LastSend = in(now, -21*time.Minute)
	s := &scene{
		name: "idle", status: inspect.Status{Resources: withPresets([]inspect.ResourceStatus{a})},
		past: history(now, []traffic{{name: "anthropic", perMinute: map[string]float64{"p1": 40}, models: map[string]float64{"claude-opus-4-5": 30, "claude-haiku-4-5": 4}, latency: 900, until: 0.65}}, []string{"reviewer", "indexer"}, nil),
		says: []string{"Idle: no request was sent in the last minute", "idle", "no refusals and no errors in 1 h", "10 more resources are ready"},
	}
	return s
}

var fleet = []string{"release-bot", "reviewer", "indexer", "crawler-7", "crawler-9", "publisher", "triage"}

func crowd(now time.Time) []inspect.AgentStatus {
	return []inspect.AgentStatus{
		agent(now, "release-bot", "p0", "ops", "build-1", "github", "active", 1210, 2000),
		agent(now, "reviewer", "p1", "ana", "laptop", "anthropic", "active", 11, 14),
		agent(now, "indexer", "p1", "ana", "box-2", "anthropic", "active", 14, 14),
		agent(now, "crawler-7", "p2", "batch", "box-3", "anthropic", "active", 9, 7),
		agent(now, "crawler-9", "p2", "batch", "", "anthropic", "active", 2, 7),
		agent(now, "publisher", "p1", "ana", "laptop", "openai", "active", 0, 9),
		agent(now, "triage", "p2", "ops", "build-1", "github", "active", 900, 1250),
	}
}

func everyday(now time.Time) (anthropic, openai, github inspect.ResourceStatus) {
	anthropic = resource("anthropic", inspect.StateFlowing, "requests pass without waiting",
		limit("requests", "requests", "bucket", time.Minute, 120, 74), limit("input", "input_tokens", "bucket", time.Minute, 400_000, 212_118), limit("output", "output_tokens", "bucket", time.Minute, 80_000, 12_400))
	anthropic.InFlight, anthropic.LastSend, anthropic.Throttled7d = 7, in(now, -time.Second), 2
	anthropic.Advice = &inspect.Advice{Setting: "resources.anthropic.use", Text: "2 requests were refused (429) in the last 7 days, and nothing that is known explains it. Leave some room: resources.anthropic.use: 95%."}
	opus := limit("requests", "requests", "bucket", time.Minute, 50, 21)
	opus.Learned, anthropic.Limits[0].Learned = true, true
	opus.Scope = "model=opus-4"
	anthropic.Limits = append(anthropic.Limits, opus)
	openai = resource("openai", inspect.StateFlowing, "requests pass without waiting", limit("requests", "requests", "bucket", time.Minute, 500, 61), limit("tokens", "tokens", "bucket", time.Minute, 200_000, 61_118))
	openai.LastSend = in(now, -3*time.Second)
	core := limit("core", "requests", "fixed", time.Hour, 5000, 1204)
	core.ResetAt, core.Outside = in(now, 38*time.Minute), 240
	github = resource("github", inspect.StateFlowing, "requests pass without waiting", core)
	github.LastSend = in(now, -2*time.Second)
	return anthropic, openai, github
}

func work() []traffic {
	return []traffic{
		{name: "anthropic", perMinute: map[string]float64{"p0": 12, "p1": 44, "p2": 30}, models: map[string]float64{"claude-opus-4-5": 38, "claude-haiku-4-5": 4}, latency: 1400},
		{name: "openai", perMinute: map[string]float64{"p1": 22, "p2": 38}, models: map[string]float64{"gpt-6-preview": 6}, latency: 800, guessed: true},
		{name: "github", perMinute: map[string]float64{"p0": 14, "p2": 18}, latency: 180},
	}
}

func requests(now time.Time) map[string]any {
	list := []any{
		request(now, 0, "reviewer", "p1", "anthropic", "claude-opus-4-5", 0, 0, 0, "running", 0, false),
		request(now, time.Second, "crawler-7", "p2", "anthropic", "claude-haiku-4-5", 1900, 780, 200, "done", 0.0041, false),
		request(now, 2*time.Second, "publisher", "p1", "openai", "gpt-6-preview", 0, 1200, 200, "done", 0.0102, true),
		request(now, 3*time.Second, "release-bot", "p0", "github", "", 0, 140, 200, "done", 0, false),
		request(now, 5*time.Second, "indexer", "p1", "anthropic", "claude-opus-4-5", 340, 3100, 200, "done", 0.0381, false),
		request(now, 6*time.Second, "crawler-9", "p2", "anthropic", "claude-haiku-4-5", 0, 660, 200, "left", 0.002, false),
	}
	return map[string]any{
		"time": now, "requests": list,
		"resources": []any{lastMinute("anthropic", 86, 0, 0), lastMinute("openai", 61, 0, 0), lastMinute("github", 33, 0, 0)},
		"agents":    []any{lastMinute("reviewer", 31, 0, 0), lastMinute("indexer", 40, 0, 0), lastMinute("crawler-7", 22, 0, 0), lastMinute("crawler-9", 12, 0, 0), lastMinute("publisher", 42, 0, 0), lastMinute("release-bot", 15, 0, 0), lastMinute("triage", 18, 0, 0)},
	}
}

func flowing(now time.Time) *scene {
	a, o, g := everyday(now)
	return &scene{
		name: "flowing", status: inspect.Status{Resources: withPresets([]inspect.ResourceStatus{a, o, g}), Agents: crowd(now), Budgets: []inspect.BudgetStatus{
			{Name: "fleet/day", Per: "fleet", SizeUSD: 100, UsedUSD: 61.4, Period: "day", Over: "deny", ResetsAt: in(now, 7*time.Hour)},
			{Name: "user/day", Per: "user", Who: "ana", SizeUSD: 10, UsedUSD: 8.72, Period: "day", Over: "downgrade", ResetsAt: in(now, 7*time.Hour)},
		}},
		recent: requests(now), past: history(now, work(), fleet, nil),
		says: []string{"flowing", "anthropic", "flow: requests pass without waiting", "no refusals and no errors in 1 h", "no request waits", "180", "≈ $", "of it guessed", "74 / 120", "sending", "11 / 14", "gpt-6-preview", "user/day ana", "$8.72 / $10.00", "per day · when used up: downgrade · resets in", "resets in 3", "half within"},
	}
}

func queueing(now time.Time) *scene {
	a, o, g := everyday(now)
	a.State, a.Reason, a.Until = inspect.StateQueueing, "14 requests wait: the limit requests is full (120 of 120 used)", in(now, 11*time.Second)
	a.Limits[0].Used, a.Limits[0].Remaining, a.Waiting = 120, 0, map[string]int{"p0": 2, "p1": 0, "p2": 12}
	agents := crowd(now)
	agents[2].State, agents[3].State, agents[4].State = "waiting", "limited", "waiting"
	agents[5].State, agents[5].PauseChain = "held", []string{"publisher", "crawler-7"}
	wait := func(agent, class, reason string, after time.Duration, by ...string) inspect.Waiting {
		return inspect.Waiting{Ticket: "anthropic.1-" + agent, Agent: agent, Class: class, Limit: "requests", Reason: reason, HeldBy: by, ExpectedAt: in(now, after)}
	}
	why := []inspect.Waiting{wait("release-bot", "p0", "limit", 1200*time.Millisecond, "indexer", "reviewer"), wait("indexer", "p0", "order", 2*time.Second), wait("crawler-7", "p2", "limit", 4*time.Second, "reviewer")}
	for i := range 11 {
		why = append(why, wait(fmt.Sprint("crawler-", 9+i), "p2", "order", time.Duration(5+i)*time.Second))
	}
	return &scene{
		name: "queueing", status: inspect.Status{Resources: withPresets([]inspect.ResourceStatus{a, o, g}), Agents: agents}, why: why, recent: requests(now), past: history(now, work(), fleet, nil),
		says: []string{"queueing", "14 requests wait: the limit requests is full", "The other 2 resources flow", "100% of", "p0 waits up to", "p2 waits up to", "p0 2 · p2 12", "told to start no new work", "s for anthropic: the limit is full", "120 / 120"},
	}
}

func paused1(now time.Time) *scene {
	a, o, g := everyday(now)
	until := in(now, 41*time.Second)
	a.State, a.Reason, a.Until, a.PausedUntil, a.PauseReason = inspect.StatePaused, "crawler-7 got a 429 (requests)", until, until, "crawler-7 got a 429 (requests)"
	a.Gates = []inspect.PauseStatus{{Phase: "paused", Until: until, Cause: "crawler-7 got a 429 (requests)"}}
	a.Waiting, a.Last429, a.Consecutive429, a.Throttled7d = map[string]int{"p0": 2, "p1": 0, "p2": 12}, in(now, -19*time.Second), 1, 3
	all := work()
	all[0].hits, all[0].perMinute = []float64{0.31, 0.985}, map[string]float64{"p0": 16, "p1": 54, "p2": 30}
	events := []inspect.Event{
		{Time: now.Add(-19 * time.Second).UTC(), Kind: "pause", Resource: "anthropic", Agent: "crawler-7", Class: "p2", Model: "opus-4", Status: 429, Verdict: "throttled", Reason: "crawler-7 got a 429 (requests)", Consecutive: 1, ForMS: 60_000, Until: until},
		{Time: now.Add(-19 * time.Second).UTC(), Kind: "throttled", Resource: "anthropic", Agent: "crawler-7", Class: "p2", Model: "opus-4", Status: 429, Verdict: "throttled"},
		{Time: now.Add(-41 * time.Minute).UTC(), Kind: "pause", Resource: "anthropic", Agent: "indexer", Class: "p1", Status: 429, Reason: "a 429", ForMS: 180_000, Until: in(now, -38*time.Minute)},
		{Time: now.Add(-50 * time.Minute).UTC(), Kind: "refused", Resource: "openai", Agent: "publisher", Class: "p1", Reason: "budget", Limit: "user/day"},
	}
	var why []inspect.Waiting
	for i := range 14 {
		class := "p2"
		if i < 2 {
			class = "p0"
		}
		why = append(why, inspect.Waiting{Ticket: fmt.Sprint("anthropic.1-", i), Agent: fleet[i%len(fleet)], Class: class, Reason: "paused", ExpectedAt: in(now, time.Duration(41+i/2)*time.Second)})
	}
	agents := crowd(now)
	agents[1].State, agents[2].State, agents[3].State = "limited", "limited", "limited"
	return &scene{
		name: "paused", status: inspect.Status{Resources: withPresets([]inspect.ResourceStatus{a, o, g}), Agents: agents}, why: why, recent: requests(now), past: history(now, all, fleet, events),
		says: []string{"paused", "is paused until", "crawler-7 got a 429", "14 requests hold, none lost", "2 refusals (429)", "for 1:00 min"},
	}
}

func failing(now time.Time) *scene {
	a, o, g := everyday(now)
	o.State, o.Reason = inspect.StateFailing, "the last 12 requests did not reach the provider: connection refused (api.openai.com:443); the next one tries again"
	all := work()
	all[1].errors, all[1].until = []float64{0.93, 0.95, 0.965, 0.98, 0.99}, 0.995
	recent := requests(now)
	dead := request(now, 0, "publisher", "p1", "openai", "gpt-6-preview", 0, 12, 0, "failed", 0, false)
	dead["verdict"] = "refused"
	recent["requests"] = append([]any{
		dead, request(now, time.Second, "publisher", "p1", "openai", "gpt-6-preview", 0, 9, 502, "failed", 0, false),
		request(now, 2*time.Second, "crawler-7", "p2", "anthropic", "claude-opus-4-5", 0, 90, 429, "throttled", 0, false),
	}, recent["requests"].([]any)...)
	events := []inspect.Event{{Time: now.Add(-4 * time.Minute).UTC(), Kind: "failing", Resource: "openai", Error: "dial tcp 104.18.7.192:443: connect: connection refused"}}
	return &scene{
		name: "failing", status: inspect.Status{Resources: withPresets([]inspect.ResourceStatus{a, o, g}), Agents: crowd(now)}, recent: recent, past: history(now, all, fleet, events),
		says: []string{"failing", "did not reach the provider: connection refused", "15 errors", "502 failed", "connection refused", "The other 2 resources flow"},
	}
}

// billing is a provider that wants money.
func billing(now time.Time) *scene {
	a, o, g := everyday(now)
	o.State, o.BillingStop = inspect.StatePaused, true
	o.Reason = "billing stop: the credit is used up; the provider refuses requests until you add credit or raise the limit there"
	stop := request(now, 0, "publisher", "p1", "openai", "gpt-6-preview", 0, 90, 402, "failed", 0, false)
	stop["verdict"] = "billing stop"
	recent := requests(now)
	recent["requests"] = append([]any{stop}, recent["requests"].([]any)...)
	events := []inspect.Event{{Time: now.Add(-time.Minute).UTC(), Kind: "state", Resource: "openai", State: o.State, Was: "flowing", Reason: o.Reason}}
	return &scene{
		name: "billing", status: inspect.Status{Resources: withPresets([]inspect.ResourceStatus{a, o, g}), Agents: crowd(now)}, recent: recent, past: history(now, work(), fleet, events),
		says: []string{"openai is paused: billing stop: the credit is used up", "until you add credit", "402 billing stop", "The other 2 resources flow"},
	}
}

func storeAway(now time.Time) *scene {
	var list []inspect.ResourceStatus
	for _, name := range []string{"anthropic", "openai", "github"} {
		r := resource(name, inspect.StateDegraded, "the store is out of reach: dial tcp 10.0.0.5:6379: connection refused; this process goes on within its share")
		r.Outage = &inspect.OutageStatus{Since: in(now, -30*time.Second), Why: "dial tcp 10.0.0.5:6379: connection refused", Mode: "share", Granted: 12}
		r.Waiting = nil
		list = append(list, r)
	}
	events := []inspect.Event{{Time: now.Add(-30 * time.Second).UTC(), Kind: "store_lost", Resource: "anthropic", Mode: "share", Error: "dial tcp 10.0.0.5:6379: connection refused"}}
	return &scene{
		name: "store-away", status: inspect.Status{Resources: list}, recent: requests(now), past: history(now, work(), fleet, events),
		says: []string{"degraded", "All 3 resources are degraded: the store is out of reach", "goes on within its share", "not known now", "store lost", "it holds requests for 3 s, then goes on within its share"},
	}
}

func memoryLost(now time.Time) *scene {
	a, o, g := everyday(now)
	until := in(now, 48*time.Second)
	for _, r := range []*inspect.ResourceStatus{&a, &o, &g} {
		r.State, r.Reason, r.Until = inspect.StateDegraded, "Redis lost its memory; holding requests for one window", until
		r.Waiting = map[string]int{"p1": 3, "p2": 5}
	}
	agents := crowd(now)
	for i := range agents {
		agents[i].State = "waiting"
	}
	return &scene{
		name: "memory-lost", status: inspect.Status{Resources: []inspect.ResourceStatus{a, o, g}, Agents: agents}, recent: requests(now), past: history(now, work(), fleet, nil),
		says: []string{"p1 9 · p2 15", "degraded", "Redis lost its memory; holding requests for one window", "are degraded until", "24 requests hold, none lost"},
	}
}

// many is a fleet as large as the page is made for.
func many(now time.Time) *scene {
	const agents, resources = 500, 50
	s := &scene{name: "500-agents", says: []string{"600 requests/min", "Agents (500)", "queueing", "flowing"}}
	states := []string{inspect.StateFlowing, inspect.StateQueueing, inspect.StateFlowing, inspect.StateFlowing}
	var all []traffic
	var last, lastAgents []any
	for i := range resources {
		name := fmt.Sprintf("api-%02d", i)
		r := resource(name, states[i%4], "requests pass without waiting", limit("requests", "requests", "rolling", time.Minute, 600, int64(37*i%600)), limit("day", "requests", "fixed", 24*time.Hour, 100_000, int64(999*i)))
		if r.State == inspect.StateQueueing {
			r.Reason, r.Waiting = "60 requests wait: the limit requests is full (600 of 600 used)", map[string]int{"p1": 10, "p2": 50}
			r.Limits[0].Used, r.Limits[0].Remaining = 600, 0
		}
		r.LastSend = in(now, -time.Second)
		s.status.Resources = append(s.status.Resources, r)
		all = append(all, traffic{name: name, perMinute: map[string]float64{"p0": 5, "p1": 30, "p2": float64(20 + i)}, models: map[string]float64{fmt.Sprint("model-", i%7): 3}, latency: int64(200 + 20*i)})
		last = append(last, lastMinute(name, int64(50+i), 0, 0))
	}
	var names []string
	for i := range agents {
		name := fmt.Sprintf("agent-%03d", i)
		names = append(names, name)
		s.status.Agents = append(s.status.Agents, agent(now, name, []string{"p0", "p1", "p2"}[i%3], "u", fmt.Sprintf("box-%d", i%20), fmt.Sprintf("api-%02d", i%resources), []string{"active", "waiting", "limited", "active"}[i%4], int64(i%20), 20))
		lastAgents = append(lastAgents, lastMinute(name, int64(i%30), 0, 0))
	}
	for i := range 700 {
		s.why = append(s.why, inspect.Waiting{Ticket: fmt.Sprintf("api-%02d.1-%x", i*4%resources, i), Agent: names[i%agents], Class: []string{"p1", "p2"}[i/50%2], Limit: "requests", Reason: "limit", HeldBy: []string{"agent-001"}, ExpectedAt: in(now, time.Duration(i)*100*time.Millisecond)})
	}
	s.recent = map[string]any{"time": now, "requests": requests(now)["requests"], "resources": last, "agents": lastAgents}
	s.past = history(now, all, names, nil)
	return s
}
