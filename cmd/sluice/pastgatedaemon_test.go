//go:build unix

package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
)

// The daemon's status has what went past the gate on its machine; without any run it says that it does not know.
func TestTheDaemonTellsWhatWentPast(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte("presets: off\nresources: {api: {limits: [{concurrency: 5, name: inflight}]}, other: {limits: [{concurrency: 5, name: inflight}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	status := func() string {
		t.Helper()
		_, urls := listening(t, "--config", file, "--listen", "127.0.0.1:0", "--store", "file:"+filepath.Join(dir, "state"))
		resp, err := http.Get(urls[0] + "/v1/status")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if got := status(); strings.Count(got, `"past_gate":null`) != 2 {
		t.Error(got)
	}
	log := eventlog.OpenFor(filepath.Join(dir, "state"), "file")
	for range 2 {
		log.Add(inspect.Event{Time: time.Now(), Kind: inspect.EventPastGate, Resource: "api", Host: "api.test", Count: 3})
	}
	log.Add(inspect.Event{Time: time.Now().Add(-2 * time.Hour), Kind: inspect.EventPastGate, Resource: "api", Host: "api.test", Count: 100})
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if got := status(); strings.Count(got, `"past_gate":6,"past_hosts":{"api.test":6}`) != 1 || strings.Count(got, `"past_gate":0`) != 1 {
		t.Error(got)
	}
}
