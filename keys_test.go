package sluice_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/keylabel"
)

// split opens a gate whose resource counts each key separately.
func split(t *testing.T, store string, r sluice.Resource) *sluice.Gate {
	t.Helper()
	g, err := sluice.Open(t.Context(), sluice.Config{Store: store, Resources: map[string]sluice.Resource{"api": r}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

func label(t *testing.T, g *sluice.Gate, key string) string {
	t.Helper()
	l, err := g.KeyLabel(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var twoAnHour = []sluice.Limit{{Name: "hour", Kind: sluice.Rolling, Size: 2, Window: time.Hour}}

func TestLabelsTellKeysApartAndHideThem(t *testing.T) {
	dir := "file:" + t.TempDir()
	g, other := split(t, dir, sluice.Resource{Limits: twoAnHour, SplitKeys: true}), split(t, dir, sluice.Resource{Limits: twoAnHour, SplitKeys: true})
	a, b := label(t, g, "sk-a-0123456789"), label(t, g, "sk-b-0123456789")
	if a == b || !keylabel.Is(a) || strings.Contains("sk-a-0123456789", a) {
		t.Errorf("labels %q and %q", a, b)
	}
	if got := label(t, other, "sk-a-0123456789"); got != a {
		t.Errorf("another process of the store says %q, want %q", got, a)
	}
	if got := label(t, split(t, "file:"+t.TempDir(), sluice.Resource{}), "sk-a-0123456789"); got == a {
		t.Error("another store makes the same label")
	}
	if got := label(t, g, ""); got != keylabel.None {
		t.Errorf("no key is %q", got)
	}
	for _, text := range []string{"", "sk-a-0123456789", "0123456", "0123456G", "ABCDEF01", "0123456789"} {
		if keylabel.Is(text) {
			t.Errorf("%q is a label", text)
		}
	}
}

func TestEachKeyHasItsOwnLimits(t *testing.T) {
	per := []sluice.Limit{{Name: "hour", Kind: sluice.Rolling, Size: 2, Window: time.Hour, Per: []sluice.Scope{sluice.PerKey}}}
	for name, r := range map[string]sluice.Resource{"split": {Limits: twoAnHour, SplitKeys: true}, "per": {Limits: per}} {
		t.Run(name, func(t *testing.T) {
			g := split(t, "mem:", r)
			if !inside.Of(g).TellsKeys("api") || inside.Of(g).TellsKeys("none such") {
				t.Error("the gate does not say whether it tells keys apart")
			}
			for _, key := range []string{"11111111", "22222222", ""} {
				req := sluice.Request{Resource: "api", Agent: "a", Key: key}
				for range 2 {
					ticket, err := g.Try(t.Context(), req)
					if err != nil {
						t.Fatalf("key %q: %v", key, err)
					}
					_ = ticket.Close()
				}
				if _, err := g.Try(t.Context(), req); !errors.Is(err, sluice.ErrNotNow) {
					t.Errorf("key %q goes a third time: %v", key, err)
				}
				status, err := g.Resource(t.Context(), "api")
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, l := range status.Limits {
					if req.In(l.Scope) && l.Used == 2 {
						n++
					}
				}
				if n != 1 {
					t.Errorf("%d limits count key %q: %+v", n, key, status.Limits)
				}
			}
			pool, err := g.Pool(t.Context(), "api")
			if err != nil || pool.TotalLimit != 6 {
				t.Errorf("three keys have %d together, want 6 (%v)", pool.TotalLimit, err)
			}
		})
	}
}

func TestOwnLimitsAreNotSplit(t *testing.T) {
	g := split(t, "mem:", sluice.Resource{SplitKeys: true, Limits: []sluice.Limit{
		{Name: "each", Kind: sluice.Rolling, Size: 1, Window: time.Hour, Per: []sluice.Scope{sluice.PerAgent}},
	}})
	if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Key: "11111111"}); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Key: "22222222"}); !errors.Is(err, sluice.ErrNotNow) {
		t.Errorf("a second key lets the agent go twice: %v", err)
	}
}

func TestARefusalPausesOneKey(t *testing.T) {
	for _, verdict := range []sluice.Verdict{sluice.VerdictThrottled, sluice.VerdictExhausted} {
		t.Run(verdict.String(), func(t *testing.T) {
			g := split(t, "mem:", sluice.Resource{Limits: []sluice.Limit{{Name: "hour", Kind: sluice.Rolling, Size: 100, Window: time.Hour}}, SplitKeys: true})
			for _, key := range []string{"11111111", ""} {
				ticket, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Key: key})
				if err != nil {
					t.Fatal(err)
				}
				if _, err := ticket.Answer(sluice.Answer{Verdict: verdict, RetryAfter: time.Hour}); err != nil {
					t.Fatal(err)
				}
				_ = ticket.Close()
				if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Key: key}); !errors.Is(err, sluice.ErrNotNow) {
					t.Errorf("key %q goes on: %v", key, err)
				}
				if _, err := g.Try(t.Context(), sluice.Request{Resource: "api", Agent: "a", Key: "22222222"}); err != nil {
					t.Errorf("another key is held: %v", err)
				}
			}
			status, err := g.Resource(t.Context(), "api")
			if err != nil || len(status.Gates) != 2 || status.Gates[0].Scope != "key=11111111" || status.Gates[1].Scope != "key=none" || status.PausedUntil != nil || status.State != inspect.StatePaused {
				t.Errorf("status %+v %v", status, err)
			}
		})
	}
}
