package page

import (
	"math"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
)

// scene is a fleet on a bad day: ten minutes of it pass with a hundred and twenty answers.
type scene struct {
	mu   sync.Mutex
	now  time.Time
	n    int
	sent int64
	hits int64
}

func (s *scene) date() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func in(now time.Time, d time.Duration) *time.Time {
	t := now.Add(d).UTC()
	return &t
}

// answer is what the API would say.
func (s *scene) answer(path string) any {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch path {
	case "/v1/status":
		if s.n < 120 {
			s.n++
			s.now = s.now.Add(5 * time.Second)
			s.sent += int64(20 + 15*math.Sin(float64(s.n)/9) + float64(s.n*7%11))
			if s.n == 70 || s.n == 71 {
				s.hits++
			}
		}
		return s.status()
	case "/v1/why":
		wait := func(r, agent, class, limit, reason string, after time.Duration, by ...string) sluice.Waiting {
			return sluice.Waiting{Ticket: r + ".1-" + agent, Agent: agent, Class: class, Limit: limit, Reason: reason, HeldBy: by, ExpectedAt: in(s.now, after)}
		}
		return map[string]any{"waiting": []sluice.Waiting{
			wait("anthropic", "indexer", "p1", "minute", "limit", 4*time.Second, "reviewer", "crawler-7"),
			wait("anthropic", "crawler-7", "p2", "minute", "order", 11*time.Second),
			wait("anthropic", "crawler-9", "p2", "minute", "order", 38*time.Second),
			wait("github", "release-bot", "p0", "", "paused", 47*time.Second),
			wait("github", "triage", "p2", "", "paused", 58*time.Second),
		}}
	case "/v1/report":
		return s.report()
	}
	return nil
}

