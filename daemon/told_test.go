package daemon_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
)

// beginAPI is begin without a provider, so that it works in virtual time.
func beginAPI(t *testing.T, text string) *rig {
	t.Helper()
	r := &rig{T: t}
	none := func(string) (string, bool) { return "", false }
	var err error
	if r.file, err = config.Parse("test.yaml", []byte(text), none); err != nil {
		t.Fatal(err)
	}
	c, err := r.file.GateConfig(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	c.Store = "mem:"
	if r.gate, err = sluice.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if r.daemon, err = daemon.New(daemon.Options{File: r.file, Gate: r.gate, Env: none, Base: http.NewFileTransport(http.Dir("."))}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		r.daemon.Settle()
		if err := r.gate.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// paused returns how long the resource is still held.
func (r *rig) paused() time.Duration {
	r.Helper()
	s, err := r.gate.Resource(r.Context(), "api")
	if err != nil {
		r.Fatal(err)
	}
	if s.PausedUntil == nil {
		return 0
	}
	return time.Until(*s.PausedUntil)
}

// tell reports a response for a ticket.
func (r *rig) tell(token, ticket, answer string) {
	r.Helper()
	if code, body := r.as(token, "POST", "/v1/tickets/"+ticket+"/answer", answer); code != http.StatusOK {
		r.Fatal(code, body)
	}
}

// tries returns how long a token's caller has to wait for a ticket, 0 if it gets one.
func (r *rig) tries(token string) time.Duration {
	r.Helper()
	code, body := r.as(token, "POST", "/v1/tickets", `{"resource":"api","agent":"`+token+`","wait_ms":0}`)
	if code == http.StatusOK {
		return 0
	}
	var p struct {
		Retry int64 `json:"retry_after_ms"`
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil || code != http.StatusTooManyRequests || p.Retry == 0 {
		r.Fatal(code, body, err)
	}
	return time.Duration(p.Retry) * time.Millisecond
}

const refusal, success = `{"status":429}`, `{"status":200}`

// A lower token that reports a refusal with an absurd hint causes only the usual pause for others.
func TestReportedAnswerCannotHoldTheFleet(t *testing.T) {
	for _, answer := range []string{
		refusal, `{"status":429,"headers":{"retry-after":"86400"}}`, `{"status":529,"headers":{"retry-after":"86400"}}`, `{"status":503,"headers":{"retry-after":"86400"}}`,
		`{"status":402}`, `{"status":429,"headers":{"x-ratelimit-limit":"1","x-ratelimit-remaining":"0","x-ratelimit-reset":"86400"}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := beginAPI(t, "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\n"+fourTokens)
			var tickets []string
			for range 10 {
				tickets = append(tickets, r.grant("low", "a"))
			}
			begun := time.Now()
			for _, ticket := range tickets { // one after the other, to prolong it
				r.tell("low", ticket, answer)
				time.Sleep(9 * time.Second)
				if until := time.Since(begun) + r.paused(); r.paused() > 0 && until > time.Minute {
					t.Fatalf("%s: paused for %v", answer, until)
				}
			}
			if wait := r.tries("top"); wait != 0 {
				t.Errorf("%s: the highest class waits for %v", answer, wait)
			}
		})
	}
}

// Repeated refusals that a lower token reports hold all callers once, and then only that token.
func TestRepeatedReportsHoldOnlyTheirToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginAPI(t, "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\n"+fourTokens)
		r.tell("low", r.grant("low", "a"), refusal)
		if got := r.paused(); got != time.Minute {
			t.Fatalf("a real refusal pauses for %v", got)
		}
		latest := time.Now()
		time.Sleep(time.Minute)
		for i, want := range []time.Duration{1, 2, 4, 8, 15, 15} { // minutes that the token waits by itself
			r.tell("low", r.grant("low", "a"), refusal) // it is the probe, too: no one else waits
			if got := r.paused(); got != 0 {            // ten minutes later it may hold everybody again
				if got != time.Minute || time.Since(latest) < 10*time.Minute {
					t.Fatalf("report %d holds everybody for %v, %v after the one before", i+2, got, time.Since(latest))
				}
				latest = time.Now()
				time.Sleep(got)
				r.tell("low", r.grant("low", "a"), refusal)
			}
			time.Sleep(10 * time.Second) // by then others are through
			if got := r.tries("low"); got > want*time.Minute || got < want*time.Minute-11*time.Second {
				t.Errorf("after report %d the token waits for %v, not %v min", i+2, got, want)
			}
			for _, token := range []string{"top", "other", "bob"} {
				if wait := r.tries(token); wait != 0 {
					t.Errorf("after report %d %s waits for %v", i+2, token, wait)
				}
				time.Sleep(time.Second) // the ramp after a pause
			}
			time.Sleep(r.tries("low"))
		}
		r.tell("low", r.grant("low", "a"), success)
		if wait := r.tries("low"); wait != 0 {
			t.Errorf("after a success the token waits for %v", wait)
		}
	})
}

// A refusal that a lower token reports and a probe of the highest class confirms escalates like any other.
func TestReportedRefusalThatTheProbeConfirmsEscalates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginAPI(t, "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\n"+fourTokens)
		r.tell("low", r.grant("low", "a"), refusal)
		time.Sleep(time.Minute)
		r.tell("top", r.grant("top", "b"), refusal)
		if got := r.paused(); got != 2*time.Minute {
			t.Errorf("confirmed, it pauses for %v", got)
		}
	})
}

// limited is a resource that counts tokens in some way.
const limited = "resources: {api: {limits: [{name: minute, size: 1000/min}, {name: tokens, size: 10000/min, unit: input_tokens, kind: %s}]}}\n"

// grantOf takes a ticket for some units with a token.
func (r *rig) grantOf(token, units string) string {
	r.Helper()
	code, body := r.as(token, "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":0,"units":{`+units+`}}`)
	var g struct{ Ticket string }
	if err := json.Unmarshal([]byte(body), &g); err != nil || code != http.StatusOK {
		r.Fatal(code, body, err)
	}
	return g.Ticket
}

// spend closes a ticket with usage.
func (r *rig) spend(token, ticket, usage string) {
	r.Helper()
	if code, body := r.as(token, "POST", "/v1/tickets/"+ticket+"/close", `{"usage":{`+usage+`}}`); code != http.StatusNoContent {
		r.Fatal(code, body)
	}
}

// used returns what the limit on tokens has counted.
func (r *rig) used(limit string) int64 {
	r.Helper()
	s, err := r.gate.Resource(r.Context(), "api")
	if err != nil {
		r.Fatal(err)
	}
	for _, l := range s.Limits {
		if l.Name == limit {
			return l.Used
		}
	}
	r.Fatal("no such limit")
	return 0
}

// Honest usage of a lower token counts in full, up to the whole limit. Counting less than the provider would let others
// exceed it.
func TestHonestUsageOfALowerTokenCountsInFull(t *testing.T) {
	for _, kind := range []string{"bucket", "rolling", "fixed"} {
		synctest.Test(t, func(t *testing.T) {
			r := beginAPI(t, fmt.Sprintf(limited, kind)+fourTokens)
			const guess = `"requests":1,"input_tokens":1`
			a, b, c := r.grantOf("low", guess), r.grantOf("low", guess), r.grantOf("other", guess)
			r.spend("low", a, `"input_tokens":9000`)
			if got := r.used("tokens"); got != 9002 {
				t.Errorf("%s: %d of 9,002 count", kind, got)
			}
			r.spend("low", b, `"input_tokens":10000,"requests":3`)
			r.spend("other", c, `"input_tokens":700`)
			if got := r.used("tokens"); got != 19_700 {
				t.Errorf("%s: %d of 19,700 count", kind, got)
			}
			if got := r.used("minute"); got != 5 {
				t.Errorf("%s: %d of 5 requests count", kind, got)
			}
		})
	}
}

// A lower token may not take a ticket for many requests, and cannot state many either: that would hold all callers for
// a window.
func TestOneTicketOfALowerTokenIsNotAWholeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginAPI(t, fmt.Sprintf(limited, "rolling")+fourTokens)
		r.spend("low", r.grantOf("low", `"requests":1`), `"requests":1000000`)
		if got := r.used("minute"); got != 10 {
			t.Errorf("%d requests count, want the ticket's and its retries, 10", got)
		}
		r.spend("top", r.grantOf("top", `"requests":1`), `"requests":500`)
		if got := r.used("minute"); got != 510 {
			t.Errorf("%d requests count, want 510: the highest class is believed", got)
		}
	})
}

// Absurd usage that a lower token states holds others for one window, or two with a bucket, however many tickets state
// it.
func TestAbsurdUsageOfALowerTokenHoldsOneWindow(t *testing.T) {
	for kind, most := range map[string]time.Duration{"bucket": 2, "rolling": 1, "fixed": 1} {
		for _, usage := range []string{`"input_tokens":1000000000000`, `"requests":1000000000000`} {
			synctest.Test(t, func(t *testing.T) {
				text := strings.Replace(limited, "1000/min", "1000/min, kind: "+kind, 1)
				r := beginAPI(t, fmt.Sprintf(text, kind)+fourTokens)
				var tickets []string
				for range 20 {
					tickets = append(tickets, r.grantOf("low", `"requests":1,"input_tokens":100`))
				}
				for _, ticket := range tickets {
					r.spend("low", ticket, usage)
				}
				// Slack and guard come on top of the windows.
				time.Sleep(most*time.Minute + 5*time.Second)
				if code, body := r.as("top", "POST", "/v1/tickets", `{"resource":"api","agent":"t","wait_ms":0,"units":{"requests":1,"input_tokens":100}}`); code != http.StatusOK {
					t.Errorf("%s, %s: %s", kind, usage, body)
				}
			})
		}
	}
}

// Money that a lower token states counts up to 10 USD per ticket and, with tokens, up to twice their price.
func TestMoneyStatedByALowerTokenIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := beginAPI(t, "resources: {api: {limits: [{name: minute, size: 1000/min}]}}\nbudgets: [{name: all, size: 1000usd/month}]\n"+fourTokens)
		spent := func() float64 {
			s, err := r.gate.Budgets(t.Context())
			if err != nil || len(s) != 1 {
				t.Fatal(s, err)
			}
			return s[0].UsedUSD
		}
		if code, body := r.as("low", "POST", "/v1/tickets", `{"resource":"api","agent":"a","units":{"usd":100.5}}`); code != http.StatusForbidden || !strings.Contains(body, "takes at most 100 usd, not 100.5") {
			t.Error(code, body)
		}
		paid := func(token string) string { return r.grantOf(token, `"requests":1,"usd":0.000001`) }
		r.spend("low", paid("low"), `"usd":9`)
		if got := spent(); got != 9 {
			t.Errorf("%v of 9 USD count", got)
		}
		r.spend("low", paid("low"), `"usd":1000`)
		if got := spent(); got != 19 {
			t.Errorf("%v USD count, not 19", got)
		}
		r.spend("low", paid("low"), `"input_tokens":2000000,"usd":39`)
		if got := spent(); got != 58 {
			t.Errorf("%v USD count, not 58", got)
		}
		r.spend("low", paid("low"), `"input_tokens":10000000,"usd":1000`)
		if got := spent(); got != 158 {
			t.Errorf("%v USD count, not 158", got)
		}
		r.spend("top", paid("top"), `"usd":300`)
		if got := spent(); got != 458 {
			t.Errorf("%v USD count, not 458", got)
		}
	})
}

