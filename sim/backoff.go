package sim

import (
	"math/rand/v2"
	"time"

	"github.com/sluicehq/sluice/store"
)

// backoff sends at once. After a refusal it waits and sends again, like callers that do not coordinate.
type backoff struct {
	*desk
	attempts int // most sends of one call; 0: no limit besides the scenario's
	delay    func(n int, resp Response) time.Duration
}

func (b *backoff) want(c *call) { b.send(c) }

func (b *backoff) answered(c *call, resp Response) {
	if resp.Accepted {
		return
	}
	if b.attempts > 0 && c.sends >= b.attempts {
		b.giveUp(c)
		return
	}
	b.retry(c, store.Time(b.delay(c.sends-1, resp).Microseconds()), b.send)
}

func (*backoff) ended(*call, usage) {}
func (*backoff) blind() bool        { return true }

func newFixedInterval(r *desk) strategy {
	return &backoff{desk: r, delay: func(int, Response) time.Duration { return 5 * time.Second }}
}

func newExponential(r *desk) strategy {
	return &backoff{desk: r, attempts: 6, delay: func(n int, _ Response) time.Duration {
		return 500 * time.Millisecond << n
	}}
}

func newFullJitter(r *desk) strategy {
	return &backoff{desk: r, delay: func(n int, _ Response) time.Duration { return fullJitter(r.jitter, n) }}
}

// fullJitter returns a random wait, uniform in 0..min(30 s, 1 s x 2^n).
func fullJitter(r *rand.Rand, n int) time.Duration {
	most := min(30*time.Second, time.Second<<min(n, 5))
	return time.Duration(r.Int64N(int64(most) + 1))
}

// newSDKDefault behaves like the official client libraries by default: two retries, each after the Retry-After of the
// response. Without that header, the waits are half a second, doubled each time, less up to a quarter at random.
func newSDKDefault(r *desk) strategy {
	return &backoff{desk: r, attempts: 3, delay: func(n int, resp Response) time.Duration {
		if resp.RetryAfter > 0 {
			return resp.RetryAfter
		}
		d := min(8*time.Second, 500*time.Millisecond<<min(n, 4))
		return d - time.Duration(r.jitter.Int64N(int64(d)/4+1))
	}}
}

// hintOrJitter returns how long callers behind a limiter wait after a refusal: as the response says, else with full
// jitter.
func hintOrJitter(r *desk, c *call, resp Response) store.Time {
	if resp.RetryAfter > 0 {
		return store.Time(resp.RetryAfter.Microseconds())
	}
	return store.Time(fullJitter(r.jitter, c.sends-1).Microseconds())
}
