package sluice_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

func TestConfigurationThatMakesNoSenseIsRefused(t *testing.T) {
	ok := sluice.Limit{Name: "minute", Kind: sluice.Rolling, Size: 80, Window: time.Minute}
	limit := func(change func(*sluice.Limit)) sluice.Config {
		l := ok
		change(&l)
		return sluice.Config{Resources: map[string]sluice.Resource{"api": {Limits: []sluice.Limit{l}}}}
	}
	resource := func(r sluice.Resource) sluice.Config {
		return sluice.Config{Resources: map[string]sluice.Resource{"api": r}}
	}
	with := func(c sluice.Config) sluice.Config {
		c.Resources = resource(sluice.Resource{Limits: []sluice.Limit{ok}}).Resources
		return c
	}
	for name, c := range map[string]sluice.Config{
		"resource without a name": {Resources: map[string]sluice.Resource{"": {Limits: []sluice.Limit{ok}}}},
		"resource with long name": {Resources: map[string]sluice.Resource{strings.Repeat("x", 300): {Limits: []sluice.Limit{ok}}}},
		"limit without a name":    limit(func(l *sluice.Limit) { l.Name = "" }),
		"limit with a long name":  limit(func(l *sluice.Limit) { l.Name = strings.Repeat("x", 300) }),
		"unknown kind":            limit(func(l *sluice.Limit) { l.Kind = 9 }),
		"negative size":           limit(func(l *sluice.Limit) { l.Size = -1 }),
		"absurd size":             limit(func(l *sluice.Limit) { l.Size = math.MaxInt64 }),
		"negative burst":          limit(func(l *sluice.Limit) { l.Kind, l.Burst = sluice.Bucket, -1 }),
		"no window":               limit(func(l *sluice.Limit) { l.Window = 0 }),
		"negative window":         limit(func(l *sluice.Limit) { l.Window = -time.Minute }),
		"absurd window":           limit(func(l *sluice.Limit) { l.Window = math.MaxInt64 }),
		"unknown scope":           limit(func(l *sluice.Limit) { l.Per = []sluice.Scope{64} }),
		"no scope":                limit(func(l *sluice.Limit) { l.Per = []sluice.Scope{0} }),
		"reset before 1970":       limit(func(l *sluice.Limit) { l.Kind, l.Reset = sluice.Fixed, time.Unix(-1, 0) }),
		"two of one name":         resource(sluice.Resource{Limits: []sluice.Limit{ok, ok}}),
		"too many limits":         resource(sluice.Resource{Limits: make([]sluice.Limit, store.MaxLimits+1)}),
		"use above all":           resource(sluice.Resource{Use: 101, Limits: []sluice.Limit{ok}}),
		"negative use":            resource(sluice.Resource{Use: -1, Limits: []sluice.Limit{ok}}),
		"unknown guard":           resource(sluice.Resource{Guard: 9, Limits: []sluice.Limit{ok}}),
		"negative slack":          resource(sluice.Resource{ArrivalSlack: -1, Limits: []sluice.Limit{ok}}),
		"negative queue":          resource(sluice.Resource{MaxWaiting: -1, Limits: []sluice.Limit{ok}}),
		"negative ttl":            resource(sluice.Resource{TTL: -1, Limits: []sluice.Limit{ok}}),
		"absurd ttl":              resource(sluice.Resource{TTL: math.MaxInt64, Limits: []sluice.Limit{ok}}),
		"negative backoff":        resource(sluice.Resource{Backoff: sluice.Backoff{Start: -1}, Limits: []sluice.Limit{ok}}),
		"cap below start":         resource(sluice.Resource{Backoff: sluice.Backoff{Start: time.Hour, Cap: time.Minute}, Limits: []sluice.Limit{ok}}),
		"shrinking backoff":       resource(sluice.Resource{Backoff: sluice.Backoff{Factor: -2}, Limits: []sluice.Limit{ok}}),
		"class without a name":    with(sluice.Config{Classes: []sluice.Class{{Share: 1}}}),
		"class twice":             with(sluice.Config{Classes: []sluice.Class{{Name: "a", Share: 1}, {Name: "a", Share: 1}}}),
		"class without a share":   with(sluice.Config{Classes: []sluice.Class{{Name: "a"}}}),
		"too many classes":        with(sluice.Config{Classes: manyClasses(store.MaxClasses + 1)}),
		"unknown order":           with(sluice.Config{Order: 9}),
		"agent of unknown class":  with(sluice.Config{Agents: map[string]sluice.Agent{"a": {Class: "p9"}}}),
		"negative tool":           with(sluice.Config{Tools: map[string]int64{"t": -1}}),
		"absurd tool":             with(sluice.Config{Tools: map[string]int64{"t": math.MaxInt64}}),
	} {
		t.Run(name, func(t *testing.T) {
			g, err := sluice.Open(context.Background(), c)
			if err == nil {
				t.Fatal(g.Close(), "it was accepted")
			}
			if e := wantError(t, err, sluice.ErrInvalid); e.Error() == "" {
				t.Error("no word of what is wrong")
			}
		})
	}
}

