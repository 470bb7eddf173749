package provider

import (
	"slices"
	"time"

	"github.com/sluicehq/sluice"
)

// Preset returns the limits that a provider is known to enforce, ready to be used as a
// resource. What is configured and what answers state overrule them. A provider whose
// numbers nobody knows, generic above all, has none.
//
// Where the dialect is a [Coster], requests must state its Cost, or they count against none of
// the limits in its units.
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

// copyLimits makes limits that whoever gets them may change.
func copyLimits(limits []sluice.Limit) []sluice.Limit {
	limits = slices.Clone(limits)
	for i := range limits {
		limits[i].Per = slices.Clone(limits[i].Per)
	}
	return limits
}

// githubPreset are the limits of a signed-in user. Primary limits are windows whose sizes and resets
// answers state: an organization's token may have more than is usual. Secondary ones are
// never stated, so that nothing corrects them. What a GraphQL query costs is known only afterwards.
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
