//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/sim/mock"
)

// Secrets that clients send. None of them may be in a log.
const (
	theKey  = "sk-ant-api03-VERYSECRETVERYSECRETVERYSECRET"
	theBody = "THESECRETPROMPT"
)

// sendTo sends a call with headers, given as names and values, and returns the status.
func sendTo(t *testing.T, url string, header ...string) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), proctest.Patience)
	defer cancel()
	body := fmt.Sprintf(`{"model":"claude-sonnet-4-5","max_tokens":20,"messages":[{"role":"user","content":%q}]}`, theBody)
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("X-Api-Key", theKey)
	q.Header.Set("Anthropic-Version", "2023-06-01")
	for i := 0; i < len(header); i += 2 {
		q.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// logged starts a gate before a provider, sends requests, ends the gate, and returns its log and a line of JSON for
// each request.
func logged(t *testing.T, args []string, send func(at string)) (all string, lines []map[string]any) {
	t.Helper()
	m, err := mock.New(mock.Options{Provider: "anthropic", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(m)
	t.Cleanup(upstream.Close)
	t.Cleanup(m.Close)
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources:\n  anthropic: {provider: anthropic, upstream: "+upstream.URL+"}\n  dead: {provider: anthropic, upstream: \"http://127.0.0.1:1\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, append([]string{"serve", "--config", file, "--listen", "127.0.0.1:0"}, args...)...)
	at, _, _ := strings.Cut(p.tells("sluice: listening on "), ";")
	send(at)
	p.signal(syscall.SIGTERM)
	text, err := io.ReadAll(p.stderr)
	if err != nil {
		t.Fatal(err)
	}
	p.ends(0)
	for line := range strings.Lines(string(text)) {
		var fields map[string]any
		if json.Unmarshal([]byte(line), &fields) == nil && fields["msg"] == "request" {
			lines = append(lines, fields)
		}
	}
	return string(text), lines
}

func TestRequestsAreLogged(t *testing.T) {
	all, lines := logged(t, []string{"--log", "json", "--log-requests", "--log-level", "warn"}, func(at string) {
		if code := sendTo(t, at+"/@web:p0/anthropic/v1/messages", "X-Request-Id", "mine-1"); code != 200 {
			t.Errorf("status %d", code)
		}
		sendTo(t, at+"/nothing/v1/messages", "X-Request-Id", "mine-2")
		sendTo(t, at+"/anthropic/v1/messages", "X-Sluice-Class", "p9")
	})
	if len(lines) != 3 {
		t.Fatalf("%d lines: %s", len(lines), all)
	}
	got := lines[0]
	for name, want := range map[string]any{"agent": "web", "class": "p0", "resource": "anthropic", "model": "claude-sonnet-4-5", "status": 200.0, "request_id": "mine-1", "level": "INFO", "sends": 1.0} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"time", "wait_ms", "took_ms", "input_tokens", "output_tokens", "usd", "upstream_id"} {
		if _, ok := got[name]; !ok {
			t.Errorf("there is no %s in %v", name, got)
		}
	}
	if lines[1]["status"] != 404.0 || lines[1]["request_id"] != "mine-2" || lines[2]["status"] != 400.0 || lines[2]["resource"] != "anthropic" {
		t.Errorf("%v", lines[1:])
	}
}

func TestNothingOfAClientGetsIntoTheLog(t *testing.T) {
	for _, format := range []string{"json", "text"} {
		all, _ := logged(t, []string{"--log", format, "--log-requests", "--verbose"}, func(at string) {
			sendTo(t, at+"/@a%0Alevel=ERROR%20msg=forged%1B%5B2J/anthropic/v1/messages")
			sendTo(t, at+"/@"+theKey+"/anthropic/v1/messages")
			sendTo(t, at+"/"+theKey+"/v1/messages?key="+theKey)
			sendTo(t, at+"/anthropic/v1/messages?key="+theKey, "Authorization", "Bearer "+theKey, "X-Sluice-Agent", "x\u202ey", "X-Request-Id", "a b\tc")
			sendTo(t, at+"/anthropic/v1/messages", "X-Sluice-Token", theKey, "X-Sluice-Tool", strings.Repeat("z", 4000), "X-Sluice-User", `"} {`)
			sendTo(t, at+"/anthropic/v1/messages", "X-Sluice-Class", "p0\xff", "X-Claude-Code-Session-Id", theKey)
		})
		for _, secret := range []string{"VERYSECRET", theBody, "\x1b", "\u202e"} {
			if strings.Contains(all, secret) {
				t.Errorf("%s has %q: %s", format, secret, all)
			}
		}
		for line := range strings.Lines(all) {
			if len(line) > 8<<10 || format == "text" && !strings.HasPrefix(line, "time=") || format == "json" && !json.Valid([]byte(line)) {
				t.Errorf("%s: %q is no line of a log", format, line)
			}
		}
		if strings.Count(all, "status") < 6 {
			t.Errorf("%s: %s", format, all)
		}
	}
}

func TestTheLogHasALevel(t *testing.T) {
	all, _ := logged(t, nil, func(at string) { sendTo(t, at+"/nothing/v1/messages") })
	if strings.Contains(all, "nothing") {
		t.Errorf("a refusal was logged: %s", all)
	}
	all, _ = logged(t, []string{"--log-level", "debug"}, func(at string) { sendTo(t, at+"/nothing/v1/messages") })
	if !strings.Contains(all, "level=DEBUG") || !strings.Contains(all, "unknown resource") {
		t.Errorf("no refusal was logged: %s", all)
	}
	for _, args := range [][]string{{"--log", "xml"}, {"--log-level", "loud"}} {
		p := start(t, nil, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
		p.warns("error: serve: unknown")
		p.warns("hint: ")
		p.ends(exitUsage)
	}
}
