package mock_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

// The log has every request that counts, with its outcome. It has neither keys nor requests for statistics.
func TestLogHasEveryRequestThatCounts(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	begin := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	m, err := mock.New(mock.Options{
		Provider: "generic", Requests: sim.Rate{N: 2, Window: time.Minute}, Log: &log,
		Now: func() time.Time { return begin },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	send := func(path, fault string) {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Authorization", "Bearer secret")
		r.Header.Set("X-Agent-Id", "w7")
		if fault != "" {
			r.Header.Set("X-Mock", fault)
			r.Header.Set("X-Stainless-Retry-Count", "1")
		}
		m.ServeHTTP(httptest.NewRecorder(), r)
	}
	send("/a", "")
	send("/a", "status=500")
	send("/a", "status=429")
	send("/a", "")
	send("/a", "")
	send("/_mock/stats", "")
	var outcomes []string
	for line := range strings.Lines(log.String()) {
		var e mock.Entry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if !e.Time.Equal(begin) || e.Agent != "w7" {
			t.Errorf("the log has %+v", e)
		}
		if e.Retry {
			e.Outcome += " retry"
		}
		outcomes = append(outcomes, e.Outcome)
	}
	if got := strings.Join(outcomes, " "); got != "accepted failed retry throttled retry accepted throttled" {
		t.Errorf("outcomes are %q", got)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has a key: %s", &log)
	}
}
