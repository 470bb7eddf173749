package sluicehttp

import (
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// Requests that Do gives up are kept, and no others.
func TestWhatDoGivesUpIsKept(t *testing.T) {
	failed := errors.New("the provider said: the-text-of-the-provider")
	for _, c := range []struct {
		name    string
		answer  sluice.Answer
		err     error
		observe bool
		leaves  bool // its caller, while it is sent
		stream  bool // its body cannot be read again
		most    int64
		want    error
		reason  string // empty: it is not kept
		sends   int
		lost    bool
	}{
		{name: "ok", answer: sluice.Answer{Verdict: store.VerdictOK, Status: 200}},
		{name: "final", answer: sluice.Answer{Verdict: store.VerdictOK, Status: 404}, err: failed, want: failed},
		{name: "attempts", answer: sluice.Answer{Verdict: store.VerdictError, Status: 500}, err: failed, want: sluice.ErrAttempts, reason: "gave up after 2 sends", sends: 2},
		{name: "no answer", answer: sluice.Answer{Verdict: store.VerdictError}, err: failed, want: sluice.ErrAttempts, reason: "gave up after 2 sends", sends: 2},
		{name: "billing", answer: sluice.Answer{Verdict: store.VerdictBilling, Status: 402}, want: sluice.ErrBilling, reason: "billing", sends: 1},
		{name: "deadline", answer: sluice.Answer{Verdict: store.VerdictThrottled, Status: 429, RetryAfter: 2 * hour}, want: sluice.ErrDeadline, reason: "would not be granted", sends: 1},
		{name: "long", answer: sluice.Answer{Verdict: store.VerdictBilling, Status: 402}, most: 3, want: sluice.ErrBilling, reason: "billing", sends: 1, lost: true},
		{name: "stream", answer: sluice.Answer{Verdict: store.VerdictBilling, Status: 402}, stream: true, want: sluice.ErrBilling, reason: "billing", sends: 1, lost: true},
		{name: "observe", answer: sluice.Answer{Verdict: store.VerdictError, Status: 500}, err: failed, observe: true, want: failed},
		{name: "caller gone", answer: sluice.Answer{Verdict: store.VerdictError, Status: 500}, leaves: true, want: context.Canceled},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				list, err := deadletter.Open(filepath.Join(t.TempDir(), "letters"))
				if err != nil {
					t.Fatal(err)
				}
				l := &Letters{Keeper: deadletter.NewKeeper(list, nil), MaxBody: c.most, Base: "/base"}
				g, err := sluice.Open(t.Context(), sluice.Config{
					Resources: map[string]sluice.Resource{"api": {Limits: wideLimits(), Observe: c.observe}}, Retry: retry.Policy{Attempts: 2},
				})
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				var body io.Reader = strings.NewReader("canary")
				if c.stream {
					body = io.MultiReader(body)
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://provider.invalid/base/x?y=1&key=the-canary-key", body)
				if err != nil {
					t.Fatal(err)
				}
				r.Header.Set("Authorization", "Bearer the-canary-key")
				err = l.Do(ctx, g, sluice.Request{Resource: "api", Agent: "a"}, r, func(context.Context, sluice.Ticket) (sluice.Answer, error) {
					if c.leaves {
						cancel()
					}
					return c.answer, c.err
				})
				if !errors.Is(err, c.want) {
					t.Errorf("it returned %v, want %v", err, c.want)
				}
				l.Keeper.Flush()
				entries, err := list.Entries()
				if err != nil || len(entries) > 1 || (len(entries) == 1) != (c.reason != "") {
					t.Fatalf("%+v, %v", entries, err)
				}
				if len(entries) == 0 {
					return
				}
				e := entries[0]
				q := e.Request
				if !strings.Contains(e.Reason, c.reason) || e.Resource != "api" || e.Agent != "a" || e.Attempts != c.sends || len(q.Answers) != c.sends || q.Answers[0].Status != c.answer.Status {
					t.Errorf("%+v, %+v", e, q)
				}
				if q.Method != http.MethodPost || q.Path != "/x?y=1" || q.Header.Get("Authorization") != "" || strings.Contains(q.Answers[0].Error, "the-text") {
					t.Errorf("%+v", q)
				}
				if c.lost != (q.Lost != "") || c.lost == (q.Body == "canary") {
					t.Errorf("the body %q, lost %q", q.Body, q.Lost)
				}
			})
		})
	}
}
