package sluice

import (
	"bytes"
	"encoding/json"
)

// What is not known is null in JSON: a zero would look like a figure. In Go it is zero, as the fields say.

// withNulls writes v with null in place of the numbers and words of some fields. Their order stays, for people who read it.
func withNulls(v any, unknown bool, fields ...string) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil || !unknown {
		return b, err
	}
	for _, f := range fields {
		key := []byte(`"` + f + `":`) // in a text its quotes would be escaped
		at := bytes.Index(b, key)
		if at < 0 {
			continue
		}
		at += len(key)
		if n := bytes.IndexAny(b[at:], ",}"); n >= 0 {
			b = append(b[:at:at], append([]byte("null"), b[at+n:]...)...)
		}
	}
	return b, nil
}

// MarshalJSON writes null for the size of a limit that is not known yet, and for what remains of it.
func (l LimitStatus) MarshalJSON() ([]byte, error) {
	type plain LimitStatus
	return withNulls(plain(l), l.Limit <= 0, "limit", "remaining")
}

// MarshalJSON writes null for figures that only the store knows, while it cannot be reached.
func (r ResourceStatus) MarshalJSON() ([]byte, error) {
	type plain ResourceStatus
	return withNulls(plain(r), r.Outage != nil, "light", "light_binds", "consecutive_429", "in_flight", "sent", "throttled", "retried", "waited_ms",
		"peak_per_s", "mean_per_s", "throttled_7d", "members", "silent_members")
}

// MarshalJSON writes null for the part of an agent that uses no limit whose size is known.
func (a AgentStatus) MarshalJSON() ([]byte, error) {
	type plain AgentStatus
	return withNulls(plain(a), a.Allocated <= 0, "allocated")
}

// MarshalJSON writes null for a quota that is not known.
func (p PoolStatus) MarshalJSON() ([]byte, error) {
	type plain PoolStatus
	return withNulls(plain(p), p.TotalLimit <= 0, "totalLimit")
}

// MarshalJSON writes null for the part of a quota that is not known.
func (a AgentAllocation) MarshalJSON() ([]byte, error) {
	type plain AgentAllocation
	return withNulls(plain(a), a.Allocated <= 0, "allocated")
}
