package api

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/sleep"
	"github.com/sluicehq/sluice/store"
)

// quiet times backoff.start must pass between two pauses that callers below the highest class start.
const quiet = 10

// refusals tracks the 429s that callers below the highest class report. The gate has not seen these responses, and a
// false report must not hold a higher class for long. The first report pauses all callers for backoff.start at most, or
// for the backoff of overloads, which ends at a minute.
// After that, such reports pause only the token that makes them, until ten times backoff.start have passed. The probe
// finds out whether the provider still refuses; it goes to the highest class that waits.
type refusals struct {
	mu    sync.Mutex
	fleet map[string]time.Time // by resource: the time from which a report pauses all callers again
	own   map[reporter]hold
}

type reporter struct{ token, resource string }

// hold is the pause of one token.
type hold struct {
	until time.Time
	n     int64 // consecutive refusals
}

// all reports whether a refusal pauses all callers. If it does, further refusals do not for a while.
func (f *refusals) all(resource string, start time.Duration, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Before(f.fleet[resource]) {
		return false
	}
	if f.fleet == nil {
		f.fleet = map[string]time.Time{}
	}
	f.fleet[resource] = now.Add(quiet * start)
	return true
}

// alone pauses one token. Refusals during its pause belong to the same burst and count once.
func (f *refusals) alone(who reporter, hint time.Duration, b sluice.Backoff, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.own[who]
	if now.Before(h.until) {
		return
	}
	h.n++
	wait := b.Start
	if hint > 0 {
		wait = hint
	}
	for i := int64(1); i < h.n && wait < b.Cap; i++ {
		wait *= time.Duration(max(b.Factor, 1))
	}
	h.until = now.Add(min(wait, b.Cap))
	if f.own == nil {
		f.own = map[reporter]hold{}
	}
	f.own[who] = h // one entry per token and resource
}

// over clears the refusals of a token after one of its requests succeeded.
func (f *refusals) over(who reporter) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.own, who)
}

func (f *refusals) until(who reporter) time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.own[who].until
}

// believe bounds the effect of a reported response on other callers. A caller below the highest class cannot state
// limits, a used-up quota or a billing stop. The bool reports whether the response pauses only the caller's token.
func (c *call) believe(resource string, a sluice.Answer) (sluice.Answer, bool) {
	if !c.bounded() {
		return a, false
	}
	a.Limits = nil
	who := reporter{c.who.Token, resource}
	switch a.Verdict {
	case store.VerdictOK:
		c.api.refusals.over(who)
		return a, false
	case store.VerdictBilling:
		a.Verdict = store.VerdictError
		return a, false
	case store.VerdictExhausted:
		a.Verdict = store.VerdictThrottled
	case store.VerdictThrottled, store.VerdictOverloaded:
	default:
		return a, false
	}
	b, now := c.api.backoff(resource), time.Now()
	if c.api.plain(c.r.Context(), resource, b) && c.api.refusals.all(resource, b.Start, now) {
		switch {
		case a.Verdict == store.VerdictOverloaded:
			a.RetryAfter = 0 // its own backoff ends at a minute
		case a.RetryAfter == 0 || a.RetryAfter > b.Start:
			a.RetryAfter = b.Start
		}
		return a, false
	}
	c.api.refusals.alone(who, a.RetryAfter, b, now)
	a.Verdict, a.RetryAfter = store.VerdictError, 0
	return a, true
}

// plain reports whether a refusal would now pause for no more than backoff.start. The pause after a hint is at least a
// second, doubled for each consecutive refusal.
func (a *API) plain(ctx context.Context, resource string, b sluice.Backoff) bool {
	s, err := a.Gate.Resource(ctx, resource)
	return err == nil && s.Consecutive429 < 32 && time.Second<<s.Consecutive429 <= max(b.Start, time.Second)
}

// backoff returns the backoff of a resource, with defaults.
func (a *API) backoff(resource string) sluice.Backoff {
	b := a.Backoff[resource]
	if b.Start <= 0 {
		b.Start = time.Minute
	}
	if b.Factor <= 0 {
		b.Factor = 2
	}
	if b.Cap <= 0 {
		b.Cap = max(15*time.Minute, b.Start)
	}
	return b
}

// await waits until the caller's token is no longer paused, and returns what is left of wait.
func (c *call) await(resource string, wait time.Duration) (time.Duration, error) {
	if !c.bounded() {
		return wait, nil
	}
	begun := time.Now()
	until := c.api.refusals.until(reporter{c.who.Token, resource})
	left := until.Sub(begun)
	if left <= 0 {
		return wait, nil
	}
	if left > wait {
		return 0, &Problem{
			Status: http.StatusTooManyRequests, Detail: "this token reported refusals and is paused alone until they should be over",
			Hint: "try again after retry_at", Why: "paused", RetryAt: new(until.UTC()), RetryAfterMS: new(left.Milliseconds() + 1),
		}
	}
	if !sleep.For(c.r.Context(), left) {
		return 0, c.r.Context().Err()
	}
	return max(wait-time.Since(begun), 0), nil
}