func manyClasses(n int) []sluice.Class {
	var list []sluice.Class
	for i := range n {
		list = append(list, sluice.Class{Name: string(rune('a' + i)), Share: 1})
	}
	return list
}

func TestStoreThatIsNotThereIsRefused(t *testing.T) {
	for _, url := range []string{"nothing", "nothing:", "mem:more", ":", "mem"} {
		_, err := sluice.Open(context.Background(), sluice.Config{Store: url})
		if e := wantError(t, err, sluice.ErrStore); !strings.Contains(e.Error(), url) {
			t.Errorf("%q: the error does not name it: %v", url, e)
		}
	}
}

func TestErrorNamesWhatIsWrong(t *testing.T) {
	_, err := sluice.Open(context.Background(), sluice.Config{Resources: map[string]sluice.Resource{
		"good": {}, "search": {Limits: []sluice.Limit{{Name: "minute", Kind: sluice.Rolling, Size: -3, Window: time.Minute}}},
	}})
	e := wantError(t, err, sluice.ErrInvalid)
	if e.Resource != "search" || !strings.Contains(e.Error(), "minute") || !strings.Contains(e.Error(), "-3") {
		t.Errorf("error is %q about resource %q", e, e.Resource)
	}
}

// The configuration is copied: later changes to it have no effect.
func TestConfigurationIsCopied(t *testing.T) {
	tools := map[string]int64{"draw": 10}
	limits := []sluice.Limit{{Name: "work", Kind: sluice.Bucket, Size: 100, Window: time.Minute, Unit: sluice.Work}}
	g := openConfig(t, sluice.Config{Tools: tools, Resources: map[string]sluice.Resource{"api": {Limits: limits}}})
	tools["draw"], limits[0].Unit = 1, sluice.Requests
	ticket := acquire(t, g, sluice.Request{Resource: "api", Agent: "a", Tool: "draw"})
	if got := ticket.Close(); got != nil {
		t.Fatal(got)
	}
	if got := used(t, g, "work"); got != 10 {
		t.Errorf("the tool cost %d, want 10 as when the gate was opened", got)
	}
}

func TestGateWithoutResources(t *testing.T) {
	g := openConfig(t, sluice.Config{})
	s, err := g.Status(context.Background())
	if err != nil || s.Store != "mem:" || len(s.Resources) != 0 {
		t.Errorf("status is %+v, %v", s, err)
	}
	_, err = g.Why(context.Background(), "api")
	wantError(t, err, sluice.ErrUnknownResource)
}

func TestResourcesAreApart(t *testing.T) {
	g := openConfig(t, sluice.Config{Resources: map[string]sluice.Resource{
		"a": {Limits: []sluice.Limit{places(1)}}, "b": {Limits: []sluice.Limit{places(1)}},
	}})
	one := acquire(t, g, sluice.Request{Resource: "a", Agent: "x"})
	two := acquire(t, g, sluice.Request{Resource: "b", Agent: "x"})
	end(t, one)
	end(t, two)
}

// Two gates in memory share nothing, because each opened its own store.
func TestGatesInMemoryAreApart(t *testing.T) {
	for range 2 {
		ticket := acquire(t, open(t, places(1)), from("a"))
		defer ticket.Close()
	}
}
