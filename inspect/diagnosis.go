package inspect

import (
	"encoding/json"
	"time"
)

// Diagnosis is the result of an audit of a gate.
type Diagnosis struct {
	Resources []ResourceDiagnosis `json:"resources"`
}

// ResourceDiagnosis compares the use of all callers of a resource with its quota.
type ResourceDiagnosis struct {
	Name string `json:"name"`
	// QuotaPerMin is the limit on requests that callers come closest to, per minute. It is 0, and null in JSON, if no
	// limit is known. If each model has its own limit, it is the sum of the known ones.
	QuotaPerMin float64 `json:"quota_per_min"`
	MeanPerMin  float64 `json:"mean_per_min"`
	// PeakPerMin is the most that callers sent in one window of that limit, at least a minute, if the busiest windows
	// of all callers coincide. It is a mean per minute.
	PeakPerMin float64 `json:"peak_per_min"`
	// Ratio is the peak divided by the quota. If one model, or one limit that is full now, has a higher ratio, it is
	// that.
	Ratio float64 `json:"ratio"`
	// Verdict is "contention" from a ratio of 0.8 on, or if the provider refused many sends (429): five or more, and 5% of
	// them. Otherwise it is "unknown" if no quota is known, and "ok" if one is.
	Verdict string `json:"verdict"`
	// Fullest is the limit, with its model, that Ratio is about; empty, and null in JSON, if Ratio is about all of them.
	Fullest string `json:"fullest"`
	// OneMoreRatio is the ratio with one more average caller.
	OneMoreRatio float64        `json:"one_more_ratio"`
	Callers      []CallerReport `json:"callers"`
	Advice       []Advice       `json:"advice"`

	// FullestNow is the limit that is fullest at this moment. Full is the used part of it, which may be more than 1.
	FullestNow string  `json:"-"`
	Full       float64 `json:"-"`
	// Unanswered is the limit, with its model, that unanswered tickets leave without room; empty if there is none.
	Unanswered string `json:"-"`
	// Sent counts the sends of all callers, and Refused those that the provider refused (429).
	Sent    int64 `json:"-"`
	Refused int64 `json:"-"`
	// Quotas are the limits on requests that callers are compared with. Judged is the one that QuotaPerMin is about.
	Quotas []Quota `json:"-"`
	Judged Quota   `json:"-"`
}

// Quota is a limit on requests, for all callers together.
type Quota struct {
	PerMin float64
	Window time.Duration
	Reset  time.Time // any reset of a fixed window; zero if none is known
}

// MarshalJSON writes null for unknown figures.
func (d ResourceDiagnosis) MarshalJSON() ([]byte, error) {
	type plain ResourceDiagnosis
	out := struct {
		plain
		QuotaPerMin  *float64 `json:"quota_per_min"`
		Ratio        *float64 `json:"ratio"`
		Fullest      *string  `json:"fullest"`
		OneMoreRatio *float64 `json:"one_more_ratio"`
	}{plain: plain(d)}
	if d.QuotaPerMin > 0 {
		out.QuotaPerMin, out.OneMoreRatio = &d.QuotaPerMin, &d.OneMoreRatio
	}
	if d.QuotaPerMin > 0 || d.Ratio > 0 {
		out.Ratio = &d.Ratio
	}
	if d.Fullest != "" {
		out.Fullest = &d.Fullest
	}
	return json.Marshal(out)
}

// Advice names a setting to check, and says why.
type Advice struct {
	Setting string `json:"setting"` // such as resources.github.use
	Text    string `json:"text"`
	// YAML is the change as a line of a configuration. It is empty if no setting helps.
	YAML string `json:"yaml,omitempty"`
}
