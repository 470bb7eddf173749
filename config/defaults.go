package config

import (
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/retry"
	"github.com/sluicehq/sluice/store"
)

// DefaultListen is the address that the daemon listens on unless listen names another.
const DefaultListen = "127.0.0.1:7979"

// defaultSlots is the number of agents that a user may run when slots are on without a max.
const defaultSlots = 3

// Default returns the configuration of an empty file.
func Default() *File {
	f := &File{}
	f.Defaults()
	return f
}

// Defaults fills in every field that the file does not state. All defaults are written down here. A second call changes
// nothing.
func (f *File) Defaults() {
	or(&f.Store, "file:")
	or(&f.OnStoreFailure, "share")
	or(&f.Listen, DefaultListen)
	or(&f.Presets, On)
	or(&f.Intercept, InterceptAuto)
	or(&f.Order, "fair")
	or(&f.Shares, On)
	or(&f.Pacing, On)
	or(&f.Cascade, On)
	if len(f.Classes) == 0 {
		f.Classes = Classes{{sluice.P0, 40}, {sluice.P1, 35}, {sluice.P2, 25}}
	}
	f.Classes.divide()
	f.Leases.defaults()
	f.Slots.defaults()
	f.Retry.defaults()
	if f.RetryWindows == nil {
		f.RetryWindows = map[string]Window{}
		for class, w := range retry.Default().Windows {
			if f.Classes.has(class) {
				f.RetryWindows[class] = Window{Duration(w.Min), Duration(w.Max)}
			}
		}
	}
	if f.Tools == nil {
		f.Tools = policy.DefaultTools()
	}
	for i := range f.Budgets {
		or(&f.Budgets[i].Per, "fleet")
		or(&f.Budgets[i].Over, "deny")
	}
	for name, r := range f.Resources {
		r.defaults()
		f.Resources[name] = r
	}
	for model, p := range f.Prices {
		if model == priceFile {
			continue
		}
		p.defaults()
		f.Prices[model] = p
	}
}

// or sets v to value if v is zero.
func or[T comparable](v *T, value T) {
	var zero T
	if *v == zero {
		*v = value
	}
}

// divide gives classes without a share equal parts of what the other classes leave, at least 1% each.
func (c Classes) divide() {
	left, without := 100, 0
	for i := range c {
		left -= int(c[i].Share)
		if c[i].Share == 0 {
			without++
		}
	}
	for i := range c {
		if c[i].Share == 0 {
			c[i].Share = Percent(max(left/without, 1))
		}
	}
}

func (l *Leases) defaults() {
	if l.Off {
		return
	}
	or(&l.Renew, Duration(2*time.Minute))
	or(&l.Expire, Duration(5*time.Minute))
}

// defaults turns slots off if the file does not mention them, and fills in the rest if it does.
func (s *Slots) defaults() {
	if *s == (Slots{}) || s.Off {
		*s = Slots{Off: true}
		return
	}
	or(&s.Per, "user")
	or(&s.Max, defaultSlots)
	or(&s.TTL, Duration(5*time.Minute))
}

func (r *Retry) defaults() {
	or(&r.Attempts, retry.DefaultAttempts)
	or(&r.Deadline, Duration(retry.DefaultDeadline))
	or(&r.Base, Duration(retry.DefaultBase))
	or(&r.Cap, max(Duration(retry.DefaultCap), r.Base))
}

func (p *Price) defaults() {
	or(&p.CacheRead, p.Input)
	or(&p.CacheWrite, p.Input)
}

func (r *Resource) defaults() {
	r.fromPreset()
	or(&r.Mode, "gate")
	or(&r.Guard, "auto")
	or(&r.Use, 100)
	or(&r.MaxWaiting, 10_000)
	or(&r.MaxMeters, store.DefaultMeters)
	or(&r.TTL, Duration(10*time.Minute))
	or(&r.ClientDeadline, Duration(5*time.Minute))
	or(&r.KeepAlive, Duration(30*time.Second))
	if r.Provider == "" {
		or(&r.Abort, "hold") // otherwise the provider's own behaviour is known
	}
	if !r.Light.Off {
		or(&r.Light.Green, 20)
		or(&r.Light.Red, 5)
		or(&r.Light.Bind, "stocks")
		or(&r.Light.Mode, "shrink")
	}
	if r.Breaker.Mode == "off" {
		r.Breaker = Breaker{Off: true}
	}
	if !r.Breaker.Off {
		or(&r.Breaker.Within, Duration(2*time.Minute))
		or(&r.Breaker.Samples, 10)
		or(&r.Breaker.Mode, "glide")
	}
	or(&r.Backoff.Start, Duration(time.Minute))
	or(&r.Backoff.Factor, 2)
	or(&r.Backoff.Cap, max(Duration(15*time.Minute), r.Backoff.Start))
	for i := range r.Limits {
		r.Limits[i].defaults()
	}
}

func (l *Limit) defaults() {
	or(&l.Unit, sluice.Requests)
	switch {
	case l.Concurrency != 0:
		or(&l.Kind, "concurrency")
	case l.Burst != 0:
		or(&l.Kind, "bucket")
	case l.Size != Rate{}:
		or(&l.Kind, "rolling")
	}
	if l.Kind == "bucket" {
		or(&l.Burst, l.Size.N)
	}
}
