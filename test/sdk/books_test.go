//go:build linux || darwin

package sdk_test

import (
	"io"
	"net/http"
	"time"
)

// status is what the gate knows of the resource.
func (r *rig) status() resourceStatus {
	r.Helper()
	s := decode[struct{ Resources []resourceStatus }](r.T, r.sluice("status"))
	for _, one := range s.Resources {
		if one.Name == r.provider {
			return one
		}
	}
	r.Fatalf("status does not know %s", r.provider)
	return resourceStatus{}
}

type resourceStatus struct {
	Name           string
	InFlight       int   `json:"in_flight"`
	Sent           int64 `json:"sent"`
	Throttled      int64 `json:"throttled"`
	Retried        int64 `json:"retried"`
	Consecutive429 int   `json:"consecutive_429"`
}

// caller is what the gate has counted of the client.
func (r *rig) caller() callerReport {
	r.Helper()
	rep := decode[struct {
		Resources []struct {
			Name    string
			Callers []callerReport
		}
	}](r.T, r.sluice("report", r.provider))
	for _, res := range rep.Resources {
		for _, c := range res.Callers {
			if res.Name == r.provider && c.Name == "sdk" {
				return c
			}
		}
	}
	r.Fatalf("report does not know the caller: %+v", rep)
	return callerReport{}
}

type callerReport struct {
	Name       string
	FirstSends int64 `json:"first_sends"`
	Retries    int64
	Throttled  int64
	USD        float64
	Units      map[string]int64
	Models     map[string]struct {
		Sends int64
		Units map[string]int64
	}
}

// stats is what the provider has seen.
func (r *rig) stats() mockStats {
	r.Helper()
	return decode[mockStats](r.T, r.ask(http.MethodGet, "/_mock/stats"))
}

// forget makes the provider's books empty. What was taken of its limits stays taken.
func (r *rig) forget() { r.Helper(); r.ask(http.MethodPost, "/_mock/reset") }

type mockStats struct {
	Arrived, Accepted, Throttled, Failed, Free, Aborted int64
	InFlight                                            int64 `json:"in_flight"`
	Ledger                                              map[string]struct {
		Requests         int64
		InputTokens      int64 `json:"input_tokens"`
		OutputTokens     int64 `json:"output_tokens"`
		CacheReadTokens  int64 `json:"cache_read_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens"`
	}
}

func (r *rig) ask(method, path string) []byte {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.mock+path, nil)
	if err != nil {
		r.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		r.Fatalf("%s: status %d, %v", path, resp.StatusCode, err)
	}
	return text
}

// until waits for something that comes by itself, soon.
func (r *rig) until(what string, come func() bool) {
	r.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !come(); <-tick.C {
		if time.Now().After(end) {
			r.Fatal("in vain: " + what)
		}
	}
}
