//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
)

// A model that a client asks for by its full name has that name, next to its class, wherever it is shown.
func TestModelAsRequestedIsShownNextToItsClass(t *testing.T) {
	t.Parallel()
	const requested, class = "claude-sonnet-4-5-20250929", "sonnet-4"
	_, provider := served(t, "anthropic", "--requests", "50/min")
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources:\n  claude: {provider: anthropic, upstream: "+provider+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLUICE_CONFIG=" + file, "SLUICE_STORE=file:" + filepath.Join(dir, "store"), "XDG_STATE_HOME=" + filepath.Join(dir, "state")}
	says := func(args ...string) string {
		t.Helper()
		p := start(t, env, args...)
		text, err := io.ReadAll(p.stdout)
		if err != nil {
			t.Fatal(err)
		}
		p.ends(exitOK)
		return string(text)
	}
	gate := start(t, env, "serve", "--listen", "127.0.0.1:0")
	at, _, _ := strings.Cut(gate.tells("sluice: listening on "), ";")
	body := `{"model":"` + requested + `","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`
	if resp, text := fetch(t, http.MethodPost, at+"/@me/claude/v1/messages", body, "X-Api-Key: k"); resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}

	type status struct{ Resources []inspect.ResourceStatus }
	check := func(what, text string) {
		t.Helper()
		var s status
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatalf("%s: %v in %s", what, err, text)
		}
		at := slices.IndexFunc(s.Resources, func(r inspect.ResourceStatus) bool { return r.Name == "claude" })
		if at < 0 {
			t.Fatalf("%s: no claude in %s", what, text)
		}
		if m := s.Resources[at].Models; len(m) != 1 || m[0] != (inspect.ModelStatus{Model: class, Requested: requested}) {
			t.Errorf("%s: %+v", what, m)
		}
	}
	_, text := fetch(t, http.MethodGet, at+"/v1/status", "")
	check("GET /v1/status", text) // from the daemon's own memory
	gate.signal(syscall.SIGTERM)
	gate.ends(exitOK) // and all events are written

	var sends []inspect.Event
	if _, err := eventlog.Read(filepath.Join(dir, "store"), time.Time{}, func(e inspect.Event) bool {
		if e.Kind == inspect.EventSend {
			sends = append(sends, e)
		}
		return true
	}); err != nil || len(sends) != 1 || sends[0].Model != class || sends[0].Requested != requested {
		t.Errorf("events: %+v, %v", sends, err)
	}
	check("status --json", says("status", "--json"))
	var report struct{ Resources []inspect.ResourceReport }
	if err := json.Unmarshal([]byte(says("report", "--json")), &report); err != nil {
		t.Fatal(err)
	}
	in := slices.IndexFunc(report.Resources, func(r inspect.ResourceReport) bool { return r.Name == "claude" })
	if in < 0 {
		t.Fatal("the report has no claude")
	}
	if m := report.Resources[in].Total.Models[class]; m.Sends != 1 || len(m.Requested) != 1 || m.Requested[0] != requested {
		t.Errorf("report --json: %+v", m)
	}
	shown := regexp.MustCompile(`(?m)^  models: ` + class + ` \(` + requested + `\)`)
	for _, command := range []string{"status", "report"} {
		if text := says(command); !shown.MatchString(text) {
			t.Errorf("%s: %s", command, text)
		}
	}
}
