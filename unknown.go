package sluice

import "encoding/json"

// What is not known is null in JSON: a zero would look like a figure. In Go it is zero, as the fields say.

func ifKnown(n int64, is bool) *int64 {
	if !is {
		return nil
	}
	return &n
}

// MarshalJSON writes null for the size of a limit that is not known yet, and for what remains of it.
func (l LimitStatus) MarshalJSON() ([]byte, error) {
	type plain LimitStatus
	return json.Marshal(struct {
		plain
		Limit     *int64 `json:"limit"`
		Remaining *int64 `json:"remaining"`
	}{plain(l), ifKnown(l.Limit, l.Limit > 0), ifKnown(l.Remaining, l.Limit > 0)})
}

// MarshalJSON writes null for figures that only the store knows, while it cannot be reached.
func (r ResourceStatus) MarshalJSON() ([]byte, error) {
	type plain ResourceStatus
	if r.Outage == nil {
		return json.Marshal(plain(r))
	}
	type none *struct{}
	return json.Marshal(struct {
		plain
		Light          none `json:"light"`
		LightBinds     none `json:"light_binds"`
		Consecutive429 none `json:"consecutive_429"`
		InFlight       none `json:"in_flight"`
		Sent           none `json:"sent"`
		Throttled      none `json:"throttled"`
		Retried        none `json:"retried"`
		WaitedMS       none `json:"waited_ms"`
		PeakPerS       none `json:"peak_per_s"`
		MeanPerS       none `json:"mean_per_s"`
		Throttled7d    none `json:"throttled_7d"`
		Members        none `json:"members"`
		SilentMembers  none `json:"silent_members"`
	}{plain: plain(r)})
}

// MarshalJSON writes null for the part of an agent that uses no limit whose size is known.
func (a AgentStatus) MarshalJSON() ([]byte, error) {
	type plain AgentStatus
	return json.Marshal(struct {
		plain
		Allocated *int64 `json:"allocated"`
	}{plain(a), ifKnown(a.Allocated, a.Allocated > 0)})
}

// MarshalJSON writes null for a quota that is not known.
func (p PoolStatus) MarshalJSON() ([]byte, error) {
	type plain PoolStatus
	return json.Marshal(struct {
		plain
		TotalLimit *int64 `json:"totalLimit"`
	}{plain(p), ifKnown(p.TotalLimit, p.TotalLimit > 0)})
}

// MarshalJSON writes null for the part of a quota that is not known.
func (a AgentAllocation) MarshalJSON() ([]byte, error) {
	type plain AgentAllocation
	return json.Marshal(struct {
		plain
		Allocated *int64 `json:"allocated"`
	}{plain(a), ifKnown(a.Allocated, a.Allocated > 0)})
}
