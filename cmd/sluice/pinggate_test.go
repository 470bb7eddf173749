package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The exit code serves as a container's health check.
func TestPingGateTellsWhetherADaemonIsHealthy(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]int{http.StatusOK: exitOK, http.StatusServiceUnavailable: exitUnavailable} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/healthz" {
				t.Errorf("it asks for %s", r.URL.Path)
			}
			w.WriteHeader(status)
		}))
		var out, errs bytes.Buffer
		if got := run([]string{"ping", "--gate", server.URL}, &out, &errs); got != want {
			t.Errorf("status %d: exit %d, want %d: %s", status, got, want, errs.String())
		}
		if want == exitOK && !strings.Contains(out.String(), " is healthy, ") {
			t.Errorf("it prints %q", out.String())
		}
		server.Close()
	}
}
