package sluice_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
)

// Unanswered tickets that fill a limit hold it until they are answered or their time to live is over. No time is promised
// before that, and their agent is named.
func TestUnansweredTicketsPromiseNoTime(t *testing.T) {
	for name, limit := range map[string]sluice.Limit{
		"bucket": bucket(5, time.Second, 10), "rolling": rolling(10, time.Second),
		"fixed": {Name: "fixed", Kind: sluice.Fixed, Size: 10, Window: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openResource(t, sluice.Resource{Limits: []sluice.Limit{limit}})
				var open []sluice.Ticket
				for range 10 {
					open = append(open, acquire(t, g, sluice.Request{Resource: "api", Agent: "f", TTL: 10 * time.Minute}))
				}
				ends := bubbleStart.Add(10 * time.Minute)
				time.Sleep(5 * time.Minute)
				_, err := g.Try(t.Context(), from("b"))
				if e := wantError(t, err, sluice.ErrNotNow); !e.RetryAt.IsZero() || e.Limit != name || e.Hint == "" {
					t.Errorf("refused until %v by %s", e.RetryAt, e.Limit)
				} else if !slices.Equal(e.HeldBy, []string{"f"}) || !e.HeldUntil.Equal(ends) || !strings.Contains(e.Error(), "10 unanswered tickets of f, until "+ends.Format(time.RFC3339)) || !strings.Contains(e.Hint, "let f close") {
					t.Errorf("held by %q until %v, not %v: %v; %s", e.HeldBy, e.HeldUntil, ends, e, e.Hint)
				}
				went := make(chan time.Time, 1)
				go func() {
					if waited, err := g.Acquire(context.WithoutCancel(t.Context()), from("b")); err == nil {
						went <- time.Now()
						_ = waited.Close()
					}
				}()
				synctest.Wait()
				list, err := g.Why(t.Context(), "api")
				if err != nil || len(list) != 1 || list[0].ExpectedAt != nil || len(list[0].HeldBy) != 1 || list[0].HeldBy[0] != "f" || list[0].HeldUntil == nil || !list[0].HeldUntil.Equal(ends) {
					t.Errorf("waiting: %+v %v", list, err)
				}
				if st := state(t, g); !strings.Contains(st.Reason, "held by 10 unanswered tickets of f, until "+ends.Format(time.RFC3339)) || st.Until != nil {
					t.Errorf("it is %s: %s, until %v", st.State, st.Reason, st.Until)
				}
				if d, err := g.Diagnose(t.Context(), bubbleStart); err != nil || adviceOn(&d.Resources[0], "resources.api.ttl") == "" || adviceOn(&d.Resources[0], "agents") != "" {
					t.Errorf("doctor advises %+v %v", d.Resources, err)
				}
				end(t, open[0])
				if at := <-went; at.After(bubbleStart.Add(6 * time.Minute)) {
					t.Errorf("the request went at %v", at)
				}
			})
		})
	}
}

// adviceOn returns what a diagnosis advises on a setting.
func adviceOn(d *inspect.ResourceDiagnosis, setting string) string {
	for _, a := range d.Advice {
		if a.Setting == setting {
			return a.Text
		}
	}
	return ""
}

// Requests that go once time has passed are not held by open tickets, although some are open.
func TestOpenTicketsHoldNothingWhileTimeMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := openResource(t, sluice.Resource{Limits: []sluice.Limit{rolling(10, time.Minute)}})
		for i := range 10 {
			x := acquire(t, g, sluice.Request{Resource: "api", Agent: "f", TTL: 10 * time.Minute})
			if i > 0 {
				end(t, x)
			}
		}
		_, err := g.Try(t.Context(), from("b"))
		if e := wantError(t, err, sluice.ErrNotNow); e.RetryAt.IsZero() || len(e.HeldBy) > 0 || !e.HeldUntil.IsZero() {
			t.Errorf("refused until %v, held by %q until %v", e.RetryAt, e.HeldBy, e.HeldUntil)
		}
		if st := state(t, g); strings.Contains(st.Reason, "unanswered") {
			t.Errorf("it is %s: %s", st.State, st.Reason)
		}
	})
}

// A limit per model is held by the tickets for that model, not by those for others.
func TestUnansweredTicketsHoldTheirOwnModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := rolling(2, time.Minute)
		limit.Per = []sluice.Scope{sluice.PerModel}
		g := openResource(t, sluice.Resource{Limits: []sluice.Limit{limit}})
		for i := range 3 {
			acquire(t, g, sluice.Request{Resource: "api", Agent: []string{"f", "f", "h"}[i], Model: []string{"x", "x", "y"}[i], TTL: time.Duration(i+1) * time.Hour})
		}
		_, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "b", Model: "x"})
		if e := wantError(t, err, sluice.ErrNotNow); !slices.Equal(e.HeldBy, []string{"f"}) || !e.HeldUntil.Equal(bubbleStart.Add(2*time.Hour)) {
			t.Errorf("held by %q until %v: %v, until %v", e.HeldBy, e.HeldUntil, e, e.RetryAt)
		}
	})
}

// Waiting requests go when they are expected to, and the first when a refusal said, although requests without a response
// may not have arrived yet and so do not drain.
func TestWaitingRequestsGoWhenTheyAreExpectedTo(t *testing.T) {
	for name, limit := range map[string]sluice.Limit{
		"bucket": bucket(2, time.Second, 3), "slow bucket": bucket(10_000, 24*time.Hour, 3), "rolling": rolling(3, 2*time.Second),
		"fixed": {Name: "fixed", Kind: sluice.Fixed, Size: 3, Window: 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openResource(t, sluice.Resource{Limits: []sluice.Limit{limit}})
				for range 3 {
					if err := acquire(t, g, from("a")).CloseUnanswered(); err != nil {
						t.Fatal(err)
					}
				}
				_, err := g.Try(t.Context(), from("b"))
				e := wantError(t, err, sluice.ErrNotNow)
				went := make(chan time.Time, 2)
				for range 2 {
					go func() {
						if _, err := g.Acquire(context.WithoutCancel(t.Context()), from("b")); err != nil {
							t.Error(err)
						}
						went <- time.Now()
					}()
				}
				synctest.Wait()
				list, err := g.Why(t.Context(), "api")
				if err != nil || len(list) != 2 || list[0].ExpectedAt == nil || !list[0].ExpectedAt.Equal(e.RetryAt) {
					t.Fatalf("%+v %v, want the first at %v", list, err, e.RetryAt)
				}
				for i := range list {
					if at := <-went; at.Sub(*list[i].ExpectedAt).Abs() > time.Millisecond {
						t.Errorf("request %d went at %v, expected at %v", i, at, list[i].ExpectedAt)
					}
				}
			})
		})
	}
}
