//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A key that the provider refuses is set aside: the log, the status, an event and a webhook report it, and none of them
// shows a key.
func TestASetAsideKeyIsToldAndNeverShown(t *testing.T) {
	const token = "a-token-of-the-fleet"
	sum := sha256.Sum256([]byte(token))
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.Header.Get("Authorization"), "-revoked") {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer up.Close()
	posted := make(chan string, 8)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		posted <- string(text)
	}))
	defer hook.Close()
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	text := "resources:\n  api: {upstream: " + up.URL + ", keys: [{env: KEY_A}, {env: KEY_B}], limits: [{name: hour, size: 100/h}]}\n" +
		"tokens: [{name: fleet, hash: " + hex.EncodeToString(sum[:]) + "}]\nalerts: {webhook: " + hook.URL + "}\n"
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"XDG_STATE_HOME=" + state, "SLUICE_STORE=file:" + filepath.Join(state, "sluice"), "SLUICE_CONFIG=" + file, "KEY_A=VERYSECRET-revoked", "KEY_B=VERYSECRET-good"}
	p := start(t, env, "serve", "--listen", "127.0.0.1:0", "--log-requests")
	at, _, _ := strings.Cut(p.tells("sluice: listening on "), ";")
	for range 2 {
		if code := sendTo(t, at+"/@a/api/x", "Authorization", "Bearer "+token); code != http.StatusOK {
			t.Errorf("status %d", code)
		}
	}
	var said strings.Builder
	select {
	case text := <-posted:
		if !strings.Contains(text, `"event":"key_set_aside"`) || !strings.Contains(text, "KEY_A") {
			t.Errorf("the webhook got %s", text)
		}
		said.WriteString(text)
	case <-time.After(30 * time.Second):
		t.Error("the webhook got nothing")
	}
	run := func(code int, args ...string) string {
		t.Helper()
		c := start(t, env, args...)
		out, _ := io.ReadAll(c.stdout)
		errs, _ := io.ReadAll(c.stderr)
		c.ends(code)
		said.Write(out)
		said.Write(errs)
		return string(out) + string(errs)
	}
	label := strings.TrimSpace(run(0, "key", "KEY_A"))
	if text := run(0, "status"); !strings.Contains(text, "key="+label) || !strings.Contains(text, "401") {
		t.Errorf("status says %s", text)
	}
	if text := run(64, "acquire", "api"); !strings.Contains(text, "hint: name one with --key-env NAME") {
		t.Errorf("acquire says %s", text)
	}
	run(0, "acquire", "api", "--key-env", "KEY_B")
	run(75, "acquire", "api", "--key-env", "KEY_A", "--wait", "0")
	run(0, "resume", "api")
	run(0, "config", "check", file)
	p.signal(syscall.SIGTERM)
	log, _ := io.ReadAll(p.stderr)
	p.ends(0)
	if !strings.Contains(string(log), "a key is set aside") {
		t.Errorf("the log says %s", log)
	}
	said.Write(log)
	if strings.Contains(said.String(), "VERYSECRET") {
		t.Errorf("a key was said: %s", said.String())
	}
	event := false
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		event = event || strings.Contains(string(text), "key_set_aside")
		if strings.Contains(string(text), "VERYSECRET") {
			t.Errorf("a key is in %s", path)
		}
		return err
	})
	if err != nil || !event {
		t.Errorf("no event in the log (%v)", err)
	}
}
