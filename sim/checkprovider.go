package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/sluicehq/sluice/store"
)

// The default sizes of the anthropic preset, per minute.
const (
	defaultRequests = 1_000
	defaultInput    = 2_000_000
	defaultOutput   = 400_000
)

func (c *checker) provider(sc *Scenario, f *fileProvider) {
	perMinute := func(path, s string, absent int64) int64 {
		if s == "" {
			return absent
		}
		r, err := ParseRate(s)
		if err != nil {
			c.fail(path, "%v", err)
		} else if r.Window != time.Minute {
			c.fail(path, "%s is not per minute", s)
		}
		return max(r.N, 1)
	}
	switch f.Preset {
	case "":
		sc.Policy.Headers = true
	case "github":
		sc.Limits, sc.Policy = GitHub()
	case "anthropic":
		sc.Limits, sc.Policy = Anthropic(
			perMinute("provider.requests", f.Requests, defaultRequests),
			perMinute("provider.input_tokens", f.InputTokens, defaultInput),
			perMinute("provider.output_tokens", f.OutputTokens, defaultOutput))
	default:
		c.fail("provider.preset", "%q is not one of github, anthropic", f.Preset)
	}
	for i := range f.Limits {
		sc.Limits = append(sc.Limits, c.limit(fmt.Sprintf("provider.limits[%d].", i), &f.Limits[i]))
		last := len(sc.Limits) - 1
		if slices.ContainsFunc(sc.Limits[:last], func(l Limit) bool { return l.Name == sc.Limits[last].Name }) {
			c.fail(fmt.Sprintf("provider.limits[%d].name", i), "there is a limit called %s already", sc.Limits[last].Name)
		}
	}
	if n := len(sc.Limits); n == 0 {
		c.fail("provider", "a preset or at least one of limits is needed")
	} else if n > store.MaxLimits {
		c.fail("provider.limits", "%d limits are more than %d", n, store.MaxLimits)
	}
	set(&sc.Policy.RetryAfter, f.RetryAfter)
	set(&sc.Policy.RejectedCount, f.RejectedCount)
	set(&sc.Policy.Headers, f.Headers)
	sc.Service = c.delay("provider.service", f.Service)
	sc.Body = c.delay("provider.body", f.Body)
	if f.Outside != "" {
		r, err := ParseRate(f.Outside)
		if err != nil {
			c.fail("provider.outside", "%v", err)
		}
		sc.Outside = r
	}
}

func (c *checker) limit(path string, f *fileLimit) Limit {
	l := Limit{Name: f.Name, Unit: f.Unit, Hidden: f.Hidden, Burst: f.Burst, Plan: f.Plan}
	c.name(path+"name", f.Name)
	if l.Unit == "" {
		l.Unit = Requests
	} else if !slices.Contains(Units, l.Unit) {
		c.fail(path+"unit", "%q is not one of %v", f.Unit, Units)
	}
	for _, per := range f.Per {
		if per != "model" {
			c.fail(path+"per", "a provider's limit can only be per model, not per %q", per)
		}
		l.PerModel = true
	}
	if c.doc.Has(path + "concurrency") {
		c.between(path+"concurrency", f.Concurrency, 1, 1_000_000)
		if f.Size != "" || f.Burst != 0 || (f.Kind != "" && f.Kind != "concurrency") || l.Unit != Requests {
			c.fail(path+"concurrency", "goes with no size, burst, kind or unit")
		}
		l.Kind, l.Size = store.Concurrency, f.Concurrency
		return l
	}
	if f.Size == "" {
		c.fail(path+"size", "is needed, such as 80/min")
		return l
	}
	r, err := ParseRate(f.Size)
	if err != nil {
		c.fail(path+"size", "%v", err)
		return l
	}
	l.Size, l.Window = r.N, r.Window
	l.Kind = c.kind(path, f)
	l.Phase = c.duration(path+"first_reset", f.FirstReset, l.Window)
	if l.Plan && (l.Kind != store.Fixed || l.Hidden) {
		c.fail(path+"plan", "only a fixed window that is not hidden can be a subscription's")
	}
	if f.FirstReset != "" && l.Kind != store.Fixed {
		c.fail(path+"first_reset", "only a fixed window resets")
	}
	c.positive(path+"burst", f.Burst, maxSize)
	// The strategies convert every limit to a bucket, so each must fit one.
	if !BucketFits(max(l.Burst, l.Size, 1), l.Size, l.Window) {
		c.fail(path+"size", "is too large to be counted exactly over such a window")
	}
	return l
}

// kind returns the kind of a limit by the same rule as the configuration file. A burst makes a bucket; otherwise a
// window rolls unless it is declared fixed.
func (c *checker) kind(path string, f *fileLimit) store.Kind {
	switch {
	case f.Kind == "bucket" && f.Burst == 0:
		c.fail(path+"burst", "a bucket needs one: how much it holds")
	case f.Burst != 0 && f.Kind != "" && f.Kind != "bucket":
		c.fail(path+"burst", "only a bucket has one")
	case f.Burst != 0:
		return store.Bucket
	case f.Kind == "", f.Kind == "rolling":
		return store.Rolling
	case f.Kind == "fixed":
		return store.Fixed
	default:
		c.fail(path+"kind", "%q is not one of bucket, rolling, fixed", f.Kind)
	}
	return store.Rolling
}

func (c *checker) delay(path string, f fileDelay) Delay {
	if !(f.Sigma >= 0 && f.Sigma <= maxSigma) {
		c.fail(path+".sigma", "is between 0 and %d", maxSigma)
	}
	return Delay{Median: c.duration(path+".median", f.Median, 0), Sigma: f.Sigma}
}

// together checks rules that concern the scenario as a whole.
func (c *checker) together(sc *Scenario) {
	for i := range sc.Fleet {
		a := &sc.Fleet[i]
		if end := a.Start + time.Duration(a.Jobs-1)*a.Every; a.Every > 0 && (end/a.Every < time.Duration(a.Jobs-1) || end > sc.Horizon) {
			c.fail("agents", "%s's last job would arrive after the horizon of %v", a.Name, sc.Horizon)
		}
		timed := false
		for k := range sc.Limits {
			l := &sc.Limits[k]
			cost := a.Request.cost(l)
			if l.late() {
				cost = a.Request.Output
			}
			if cost > l.capacity() {
				c.fail("agents", "%s's calls cost %d %s, which %s can never hold", a.Name, cost, l.Unit, l.Name)
			}
			timed = timed || cost > 0 && (l.Kind != store.Concurrency || sc.Service.Median+sc.Body.Median > 0)
		}
		if !timed {
			c.fail("agents", "%s's calls are not held up by any limit", a.Name)
		}
	}
}

// set overrides a preset's value if the file states one.
func set(into, stated *bool) {
	if stated != nil {
		*into = *stated
	}
}
