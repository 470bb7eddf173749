//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/internal/redisrun"
)

// A daemon goes on when another program writes to a key of its store; newcomers learn which pool is damaged. When the operator
// has repaired it, what the daemon knows is back: what was used counts, and the rest can be used.
func TestRepairBehindADaemon(t *testing.T) {
	t.Parallel()
	server := redisrun.New(t)
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("store: "+slowly(server.URL())+"\nresources: {api: {limits: [{name: minute, size: 2/min}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"SLUICE_STORE="}, "serve", "--config", file, "--listen", "127.0.0.1:0")
	at, _, _ := strings.Cut(p.tells("sluice: listening on "), ";")
	sluice := func(code int, says string, args ...string) {
		t.Helper()
		cmd := proctest.Command(t, "sluice", args...)
		cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "SLUICE_CONFIG=", "SLUICE_STORE=")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), says) {
			t.Fatalf("%v: exit code %d, want %d; it says %q, want %q", args, got, code, out, says)
		}
	}
	ask := []string{"acquire", "api", "--agent", "a", "--wait", "0", "--store", at}
	sluice(0, "granted", ask...)
	for _, command := range [][]string{{"DEL", "sluice:{api}"}, {"SET", "sluice:{api}", "mine"}} {
		if _, err := server.Do(t.Context(), command...); err != nil {
			t.Fatal(err)
		}
	}
	direct := []string{"acquire", "api", "--agent", "a", "--wait", "0", "--config", file}
	sluice(69, "a key is damaged: it is of another kind", direct...)
	sluice(69, "sluice repair api", direct...)
	sluice(64, "run it with the --store that the daemon uses", "repair", "api", "--yes", "--store", at)
	sluice(0, "repaired api", "repair", "api", "--yes", "--store", slowly(server.URL()))
	sluice(0, "granted", ask...)
	sluice(75, "", ask...)
	sluice(75, "", direct...)
}
