package mock

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/store"
)

// Window is a window of a subscription. It begins with the first request after the previous window has ended.
type Window struct {
	Length time.Duration
	// Tokens is the size of the window. An output token counts as 5, a cache read as 1/10, a cache write as 5/4.
	Tokens int64
}

// maxPlan bounds the windows of a subscription.
const maxPlan = 4

// ParsePlan parses windows such as 5h=2000000,7d=20000000.
func ParsePlan(text string) (all []Window, err error) {
	for part := range strings.SplitSeq(text, ",") {
		length, tokens, ok := strings.Cut(strings.TrimSpace(part), "=")
		d, err := time.ParseDuration(length)
		if days, isDays := strings.CutSuffix(length, "d"); isDays {
			var n int
			n, err = strconv.Atoi(days)
			d = time.Duration(n) * 24 * time.Hour
		}
		n, bad := strconv.ParseInt(tokens, 10, 64)
		if !ok || err != nil || bad != nil {
			return nil, fmt.Errorf("%.80q is no window: write its length and the tokens that it holds, such as 5h=2000000", part)
		}
		all = append(all, Window{d, n})
	}
	return all, nil
}

func (o *Options) checkPlan() error {
	switch {
	case len(o.Plan) > 0 && o.Provider != "anthropic" && o.Provider != "openai":
		return bad("%s has no subscriptions", o.Provider)
	case len(o.Plan) > maxPlan:
		return bad("%d windows are more than %d", len(o.Plan), maxPlan)
	case o.Overage && len(o.Plan) == 0:
		return bad("overage goes with windows")
	case len(o.Plan) > 0 && o.Published:
		return bad("windows do not go with the published limits")
	}
	for i, w := range o.Plan {
		if w.Length < time.Minute || w.Length > 31*24*time.Hour || w.Length%time.Minute != 0 {
			return bad("a window of %v is not whole minutes, from 1m to 31d", w.Length)
		}
		if w.Tokens < 1 || w.Tokens > store.MaxAmount {
			return bad("a window of %d tokens is out of range", w.Tokens)
		}
		if i > 0 && w.Length <= o.Plan[i-1].Length {
			return bad("windows are listed from the shortest to the longest")
		}
	}
	return nil
}

// plans counts the use of the windows, for each key.
type plans struct {
	windows []Window
	overage bool
	now     func() store.Time

	mu   sync.Mutex
	keys map[fingerprint][]planned
}

// planned is the use of one window by one key.
type planned struct {
	used int64
	ends store.Time // 0: not begun
}

// planState is the state of one window, for the headers of a response.
type planState struct {
	Window
	used float64 // used fraction
	ends store.Time
}

// of returns the windows of a key and restarts those that have ended. The caller holds the lock.
func (p *plans) of(key fingerprint) []planned {
	list := p.keys[key]
	if list == nil {
		if len(p.keys) >= maxRules {
			key = fingerprint{}
		}
		if list = p.keys[key]; list == nil {
			list = make([]planned, len(p.windows))
			p.keys[key] = list
		}
	}
	for i := range list {
		if list[i].ends <= p.now() {
			list[i] = planned{}
		}
	}
	return list
}

// take counts tokens against the windows of a key.
func (p *plans) take(key fingerprint, tokens int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, w := range p.of(key) {
		if w.ends == 0 {
			w.ends = p.now().Add(p.windows[i].Length)
		}
		w.used += tokens
		p.of(key)[i] = w
	}
}

// arrive returns the windows of a key. gone is the index of the window that refuses the request, or -1.
func (p *plans) arrive(key fingerprint) (all []planState, gone int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	gone = -1
	for i, w := range p.of(key) {
		s := planState{p.windows[i], float64(w.used) / float64(p.windows[i].Tokens), w.ends}
		if s.ends == 0 {
			s.ends = p.now().Add(s.Length)
		}
		if s.used >= 1 && !p.overage && (gone < 0 || s.ends > all[gone].ends) {
			gone = i
		}
		all = append(all, s)
	}
	return all, gone
}

// id returns the name of a window in header fields.
func (w Window) id() string {
	switch {
	case w.Length%(24*time.Hour) == 0:
		return strconv.Itoa(int(w.Length.Hours()/24)) + "d"
	case w.Length%time.Hour == 0:
		return strconv.Itoa(int(w.Length.Hours())) + "h"
	}
	return strconv.Itoa(int(w.Length.Minutes())) + "m"
}

