//go:build unix

package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// pinged runs ping against a provider with this handler, and returns the output.
func pinged(t *testing.T, env []string, code int, provider http.HandlerFunc) (out map[string]any, text string) {
	t.Helper()
	upstream := httptest.NewServer(provider)
	t.Cleanup(upstream.Close)
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	config := "resources:\n  mine: {provider: anthropic, upstream: \"" + upstream.URL + "/base\"}\n"
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, append([]string{"ANTHROPIC_API_KEY=", "SLUICE_CONFIG=" + file}, env...), "ping", "mine", "--json")
	said, err := io.ReadAll(p.stdout)
	if err != nil {
		t.Fatal(err)
	}
	told, _ := io.ReadAll(p.stderr)
	p.ends(code)
	if err := json.Unmarshal(said, &out); err != nil {
		t.Fatalf("%v in %s", err, said)
	}
	return out, string(said) + string(told)
}

func pingStep(t *testing.T, out map[string]any, name string) map[string]any {
	t.Helper()
	for _, s := range out["steps"].([]any) {
		if m := s.(map[string]any); m["name"] == name {
			return m
		}
	}
	t.Fatalf("there is no step %s in %v", name, out)
	return nil
}

func TestPing(t *testing.T) {
	const key = "sk-ant-VERYSECRET"
	var path, got string
	provider := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			path, got = r.URL.String(), r.Header.Get("X-Api-Key")
			w.WriteHeader(status)
		}
	}
	out, text := pinged(t, []string{"ANTHROPIC_API_KEY=" + key}, exitOK, provider(200))
	if out["ok"] != true || out["state"] != "idle" || path != "/base/v1/models?limit=1" || got != key {
		t.Errorf("the provider saw %s; %s", path, text)
	}
	for _, name := range []string{"store", "connect", "call"} {
		if s := pingStep(t, out, name); s["state"] != "ok" || s["ms"] == nil || s["error"] != nil {
			t.Errorf("%v", s)
		}
	}
	if s := pingStep(t, out, "tls"); s["state"] != "skipped" || s["ms"] != nil {
		t.Errorf("%v", s)
	}
	if strings.Contains(text, "VERYSECRET") {
		t.Errorf("the key is in %s", text)
	}
	path = ""
	if out, _ := pinged(t, nil, exitOK, provider(200)); pingStep(t, out, "call")["detail"] != "no key: set ANTHROPIC_API_KEY" || path != "" {
		t.Errorf("without a key the provider saw %q, and ping said %v", path, out)
	}
	for status, code := range map[int]int{401: exitRefused, 429: exitNotYet, 500: exitUnavailable, 404: exitUnavailable, 302: exitUnavailable} {
		out, text := pinged(t, []string{"ANTHROPIC_API_KEY=" + key}, code, provider(status))
		if out["ok"] != false || pingStep(t, out, "call")["state"] != "failed" || !strings.Contains(text, "hint: ") || strings.Contains(text, "VERYSECRET") {
			t.Errorf("%d: %s", status, text)
		}
	}
}