func (s *scene) status() sluice.Status {
	level := func(k float64) int64 { return int64(40 + 30*math.Sin(float64(s.n)/k) + float64(s.n*5%9)) }
	anthropic := sluice.ResourceStatus{
		Name: "anthropic", Mode: "gate", Light: "amber", InFlight: 7, Waiting: map[string]int{"p0": 0, "p1": 1, "p2": 2}, Throttled7d: 2, Last429: in(s.now, -4*time.Minute),
		Limits: []sluice.LimitStatus{
			{Name: "minute", Kind: "rolling", Unit: "requests", Limit: 80, Used: level(9), Remaining: 80 - level(9), Light: "green"},
			{Name: "input", Kind: "bucket", Unit: "input_tokens", Limit: 400_000, Used: 352_118, Remaining: 47_882, Outside: 61_000, Light: "amber"},
			{Name: "output", Kind: "bucket", Unit: "output_tokens", Limit: 80_000, Used: 12_400, Remaining: 67_600, Light: "green"},
		},
	}
	anthropic.Sent, anthropic.Throttled, anthropic.Retried = s.sent, s.hits, 3
	github := sluice.ResourceStatus{
		Name: "github", Mode: "gate", Light: "red", PausedUntil: in(s.now, 47*time.Second), PauseReason: "secondary rate limit", Consecutive429: 2, Last429: in(s.now, -13*time.Second),
		Waiting: map[string]int{"p0": 1, "p1": 0, "p2": 1}, Throttled7d: 5, Gates: []sluice.GateStatus{{Phase: "paused", Until: in(s.now, 47*time.Second), Cause: "secondary rate limit"}},
		Limits: []sluice.LimitStatus{{Name: "core", Kind: "fixed", Unit: "requests", Limit: 5000, Used: 4000 + int64(s.n)*6, Remaining: 280, Outside: 640, Light: "red", Breaker: "gliding", GoneAt: in(s.now, 95*time.Second), ResetAt: in(s.now, 17*time.Minute)}},
	}
	github.Sent, github.Throttled, github.Retried = s.sent/3, s.hits*2, 11
	search := sluice.ResourceStatus{
		Name: "search-api", Mode: "observe", Light: "green", InFlight: 2, Waiting: map[string]int{"p0": 0, "p1": 0, "p2": 0},
		Limits: []sluice.LimitStatus{{Name: "burst", Kind: "bucket", Unit: "requests", Limit: 50, Used: level(4) / 2, Remaining: 30, Light: "green"}, {Name: "inflight", Kind: "concurrency", Unit: "requests", Limit: 20, Used: 2, Remaining: 18, Light: "green"}},
	}
	search.Sent = s.sent * 2
	mail := sluice.ResourceStatus{Name: "mail", Mode: "gate", Outage: &sluice.OutageStatus{Since: in(s.now, -30*time.Second), Why: "dial tcp: connection refused", Mode: "share", Granted: 12}}
	agent := func(name, class, user, machine, resource, state string, used, allocated int64, lease time.Duration, chain ...string) sluice.AgentStatus {
		return sluice.AgentStatus{Name: name, Class: class, User: user, Machine: machine, Resource: resource, State: state, Used: used, Allocated: allocated, LeaseStartedAt: in(s.now, -time.Hour), LeaseExpiresAt: in(s.now, lease), PauseChain: chain, Leased: machine != ""}
	}
	return sluice.Status{
		Store: "redis://10.0.0.5:6379", Resources: []sluice.ResourceStatus{anthropic, github, mail, search},
		Agents: []sluice.AgentStatus{
			agent("release-bot", "p0", "ops", "build-1", "github", "limited", 1210, 2000, 4*time.Minute+40*time.Second),
			agent("reviewer", "p1", "ana", "laptop", "anthropic", "active", 11, 14, 4*time.Minute),
			agent("indexer", "p1", "ana", "box-2", "anthropic", "waiting", 14, 14, 3*time.Minute),
			agent("crawler-7", "p2", "batch", "box-3", "anthropic", "waiting", 9, 7, 290*time.Second),
			agent("crawler-9", "p2", "batch", "", "anthropic", "waiting", 2, 7, 12*time.Second),
			agent("publisher", "p1", "ana", "laptop", "search-api", "held", 0, 9, 270*time.Second, "publisher", "release-bot"),
			agent("newsletter-of-the-whole-company-with-a-long-name", "p2", "marketing", "box-2", "search-api", "held", 0, 9, 200*time.Second, "newsletter-of-the-whole-company-with-a-long-name", "publisher", "release-bot"),
			agent("triage", "p2", "ops", "build-1", "github", "limited", 900, 1250, 4*time.Minute),
		},
		Cycles: [][]string{{"alpha", "beta"}},
		Budgets: []sluice.BudgetStatus{
			{Name: "fleet/day", Per: "fleet", SizeUSD: 100, UsedUSD: 61.4, Period: "day", Over: "deny", ResetsAt: in(s.now, 7*time.Hour)},
			{Name: "user/day", Per: "user", Who: "ana", SizeUSD: 10, UsedUSD: 8.72, Period: "day", Over: "downgrade", ResetsAt: in(s.now, 7*time.Hour)},
			{Name: "user/day", Per: "user", Who: "batch", SizeUSD: 10, UsedUSD: 10.03, Period: "day", Over: "deny", ResetsAt: in(s.now, 7*time.Hour)},
		},
	}
}

// priced is a report as the daemon of the command line gives it, with dollars.
type priced struct {
	sluice.CallerReport
	USD      float64 `json:"usd"`
	RetryUSD float64 `json:"retry_usd"`
	HeldUSD  float64 `json:"held_usd"`
}

func (s *scene) report() any {
	row := func(name string, first, retries, throttled, waited, held int64, usd, again, saved float64) priced {
		return priced{sluice.CallerReport{Name: name, FirstSends: first, Retries: retries, Throttled: throttled, WaitedMS: waited, Held: held}, usd, again, saved}
	}
	return map[string]any{"resources": []map[string]any{
		{"name": "anthropic", "total": row("", 48_210, 31, 2, 1_840_000, 6120, 58.1, 0.042, 7.31), "callers": []priced{row("reviewer", 20_000, 2, 0, 40_000, 300, 31.2, 0.002, 0.46), row("crawler-7", 28_210, 29, 2, 1_800_000, 5820, 26.9, 0.04, 6.85)}},
		{"name": "github", "total": row("", 9120, 140, 5, 300_000, 410, 0, 0, 0), "callers": []priced{row("release-bot", 9120, 140, 5, 300_000, 410, 0, 0, 0)}},
	}}
}
