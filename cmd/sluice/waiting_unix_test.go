//go:build unix

package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

// A command that a signal ends while it waits says so, and leaves nothing in the queue.
func TestSignalEndsTheWait(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "one.yaml")
	if err := os.WriteFile(config, []byte("resources: {db: {limits: [{name: one, concurrency: 1}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--config", config, "--store", "file:" + filepath.Join(dir, "state")}
	p := start(t, nil, append([]string{"acquire", "db", "--hold", "--agent", "holder"}, flags...)...)
	p.ends(0)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		p = start(t, nil, append([]string{"acquire", "db", "--agent", "waiter", "--wait", "10m"}, flags...)...)
		p.warns(`waiting for db: limit "one" held by holder`)
		p.signal(sig)
		p.ends(128 + int(sig))
		out, err := proctest.Command(t, "sluice", append([]string{"why", "db", "--json"}, flags...)...).Output()
		var why struct{ Waiting []any }
		if err := errors.Join(err, json.Unmarshal(out, &why)); err != nil || len(why.Waiting) != 0 {
			t.Errorf("who waits: %s, %v", out, err)
		}
	}
}
