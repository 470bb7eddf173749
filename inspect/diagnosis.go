package inspect

import (
	"encoding/json"
)

// Diagnosis is what an audit of a gate found.
type Diagnosis struct {
	Resources []ResourceDiagnosis `json:"resources"`
}

// ResourceDiagnosis sets all callers of a resource against its quota.
type ResourceDiagnosis struct {
	Name string `json:"name"`
	// QuotaPerMin is the tightest limit on requests, by the minute; 0 if none is known, which is null in JSON. Where each model has a limit
	// of its own, it is the sum of those that are known.
	QuotaPerMin float64 `json:"quota_per_min"`
	MeanPerMin  float64 `json:"mean_per_min"`
	PeakPerMin  float64 `json:"peak_per_min"` // if the busiest minutes of all callers coincide
	// Ratio is that of the peak to the quota, or the highest for one model or one limit that is full at this moment.
	Ratio float64 `json:"ratio"`
	// Verdict is contention from a ratio of 0.8 on, unknown if no quota is known, else ok.
	Verdict string `json:"verdict"`
	// Fullest is the limit, with its model, that Ratio is about; empty if it is about all of them.
	Fullest string `json:"fullest,omitempty"`
	// OneMoreRatio is the ratio with one more caller like the average of these.
	OneMoreRatio float64        `json:"one_more_ratio"`
	Callers      []CallerReport `json:"callers"`
	Advice       []Advice       `json:"advice"`

	// FullestNow is the limit that is fullest at this moment, and Full the part of it that is used, which may be more than 1.
	FullestNow string  `json:"-"`
	Full       float64 `json:"-"`
}

// MarshalJSON writes null for what is not known.
func (d ResourceDiagnosis) MarshalJSON() ([]byte, error) {
	type plain ResourceDiagnosis
	out := struct {
		plain
		QuotaPerMin  *float64 `json:"quota_per_min"`
		Ratio        *float64 `json:"ratio"`
		OneMoreRatio *float64 `json:"one_more_ratio"`
	}{plain: plain(d)}
	if d.QuotaPerMin > 0 {
		out.QuotaPerMin, out.OneMoreRatio = &d.QuotaPerMin, &d.OneMoreRatio
	}
	if d.QuotaPerMin > 0 || d.Ratio > 0 {
		out.Ratio = &d.Ratio
	}
	return json.Marshal(out)
}

// Advice is a setting that is worth a look, and why.
type Advice struct {
	Setting string `json:"setting"` // such as resources.github.use
	Text    string `json:"text"`
}
