package provider

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice"
)

// Preset returns the limits that a provider is known to enforce, ready for use as a resource. Configured values and
// values that responses state override them. The resource has no limits if the numbers are unknown, as with generic.
// Preset returns false for an unknown name.
//
// If the dialect is a [Coster], requests must state its Cost. Otherwise they do not count against limits in its
// units.
func Preset(name string) (sluice.Resource, bool) {
	switch d := dialects[name].(type) {
	case nil:
		return sluice.Resource{}, false
	case GitHub:
		return githubPreset(), true
	case *vendor:
		return sluice.Resource{Limits: copyLimits(d.limits), Backoff: d.backoff}, true
	}
	return sluice.Resource{}, true
}

// copyLimits returns a deep copy that the caller may change.
func copyLimits(limits []sluice.Limit) []sluice.Limit {
	limits = slices.Clone(limits)
	for i := range limits {
		limits[i].Per = slices.Clone(limits[i].Per)
	}
	return limits
}

// githubPreset returns the limits of an authenticated user. Primary limits are windows whose sizes and resets
// responses state, because an organization's token may have more than usual. Secondary limits are never stated, so
// nothing corrects them. The cost of a GraphQL query is known only afterwards.
func githubPreset() sluice.Resource {
	limits := []sluice.Limit{
		{Name: partCore, Kind: sluice.Fixed, Size: 5000, Window: githubWindow(partCore), Unit: partCore, SizeIsDefault: true},
		{Name: partSearch, Kind: sluice.Fixed, Size: 30, Window: githubWindow(partSearch), Unit: partSearch},
		{Name: partCodeSearch, Kind: sluice.Fixed, Size: 10, Window: githubWindow(partCodeSearch), Unit: partCodeSearch},
		{Name: partGraphQL, Kind: sluice.Fixed, Size: 5000, Window: githubWindow(partGraphQL), Unit: partGraphQL, SizeIsDefault: true, Estimated: true},
		{Name: "inflight", Kind: sluice.Concurrency, Size: 100, Unit: sluice.Requests},
		{Name: "points", Kind: sluice.Rolling, Size: 900, Window: time.Minute, Unit: unitPoints},
		{Name: "graphql-points", Kind: sluice.Rolling, Size: 2000, Window: time.Minute, Unit: unitGraphQLPoints},
		{Name: "content-minute", Kind: sluice.Rolling, Size: 80, Window: time.Minute, Unit: unitContent},
		{Name: "content-hour", Kind: sluice.Rolling, Size: 500, Window: time.Hour, Unit: unitContent},
	}
	return sluice.Resource{
		Limits:  limits,
		Backoff: sluice.Backoff{Start: secondaryWait, Factor: 2, Cap: 15 * time.Minute},
	}
}
