package sluice_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// Each is named after what once went wrong.

// c waits for b and b for c, but the cycle reported for all three was that of a and b.
func TestEveryAgentIsToldOfItsOwnCircle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{
			Resources: map[string]sluice.Resource{"api": {}},
			Agents:    map[string]sluice.Agent{"a": {WaitsFor: []string{"b"}}, "b": {WaitsFor: []string{"a", "c"}}, "c": {WaitsFor: []string{"b"}}},
		})
		for agent, want := range map[string][]string{"a": {"a", "b"}, "b": {"a", "b"}, "c": {"b", "c"}, "d": nil} {
			if w := newWork(t, g, agent); !slices.Equal(w.Cycle, want) {
				t.Errorf("%s is told of %q, want %q", agent, w.Cycle, want)
			}
		}
	})
}

// A limit per model was named once for each model.
func TestAdviceNamesALimitOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{
			{Name: "each", Kind: sluice.Rolling, Window: time.Minute, Per: []sluice.Scope{sluice.PerModel}},
		}}}})
		for _, model := range []string{"one", "two", "three"} {
			ticket, err := g.Try(context.Background(), sluice.Request{Resource: "api", Agent: "x", Model: model})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK}); err != nil {
				t.Fatal(err)
			}
			_ = ticket.Close()
			time.Sleep(20 * time.Second)
		}
		wantAdvice(t, g, "resources.api.limits", "size of the limit each is not known")
	})
}

// The quota of a bucket whose size a response had stated counted as unknown.
func TestQuotaOfABucketThatWasStated(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{
			{Name: "minute", Kind: sluice.Bucket, Window: time.Minute},
		}}}})
		ticket, err := g.Try(context.Background(), sluice.Request{Resource: "api", Agent: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ticket.Answer(sluice.Answer{Verdict: store.VerdictOK, Limits: []sluice.ObservedLimit{{Limit: "minute", Size: 50, Remaining: 49, ResetIn: -1}}}); err != nil {
			t.Fatal(err)
		}
		_ = ticket.Close()
		if d := diagnose(t, g, bubbleStart); d.QuotaPerMin != 50 {
			t.Errorf("a quota of %v a minute, want 50", d.QuotaPerMin)
		}
	})
}

func TestPasswordOfAStoreIsNotShown(t *testing.T) {
	t.Parallel()
	_, err := sluice.Open(context.Background(), sluice.Config{Store: "redis://me:hunter2@localhost:6379"})
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("got %v", err)
	}
}

// Two parts of a process joined as the same agent. When one left, the agent was dead and its slot free, although the
// other had not left.
func TestAgentThatJoinedTwiceStaysUntilBothLeave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := context.Background()
		g := openConfig(t, sluice.Config{
			Resources: map[string]sluice.Resource{"api": {}},
			Slots:     sluice.Slots{Max: 1},
		})
		one, err := g.Join(ctx, sluice.JoinRequest{Agent: "a", User: "u"})
		if err != nil {
			t.Fatal(err)
		}
		two, err := g.Join(ctx, sluice.JoinRequest{Agent: "a", User: "u"})
		if err != nil {
			t.Fatal(err)
		}
		if err := one.Leave(); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Join(ctx, sluice.JoinRequest{Agent: "b", User: "u"}); !errors.Is(err, sluice.ErrSlots) {
			t.Errorf("the slot of an agent that is still there: %v", err)
		}
		if s := status(t, g); len(s.Agents) != 1 || s.Agents[0].Name != "a" {
			t.Errorf("agents are %+v", s.Agents)
		}
		if err := two.Leave(); err != nil {
			t.Fatal(err)
		}
		if _, err := g.Join(ctx, sluice.JoinRequest{Agent: "b", User: "u"}); err != nil {
			t.Errorf("after both have left: %v", err)
		}
	})
}

// A reset at the start of Unix time, the natural way to say "on the full hour", counted as none.
func TestResetAtTheEpochIsAReset(t *testing.T) {
	t.Parallel()
	for _, reset := range []time.Time{time.Unix(0, 0), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)} {
		synctest.Test(t, func(t *testing.T) {
			g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{
				{Name: "hour", Kind: sluice.Fixed, Size: 1, Window: time.Hour, Reset: reset},
			}}}})
			if at := status(t, g).Resources[0].Limits[0].ResetAt; at == nil || !at.Equal(time.Now().Truncate(time.Hour).Add(time.Hour)) {
				t.Errorf("with %v the reset is at %v, want the next full hour", reset, at)
			}
		})
	}
}
