package main

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// While the store behind a daemon was out of reach, status and why through the daemon failed with 69, and the daemon itself
// said that the resource is degraded.
func TestStatusThroughADaemonWhoseStoreIsAway(t *testing.T) {
	knows := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/v1/store/config":
			w.Header().Set("Content-Type", "application/yaml")
			_, _ = w.Write([]byte("presets: off\nresources: {api: {limits: [{name: m, size: 20/min}]}}\n"))
		case r.URL.Path == "/v1/status" && knows:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"store":"redis://r","resources":[{"name":"api","state":"degraded","reason":"the store is out of reach"}]}`))
		default:
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"detail":"Redis cannot be reached"}`))
		}
	}))
	defer server.Close()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	for _, args := range [][]string{{"status"}, {"status", "--json"}, {"status", "--line"}, {"why"}, {"why", "--json"}, {"why", "api"}} {
		var stdout, stderr bytes.Buffer
		if code := run(append(args, "--store", server.URL), &stdout, &stderr); code != exitOK || !strings.Contains(stdout.String(), "degraded") {
			t.Errorf("%v: exit code %d: %s%s", args, code, &stdout, &stderr)
		}
	}
	for _, args := range [][]string{{"why", "--agent", "a"}, {"why", "other"}} { // only the store knows
		var stdout, stderr bytes.Buffer
		if code := run(append(args, "--store", server.URL), &stdout, &stderr); code == exitOK {
			t.Errorf("%v: exit code %d: %s", args, code, &stdout)
		}
	}
	knows = false // the daemon cannot be asked either
	var stdout, stderr bytes.Buffer
	if code := run([]string{"status", "--store", server.URL}, &stdout, &stderr); code != exitUnavailable || !strings.Contains(stderr.String(), "Redis cannot be reached") {
		t.Errorf("exit code %d: %s%s", code, &stdout, &stderr)
	}
}