// claim returns the name of a window in the representative-claim header.
func (w Window) claim() string {
	switch w.Length {
	case 5 * time.Hour:
		return "five_hour"
	case 7 * 24 * time.Hour:
		return "seven_day"
	}
	return w.id()
}

// windowHeaders states windows as Claude does.
func (anthropic) windowHeaders(h http.Header, all []planState, gone int, overage bool) {
	const prefix = "Anthropic-Ratelimit-Unified-"
	words := func(rejected bool) string {
		if rejected {
			return "rejected"
		}
		return "allowed"
	}
	about, beyond := 0, false
	for i, s := range all {
		beyond = beyond || s.used >= 1
		if s.used > all[about].used {
			about = i
		}
		h.Set(prefix+s.id()+"-Utilization", strconv.FormatFloat(float64(int64(s.used*100))/100, 'f', -1, 64))
		h.Set(prefix+s.id()+"-Reset", strconv.FormatInt(upSeconds(s.ends), 10))
		h.Set(prefix+s.id()+"-Status", words(s.used >= 1))
	}
	if gone >= 0 {
		about = gone
	}
	h.Set(prefix+"Status", words(gone >= 0))
	h.Set(prefix+"Reset", strconv.FormatInt(upSeconds(all[about].ends), 10))
	h.Set(prefix+"Representative-Claim", all[about].claim())
	h.Set(prefix+"Overage-Status", words(!overage))
	h.Set(prefix+"Overage-In-Use", strconv.FormatBool(overage && beyond))
}

func (anthropic) refuseWindow(h http.Header, _ planState, _ time.Duration) any {
	h.Set("X-Should-Retry", "true")
	return anthropicError(h, "rate_limit_error", "This request would exceed your account's rate limit. Please try again later.")
}

// windowHeaders states windows as Codex receives them: the shortest is the primary one.
func (openai) windowHeaders(h http.Header, all []planState, _ int, overage bool) {
	for i, s := range all {
		prefix := "X-Codex-Primary-"
		if i > 0 {
			prefix = "X-Codex-Secondary-"
		}
		h.Set(prefix+"Used-Percent", strconv.FormatInt(min(int64(s.used*100), 100), 10))
		h.Set(prefix+"Window-Minutes", strconv.FormatInt(int64(s.Length/time.Minute), 10))
		h.Set(prefix+"Reset-At", strconv.FormatInt(upSeconds(s.ends), 10))
	}
	h.Set("X-Codex-Credits-Has-Credits", strconv.FormatBool(overage))
}

func (openai) refuseWindow(_ http.Header, s planState, left time.Duration) any {
	return obj{{"error", obj{
		{"type", "usage_limit_reached"}, {"message", "The usage limit has been reached"}, {"plan_type", "pro"},
		{"resets_at", upSeconds(s.ends)}, {"resets_in_seconds", wholeSeconds(left)},
	}}}
}

// planner is a speaker with subscriptions.
type planner interface {
	windowHeaders(h http.Header, all []planState, gone int, overage bool)
	refuseWindow(h http.Header, s planState, left time.Duration) any
}

// hasPlan reports whether the request counts against windows. Only requests that a model answers do.
func (x *exchange) hasPlan() bool {
	return len(x.s.plans.windows) > 0 && (x.ask.produces || x.ask.takesOf(sim.Tokens) > 0)
}

// admitPlan decides whether the windows accept the request. If not, it sends the refusal and returns false.
func (x *exchange) admitPlan() bool {
	speaks, ok := x.s.speaks.(planner)
	if !ok || !x.hasPlan() {
		return true
	}
	all, gone := x.s.plans.arrive(x.ask.key)
	speaks.windowHeaders(x.w.Header(), all, gone, x.s.plans.overage)
	if gone < 0 {
		return true
	}
	x.s.tally.change(func(s *Stats) { s.Arrived++; s.Throttled++ })
	x.s.journal.add(x, x.s.now(), throttled)
	x.reply(http.StatusTooManyRequests, speaks.refuseWindow(x.w.Header(), all[gone], all[gone].ends.Sub(x.s.now())))
	return false
}

// usePlan counts tokens against the windows.
func (x *exchange) usePlan(u Usage) {
	if x.hasPlan() {
		x.s.plans.take(x.ask.key, u.InputTokens+u.CacheReadTokens/10+u.CacheWriteTokens*5/4+5*u.OutputTokens)
	}
}
