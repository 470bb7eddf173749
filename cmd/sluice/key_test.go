//go:build unix

package main

import (
	"cmp"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/redisrun"
	"github.com/sluicehq/sluice/sim/mock"
)

// Sluice keeps and shows only the label of an API key, whatever its source and whatever the store.
func TestAKeyIsKeptNowhere(t *testing.T) {
	t.Run("file", func(t *testing.T) { keepsNoKey(t, "") })
	t.Run("redis", func(t *testing.T) {
		server := redisrun.New(t)
		keepsNoKey(t, slowly(server.URL()))
		do := func(args ...string) string {
			t.Helper()
			text, err := server.Do(t.Context(), args...)
			if err != nil {
				t.Fatal(err)
			}
			return text
		}
		do("CONFIG", "SET", "rdbcompression", "no") // else a dump might hide it
		names := strings.Split(do("KEYS", "*"), "\n")
		for _, name := range names {
			if strings.Contains(name+do("DUMP", name), "VERYSECRET") {
				t.Errorf("the key is in %s", name)
			}
		}
		if len(names) < 2 || !slices.Contains(names, "sluice:secret:keys") {
			t.Errorf("looked at %q", names)
		}
	})
}

// keepsNoKey uses a daemon and commands with a key, and searches for it in all their output and files.
func keepsNoKey(t *testing.T, store string) {
	m, err := mock.New(mock.Options{Provider: "anthropic", Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(m)
	t.Cleanup(upstream.Close)
	t.Cleanup(m.Close)
	var traced safeText
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		traced.add(r.URL.Path + " " + string(text))
	}))
	t.Cleanup(collector.Close)
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	file := filepath.Join(dir, "sluice.yaml")
	text := "resources:\n  anthropic: {provider: anthropic, upstream: " + upstream.URL + ", split: key, key_env: THE_KEY, limits: [{name: hour, size: 100/h}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"XDG_STATE_HOME=" + state, "SLUICE_STORE=" + cmp.Or(store, "file:"+filepath.Join(state, "sluice")), "SLUICE_CONFIG=" + file, "THE_KEY=" + theKey, "ANOTHER_KEY=VERYSECRET-too"}
	env = append(env, "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
	p := start(t, env, "serve", "--listen", "127.0.0.1:0", "--log-requests", "--verbose")
	at, _, _ := strings.Cut(p.tells("sluice: listening on "), ";")
	var said strings.Builder
	for _, key := range []string{theKey, "sk-another"} {
		if code := sendTo(t, at+"/@a/anthropic/v1/messages", "X-Api-Key", key); code != 200 {
			t.Errorf("status %d", code)
		}
	}
	// In the query, in the body, and in headers that are not where keys belong.
	call := `{"model":"claude-sonnet-4-5","max_tokens":20,"messages":[{"role":"user","content":"VERYSECRET-body"}]}`
	for path, header := range map[string]string{
		"/@a/anthropic/v1/messages?key=VERYSECRET-query&api_key=VERYSECRET-query": "X-Api-Key: " + theKey, "/anthropic/v1/messages": "Authorization: Bearer VERYSECRET-bearer",
		"/@a/anthropic/v1/none?token=VERYSECRET-none": "X-Goog-Api-Key: VERYSECRET-goog", "/v1/none?key=VERYSECRET-api": "Cookie: session=VERYSECRET-cookie", "/none/?key=VERYSECRET-stray": "Proxy-Authorization: Basic VERYSECRET",
	} {
		resp, body := fetch(t, "POST", at+path, call, "Content-Type: application/json", "Anthropic-Version: 2023-06-01", header)
		if want := strings.Contains(path, "/v1/messages"); want != (resp.StatusCode == 200) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
		if resp.StatusCode != 200 { // the mock's own answer may repeat what it was asked
			said.WriteString(body)
		}
	}
	resp, body := fetch(t, "POST", at+"/v1/tickets", `{"resource":"anthropic","agent":"a","key":"`+theKey+`"}`, "Content-Type: application/json")
	if resp.StatusCode != 400 || !strings.Contains(body, "label") {
		t.Errorf("a key in the place of its label: %d %s", resp.StatusCode, body)
	}
	said.WriteString(body)
	ends := func(code int, args ...string) string {
		t.Helper()
		c := start(t, env, args...)
		out, _ := io.ReadAll(c.stdout)
		errs, _ := io.ReadAll(c.stderr)
		c.ends(code)
		said.Write(out)
		said.Write(errs)
		return strings.TrimSpace(string(out))
	}
	label := ends(0, "key", "THE_KEY")
	resp, body = fetch(t, "POST", at+"/v1/tickets", `{"resource":"anthropic","agent":"a","key":"`+label+`"}`, "Content-Type: application/json")
	if resp.StatusCode != 200 {
		t.Errorf("a label: %d %s", resp.StatusCode, body)
	}
	ends(0, "observe", "anthropic", "--status", "429", "--retry-after", "600")
	ends(75, "acquire", "anthropic", "--wait", "0")
	ends(75, "run", "--no-gate", "--resource", "anthropic", "--key-env", "ANOTHER_KEY", "--attempts", "1", "--", "sh", "-c", "exit 75")
	for _, path := range []string{"/v1/status", "/metrics", "/v1/why", "/v1/config", "/v1/report", "/v1/recent", "/v1/history?since=1h", "/v1/pool/anthropic", "/v1/me", "/"} {
		resp, body := fetch(t, "GET", at+path, "")
		if resp.StatusCode != 200 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
		if path == "/v1/status" && !strings.Contains(body, `key=`+label) {
			t.Errorf("%s does not name the key %s: %s", path, label, body)
		}
		said.WriteString(body)
	}
	p.signal(syscall.SIGTERM)
	log, _ := io.ReadAll(p.stderr)
	p.ends(0)
	said.Write(log)
	if text := traced.String(); strings.Contains(text, "VERYSECRET") || !strings.Contains(text, "/v1/traces ") || !strings.Contains(text, "/v1/metrics ") {
		t.Errorf("the key is in what was exported, or nothing was: %d bytes", len(text))
	}
	if strings.Contains(said.String(), "VERYSECRET") {
		t.Errorf("the key was said: %s", said.String())
	}
	files, letters, events, secret := 0, false, false, store != ""
	err = filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		files++
		letters, events, secret = letters || strings.Contains(path, "dead"), events || strings.Contains(path, "events"), secret || strings.HasSuffix(path, ".secret")
		if strings.Contains(string(text), "VERYSECRET") {
			t.Errorf("the key is in %s", path)
		}
		if info, _ := d.Info(); strings.HasSuffix(path, ".secret") && info.Mode().Perm() != 0o600 {
			t.Errorf("%s has the mode %v", path, info.Mode())
		}
		return err
	})
	if err != nil || !letters || !events || !secret {
		t.Errorf("looked at %d files; dead letters: %v, events: %v, the secret: %v (%v)", files, letters, events, secret, err)
	}
}

// safeText is text that several goroutines add to.
type safeText struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *safeText) add(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.WriteString(text)
}

func (s *safeText) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}
