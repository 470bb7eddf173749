//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A day without the gate, then a day with it: the procedure of docs/cli.md, with an exhausted provider. Twenty requests
// are twenty arrivals, and they hold no gated request afterwards.
func TestBeforeAndAfter(t *testing.T) {
	t.Parallel()
	_, provider := served(t, "generic", "--requests", "5/h", "--algorithm", "rolling")
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	env := []string{"SLUICE_CONFIG=" + file, "SLUICE_STORE=file:" + filepath.Join(dir, "store"), "XDG_STATE_HOME=" + filepath.Join(dir, "state")}
	mode := func(mode string) {
		t.Helper()
		text := "presets: off\nresources:\n  api:\n    mode: " + mode + "\n    upstream: " + provider + "\n    limits: [{name: hour, size: 5/h}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := func(args ...string) string {
		t.Helper()
		p := start(t, env, args...)
		var text strings.Builder
		for {
			line, err := p.stdout.ReadString('\n')
			text.WriteString(line)
			if err != nil || line == "}\n" {
				break
			}
		}
		p.ends(0)
		return text.String()
	}
	mode("observe")
	gate := start(t, env, "serve", "--listen", "127.0.0.1:0")
	at, _, _ := strings.Cut(gate.tells("sluice: listening on "), ";")
	for i := range 20 {
		resp, _ := fetch(t, http.MethodGet, at+"/@me/api/x", "")
		if want := map[bool]int{true: 200, false: 429}[i < 5]; resp.StatusCode != want || resp.Header.Get("X-Sluice-Refused") != "" {
			t.Fatalf("request %d: %d %v, want %d of the provider's own", i+1, resp.StatusCode, resp.Header, want)
		}
	}
	if _, stats := fetch(t, http.MethodGet, provider+"/_mock/stats", ""); !strings.Contains(stats, `"arrived":20,"accepted":5,"throttled":15`) {
		t.Errorf("the provider saw %s", stats)
	}
	said("acquire", "api", "--wait", "0", "--json")
	before := said("report", "--json")
	if err := os.WriteFile(filepath.Join(dir, "before.json"), []byte(before), 0o600); err != nil {
		t.Fatal(err)
	}

	mode("gate")
	gate.signal(syscall.SIGHUP)
	gate.warns("reloaded: resource api: mode")
	var status struct {
		Resources []struct {
			Mode        string
			PausedUntil *string `json:"paused_until"`
			Consecutive int     `json:"consecutive_429"`
			Limits      []struct{ Used int }
		}
	}
	if err := json.Unmarshal([]byte(said("status", "--json")), &status); err != nil {
		t.Fatal(err)
	}
	if r := status.Resources[0]; r.Mode != "gate" || r.PausedUntil != nil || r.Consecutive != 0 || len(r.Limits) > 0 && r.Limits[0].Used != 0 {
		t.Errorf("after the switch: %+v", r)
	}
	said("acquire", "api", "--wait", "0", "--json") // which fails if anything holds it
	var after struct {
		Resources []struct{ Total, Callers any }
		Against   []struct {
			Before, After struct{ Sends, Throttled int }
		}
	}
	if err := json.Unmarshal([]byte(said("report", "--against", filepath.Join(dir, "before.json"), "--json")), &after); err != nil {
		t.Fatal(err)
	}
	if a := after.Against[0]; a.Before.Sends != 21 || a.Before.Throttled != 15 || a.After.Sends != 1 || a.After.Throttled != 0 {
		t.Errorf("before against after: %+v", a)
	}
	gate.signal(syscall.SIGTERM)
	gate.ends(0)
}

// An unreachable store does not block a resource that is only observed, even when the process starts.
func TestObserveStartsWithoutItsStore(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources:\n  api: {mode: observe, limits: [{name: minute, size: 1/min}]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLUICE_CONFIG=" + file, "SLUICE_STORE=redis://127.0.0.1:1", "XDG_STATE_HOME=" + filepath.Join(dir, "state")}
	for _, args := range [][]string{
		{"acquire", "api", "--wait", "0", "--json"}, {"run", "--resource", "api", "--", "true"}, {"run", "--new-work", "--scatter", "1h", "--resource", "api", "--", "true"},
	} {
		p := start(t, env, args...)
		p.warns("requests are sent without waiting, and this process counts only its own")
		p.ends(0)
	}
	p := start(t, env, "run", "--resource", "api", "--", "sh", "-c", "exit 75")
	p.ends(75) // once, and nothing is kept of it
	if _, err := os.Stat(filepath.Join(dir, "state", "sluice", "dead-letters")); err == nil {
		t.Error("a dead letter was written")
	}
}

// A ticket that acquire --hold took in observe mode can be released after a switch to gate mode, with exit code 0, and
// the holder of the concurrency slot there keeps it. The other way round works too. An unknown ticket is still an
// error.
func TestReleaseAfterASwitchOfMode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	env := []string{"SLUICE_CONFIG=" + file, "SLUICE_STORE=file:" + filepath.Join(dir, "store"), "XDG_STATE_HOME=" + filepath.Join(dir, "state")}
	mode := func(mode string) {
		t.Helper()
		if err := os.WriteFile(file, []byte("resources:\n  api: {mode: "+mode+", limits: [{name: places, concurrency: 1}]}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	hold := func() string {
		t.Helper()
		p := start(t, env, "acquire", "api", "--hold", "--wait", "0")
		ticket := p.tells("ticket ")
		p.ends(exitOK)
		return ticket
	}
	release := func(ticket string) {
		t.Helper()
		p := start(t, env, "release", ticket, "--status", "429", "--retry-after", "1h")
		p.tells("released " + ticket)
		p.ends(exitOK)
	}
	mode("observe")
	first, second := hold(), hold()
	release(first)
	mode("gate")
	mine := hold()
	release(second)
	start(t, env, "acquire", "api", "--wait", "0").ends(exitNotYet) // the place is still taken
	start(t, env, "release", "api.ffffff-1").ends(exitUsage)
	mode("observe")
	release(mine)
}
