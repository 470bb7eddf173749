package sim

import (
	"time"

	"github.com/sluicehq/sluice/store"
)

// GitHub returns the published limits of one GitHub user on the REST API: the hourly quota that headers state, and the
// secondary limits that they do not state.
func GitHub() ([]Limit, Policy) {
	return []Limit{
		{Name: "core", Kind: store.Fixed, Unit: Requests, Size: 5000, Window: time.Hour, Phase: 17 * time.Minute},
		{Name: "content-minute", Kind: store.Rolling, Unit: Content, Size: 80, Window: time.Minute, Hidden: true},
		{Name: "content-hour", Kind: store.Rolling, Unit: Content, Size: 500, Window: time.Hour, Hidden: true},
		{Name: "points", Kind: store.Rolling, Unit: Points, Size: 900, Window: time.Minute, Hidden: true},
		{Name: "concurrent", Kind: store.Concurrency, Unit: Requests, Size: 100, Hidden: true},
	}, Policy{Headers: true}
}

// Anthropic returns limits like those of an Anthropic organization: requests, input tokens and output tokens per
// minute, as buckets that hold one minute's worth. They count each model separately.
func Anthropic(requests, input, output int64) ([]Limit, Policy) {
	bucket := func(name, unit string, size int64) Limit {
		return Limit{Name: name, Kind: store.Bucket, Unit: unit, Size: size, Burst: size, Window: time.Minute, PerModel: true}
	}
	return []Limit{
		bucket("requests", Requests, requests),
		bucket("input", InputTokens, input),
		bucket("output", OutputTokens, output),
	}, Policy{Headers: true, RetryAfter: true}
}
