//go:build linux || darwin

package clients_test

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
)

// What the clients' tests give up.
const (
	letterKey  = "the-canary-of-a-key"
	letterBody = "canary-of-a-body"
)

// keeping is the configuration with a resource that keeps dead letters. Its provider takes only what a client gave up, with the key of now.
func keeping(t *testing.T) string {
	t.Helper()
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost || r.URL.String() != "/v1/x?a=1" || string(body) != letterBody || r.Header.Get("Content-Type") != "text/plain" || r.Header.Get("Authorization") != "Bearer key-of-now" {
			w.WriteHeader(http.StatusBadRequest)
		}
	}))
	t.Cleanup(provider.Close)
	letters := `  letters: {upstream: "` + provider.URL + `", dead_letters: on, limits: [{name: inflight, concurrency: 100}], light: "off", breaker: "off"}` + "\nbudgets:"
	return strings.Replace(guarded(), "budgets:", letters, 1)
}

// replay sends again what the clients have left, after their daemon has ended. The clients' tests also give up requests of a resource
// that keeps no dead letters.
func (d *daemon) replay(t *testing.T) {
	t.Helper()
	kept := d.onDisk(t, letterBody)
	if len(kept) == 0 || len(d.onDisk(t, letterKey)) > 0 {
		t.Errorf("bodies are in %v, keys in %v", kept, d.onDisk(t, letterKey))
	}
	for _, name := range kept {
		if data, err := os.ReadFile(name); filepath.Ext(name) != ".request" || err != nil || !strings.Contains(string(data), `"resource": "letters"`) {
			t.Errorf("a body is in %s (%v)", name, err)
		}
	}
	d.sluice(t, "dlq", "retry", "--all", "--key-env", "KEY_OF_NOW")
	if left := d.sluice(t, "dlq", "list", "--json"); strings.Contains(left, `"id"`) {
		t.Errorf("not all have succeeded: %s", left)
	}
	if left := append(d.onDisk(t, letterBody), d.onDisk(t, "key-of-now")...); len(left) > 0 {
		t.Errorf("still on disk: %v", left)
	}
}

// sluice runs a command on the configuration of a daemon.
func (d *daemon) sluice(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, sluiceBinary, append(args, "--config", filepath.Join(d.home, "sluice.yaml"))...)
	cmd.Env = built.Env(d.home, "KEY_OF_NOW=key-of-now")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("sluice %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// onDisk lists the files of a daemon that hold a text.
func (d *daemon) onDisk(t *testing.T, text string) (in []string) {
	t.Helper()
	err := filepath.WalkDir(d.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(text)) {
			in = append(in, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return in
}