// Unclosed tickets of lower tokens leave the highest class its part of each limit.
func TestOpenTicketsOfLowerTokensLeaveRoom(t *testing.T) {
	for _, limit := range []string{"{name: l, concurrency: 8}", "{name: l, size: 8/min}", "{name: l, size: 800/min, unit: input_tokens}"} {
		synctest.Test(t, func(t *testing.T) {
			r := beginAPI(t, "resources: {api: {limits: ["+limit+"]}}\n"+fourTokens)
			take := func(token, wait string) (int, string) {
				return r.as(token, "POST", "/v1/tickets", `{"resource":"api","agent":"a","wait_ms":`+wait+`,"units":{"requests":1,"input_tokens":100}}`)
			}
			var first string
			for i := range 7 {
				code, body := take([]string{"low", "other"}[i%2], "0")
				if code != http.StatusOK {
					t.Fatal(i, code, body)
				}
				if i == 0 {
					first = body
				}
			}
			if code, body := take("low", "1000"); code != http.StatusTooManyRequests {
				t.Errorf("%s: the eighth: %d %s", limit, code, body)
			}
			if code, body := take("top", "0"); code != http.StatusOK {
				t.Errorf("%s: the highest class: %d %s", limit, code, body)
			}
			var g struct{ Ticket string }
			if err := json.Unmarshal([]byte(first), &g); err != nil {
				t.Fatal(err)
			}
			got := make(chan int)
			go func() {
				code, _ := take("other", "120000")
				got <- code
			}()
			synctest.Wait()
			r.spend("low", g.Ticket, "")
			if code := <-got; code != http.StatusOK {
				t.Errorf("%s: after one has ended: %d", limit, code)
			}
		})
	}
}
