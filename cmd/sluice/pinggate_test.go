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
			_, _ = w.Write([]byte(`{"status":"ok"}`))
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

// Any server answers 200. Only a daemon answers as one.
func TestAnotherServerIsNoDaemon(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"<html>\n<body>it: [works</body></html>", "{}", "ok"} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(page)) }))
		for _, args := range [][]string{{"ping", "--gate", server.URL}, {"status", "--store", server.URL}, {"acquire", "github", "--store", server.URL}} {
			var out, errs bytes.Buffer
			if got := run(args, &out, &errs); got != exitUnavailable || !strings.Contains(errs.String(), "another server is there\nhint: ") || strings.Contains(errs.String(), page[:2]) {
				t.Errorf("%s: %v: exit %d, %s%s", page, args, got, out.String(), errs.String())
			}
		}
		server.Close()
	}
}
