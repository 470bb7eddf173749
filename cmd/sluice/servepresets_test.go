//go:build unix

package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Regression: with a configuration for one resource the daemon knew no other, so that after the README's first file
// /anthropic was missing.
func TestServeReachesBuiltInProvidersBesideTheConfiguration(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "  built in, at http://", "presets: off\n": "",
	} {
		file := filepath.Join(t.TempDir(), "sluice.yaml")
		if err := os.WriteFile(file, []byte(text+"resources: {search: {upstream: 'http://127.0.0.1:1'}, github: {provider: github}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := start(t, nil, "serve", "--listen", "127.0.0.1:0", "--config", file)
		lines := []string{}
		for range map[bool]int{true: 4, false: 3}[want != ""] {
			line, err := p.stdout.ReadString('\n')
			if err != nil {
				t.Fatal(lines, err)
			}
			lines = append(lines, line)
		}
		if !strings.HasSuffix(lines[1], "/github\n") || !strings.HasSuffix(lines[2], "/search\n") {
			t.Errorf("%q", lines)
		}
		if want != "" && (!strings.HasPrefix(lines[3], want) || !strings.Contains(lines[3], " anthropic, ") || strings.Contains(lines[3], "github")) {
			t.Errorf("%q", lines)
		}
		at := strings.TrimSuffix(strings.TrimSpace(lines[1]), "/github")
		if code, body := post(t, at+"/v1/tickets", `{"resource":"anthropic","agent":"a","wait_ms":0}`); (code == 200) != (want != "") {
			t.Errorf("%s%d %s", text, code, body)
		}
		p.signal(syscall.SIGTERM)
		p.ends(0)
	}
}

// Regression: status did not show built-in providers used through serve, because the configuration does not name them.
func TestStatusShowsBuiltInProvidersThatWereUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte("store: file:"+dir+"/state\nresources: {search: {limits: [{name: minute, size: 80/min}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	shows := func(name string) bool {
		p := start(t, []string{"SLUICE_STORE="}, "status", "--config", file, "--json")
		text, err := io.ReadAll(p.stdout)
		if err != nil {
			t.Fatal(err)
		}
		p.ends(0)
		return strings.Contains(string(text), `"name": "`+name+`"`)
	}
	if !shows("search") || shows("github") {
		t.Error("it shows what nobody has used")
	}
	start(t, []string{"SLUICE_STORE="}, "acquire", "github", "--config", file).ends(0)
	if !shows("github") || shows("anthropic") {
		t.Error("it does not show what is in the store")
	}
}

// A resource without an upstream is for sluice acquire alone. Serve says so, and a client that sends to it is told what
// is missing.
func TestServeTellsWhichResourceHasNoUpstream(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources: {api: {mode: observe, limits: [{name: minute, size: 80/min}]}, search: {upstream: 'http://127.0.0.1:1'}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := start(t, nil, "serve", "--listen", "127.0.0.1:0", "--config", file) // of built-in providers it says nothing
	p.warns("no upstream, so clients cannot send through the gate to: api;")
	at := ""
	for at == "" { // after the line about the store
		line, err := p.stdout.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if url, ok := strings.CutSuffix(strings.TrimSpace(line), "/search"); ok {
			at = url
		}
	}
	for _, path := range []string{"/api/foo", "/@a:p1/api/foo"} {
		if code, body := post(t, at+path, ""); code != 404 || !strings.Contains(body, `resource \"api\" has no upstream`) || !strings.Contains(body, "set resources.api.upstream") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	if code, body := post(t, at+"/apo/foo", ""); code != 404 || !strings.Contains(body, `unknown resource \"apo\"`) {
		t.Errorf("%d %s", code, body)
	}
	p.signal(syscall.SIGTERM)
	p.ends(0)
}
