package config

import (
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// GateConfig returns the configuration of a gate for [sluice.Open]. It computes resets at a time of day from now.
// Fields that only the daemon reads are left out, and so are limits without a size, because the provider states those.
// The provider's known limits come before the configured ones. Call Defaults first on a File that was not parsed.
func (f *File) GateConfig(now time.Time) (sluice.Config, error) {
	prices, err := f.priceList()
	if err != nil {
		return sluice.Config{}, fmt.Errorf("prices.%s: %w", priceFile, err)
	}
	c := sluice.Config{
		Store: f.Store,
		OnStoreFailure: map[StoreFailure]store.OnFailure{
			"share": store.FailShare, "closed": store.FailClosed, "open": store.FailOpen,
		}[f.OnStoreFailure],
		Resources: map[string]sluice.Resource{},
		Order:     map[Order]store.Order{"fair": store.Fair, "strict": store.Strict, "fifo": store.FIFO}[f.Order],
		Agents:    map[string]sluice.Agent{},
		Tools:     f.Tools,
		Retry: retry.Policy{
			Attempts: f.Retry.Attempts, Deadline: time.Duration(f.Retry.Deadline),
			Base: time.Duration(f.Retry.Base), Cap: time.Duration(f.Retry.Cap),
			Windows: map[string]retry.Window{},
		},
		NoShares:  f.Shares == Off,
		NoPacing:  f.Pacing == Off,
		NoCascade: f.Cascade == Off,
		Budgets:   f.gateBudgets(),
		Price:     prices.OfAmounts,
		Routes:    f.gateRoutes(),
		Leases:    sluice.Leases{Renew: time.Duration(f.Leases.Renew), Expire: time.Duration(f.Leases.Expire), Off: f.Leases.Off},
	}
	if !f.Slots.Off {
		c.Slots = sluice.Slots{Max: f.Slots.Max, TTL: time.Duration(f.Slots.TTL)}
	}
	for _, class := range f.Classes {
		c.Classes = append(c.Classes, sluice.Class{Name: class.Name, Share: int64(class.Share)})
	}
	for class, w := range f.RetryWindows {
		c.Retry.Windows[class] = retry.Window{Min: time.Duration(w[0]), Max: time.Duration(w[1])}
	}
	for name, a := range f.Agents {
		c.Agents[name] = sluice.Agent{Class: a.Class, User: a.User, WaitsFor: a.WaitsFor}
	}
	for name, r := range f.Resources {
		gated, err := r.gate(now)
		if err != nil {
			return sluice.Config{}, fmt.Errorf("resources.%s: %w", name, err)
		}
		gated.Paid, gated.Preset = provider.CountsTokens(f.Dialect(name)), f.added[name]
		gated.Free = !gated.Paid && (r.Provider != "" && r.Provider != "generic" || gated.Preset)
		c.Resources[name] = gated
	}
	return c, nil
}

func (r *Resource) gate(now time.Time) (sluice.Resource, error) {
	out := sluice.Resource{
		Guard:        map[Guard]store.Guard{"auto": store.GuardAuto, "strict": store.GuardStrict, "off": store.GuardOff}[r.Guard],
		ArrivalSlack: time.Duration(r.ArrivalSlack),
		Use:          int(r.Use),
		MaxWaiting:   r.MaxWaiting,
		MaxMeters:    r.MaxMeters,
		Backoff:      sluice.Backoff{Start: time.Duration(r.Backoff.Start), Factor: int64(r.Backoff.Factor), Cap: time.Duration(r.Backoff.Cap)},
		TTL:          time.Duration(r.TTL),
		Light: sluice.Light{
			Green: int(r.Light.Green), Red: int(r.Light.Red), Static: r.Light.Mode == "static", All: r.Light.Bind == "all", Off: r.Light.Off,
		},
		Breaker: sluice.Breaker{
			Within: time.Duration(r.Breaker.Within), Samples: r.Breaker.Samples, Open: r.Breaker.Mode == "open", Off: r.Breaker.Off,
		},
		Reserve:   int(r.Reserve),
		Observe:   r.Mode == "observe",
		SplitKeys: r.Split == "key" || len(r.Keys) > 0,
	}
	for _, l := range r.Limits {
		if l.Size == (Rate{}) && l.Concurrency == 0 {
			continue
		}
		limit, err := l.gate(now)
		if err != nil {
			return out, fmt.Errorf("limit %s: %w", l.Name, err)
		}
		out.Limits = append(out.Limits, limit)
	}
	out.Limits = withPreset(r.Provider, out.Limits)
	return out, nil
}

func (l *Limit) gate(now time.Time) (sluice.Limit, error) {
	out := sluice.Limit{Name: l.Name, Kind: kinds[l.Kind], Size: l.Size.N, Window: l.Size.Window, Burst: l.Burst, Unit: l.Unit}
	if l.Kind == "concurrency" {
		out.Size = l.Concurrency
	}
	for _, scope := range l.Per {
		out.Per = append(out.Per, scopes[scope])
	}
	if l.Resets == (TimeOfDay{}) {
		return out, nil
	}
	var err error
	out.Reset, err = l.Resets.Next(now)
	return out, err
}

var (
	kinds = map[Kind]sluice.Kind{
		"bucket": sluice.Bucket, "rolling": sluice.Rolling, "fixed": sluice.Fixed, "concurrency": sluice.Concurrency,
	}
	scopes = map[Scope]sluice.Scope{
		"agent": sluice.PerAgent, "user": sluice.PerUser, "model": sluice.PerModel, "tool": sluice.PerTool, "key": sluice.PerKey,
	}
)
