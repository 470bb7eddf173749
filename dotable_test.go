package sluice_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// TestDoTable uses the same table as the clients in Python and TypeScript.
func TestDoTable(t *testing.T) {
	text, err := os.ReadFile("retry/testdata/cases.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Do []struct {
			Name     string
			Verdicts []string
			Policy   struct {
				Attempts int
				Deadline int64 `json:"deadline_ms"`
				Base     int64 `json:"base_ms"`
				Cap      int64 `json:"cap_ms"`
			}
			Want struct {
				Sends   int
				Outcome string
			}
		}
	}
	if err := json.Unmarshal(text, &table); err != nil || len(table.Do) < 5 {
		t.Fatal(len(table.Do), err)
	}
	verdicts := map[string]store.Verdict{}
	for v := store.VerdictNone; v <= store.VerdictError; v++ {
		verdicts[v.String()] = v
	}
	outcomes := map[string]error{"ok": nil, "attempts": sluice.ErrAttempts, "deadline": sluice.ErrDeadline, "billing": sluice.ErrBilling}
	for _, c := range table.Do {
		t.Run(c.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := openConfig(t, sluice.Config{
					Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{rolling(1000, time.Minute)}}},
					Retry: retry.Policy{
						Attempts: c.Policy.Attempts, Deadline: time.Duration(c.Policy.Deadline) * time.Millisecond,
						Base: time.Duration(c.Policy.Base) * time.Millisecond, Cap: time.Duration(c.Policy.Cap) * time.Millisecond,
					},
				})
				sends := 0
				err := g.Do(t.Context(), from("a"), func(context.Context, sluice.Ticket) (sluice.Answer, error) {
					sends++
					return sluice.Answer{Verdict: verdicts[c.Verdicts[min(sends, len(c.Verdicts))-1]]}, nil
				})
				if want := outcomes[c.Want.Outcome]; sends != c.Want.Sends || !errors.Is(err, want) {
					t.Errorf("%d sends, %v; want %+v", sends, err, c.Want)
				}
			})
		})
	}
}
