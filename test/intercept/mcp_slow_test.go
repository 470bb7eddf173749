//go:build slow && linux

package intercept_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
)

// Claude Code, as npm has it, takes each command of docs/mcp.md, lists the tools of Sluice and calls one. Its model is "sluice mock anthropic"
// behind "sluice serve", which calls the tool it is offered.
func TestClaudeCodeCallsATool(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/mcp.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := regexp.MustCompile(`(?m)^claude mcp add .*$`).FindAllString(string(page), -1)
	if len(commands) < 3 {
		t.Fatalf("docs/mcp.md has %d commands for Claude Code: %q", len(commands), commands)
	}
	programs := filepath.Join(npm(t, "@anthropic-ai/claude-code"), "@anthropic-ai", "claude-code-"+platform(t))
	for i, command := range commands {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) { claudeCalls(t, programs, command) })
	}
}

// claudeCalls adds Sluice to a Claude Code without settings and lets it call a tool.
func claudeCalls(t *testing.T, programs, command string) {
	home := t.TempDir()
	state := "SLUICE_STORE=file:" + filepath.Join(home, "state")
	mock := listens(t, built.Env(home, state), "mock", "anthropic", "--requests", "1000/min")
	config := filepath.Join(home, "sluice.yaml")
	if err := os.WriteFile(config, []byte("resources: {anthropic: {provider: anthropic, upstream: '"+mock+"'}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	gate := listens(t, built.Env(home, state), "serve", "--config", config)
	at, err := url.Parse(gate + "/anthropic")
	if err != nil {
		t.Fatal(err)
	}
	model := httptest.NewServer(onlyTool(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(at) }}, "mcp__sluice__remaining_quota"))
	t.Cleanup(model.Close)
	env := built.Env(home, state, "ANTHROPIC_API_KEY="+canary, "ANTHROPIC_BASE_URL="+model.URL, "CLAUDE_CONFIG_DIR="+filepath.Join(home, "claude"), "SLUICE_TOKEN=any",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false", "MCP_CONNECTION_NONBLOCKING=0",
		"PATH="+programs+":"+filepath.Dir(sluiceBinary)+":"+os.Getenv("PATH"))
	sh := func(script string) []byte {
		t.Helper()
		cmd := proctest.Command(t, "sh", "-euc", script)
		cmd.Dir, cmd.Env = home, env
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s: %v\n%s\n%s", script, err, out, stderr.String())
		}
		return out
	}
	sh(strings.ReplaceAll(command, "http://127.0.0.1:7979", gate))
	if list := string(sh("claude mcp list")); !strings.Contains(list, "Connected") {
		t.Fatalf("after %s it lists\n%s", command, list)
	}
	said := readClaude(t, sh("claude -p 'use the tool' --tools '' --allowedTools mcp__sluice --output-format stream-json --verbose"))
	for _, tool := range []string{"remaining_quota", "why_am_i_waiting", "may_i_start_new_work", "what_have_i_spent"} {
		if !slices.Contains(said.tools, "mcp__sluice__"+tool) {
			t.Errorf("%s is not listed: %q", tool, said.tools)
		}
	}
	if said.called != "mcp__sluice__remaining_quota" || said.failed || !strings.Contains(said.answer, "anthropic") {
		t.Errorf("it called %q, failed: %v, and was told %q", said.called, said.failed, said.answer)
	}
	t.Logf("after %s it called %s and was told %s", command, said.called, said.answer)
}

// listens starts a server of ours and returns where it listens.
func listens(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(sluiceBinary, append(args, "--json", "--listen", "127.0.0.1:0")...)
	cmd.Env = env
	line, _ := built.Serve(t, cmd)
	var said struct {
		Listen []string
		URL    string
	}
	if err := json.Unmarshal(line, &said); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	return append(said.Listen, said.URL)[0]
}

// onlyTool hides all tools but one from a provider, and its arguments: the mock would make some up.
func onlyTool(provider http.Handler, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var request map[string]any
		if json.Unmarshal(body, &request) == nil && strings.Contains(string(body), `"name":"`+name+`"`) {
			request["tools"] = []any{map[string]any{"name": name, "input_schema": map[string]any{"type": "object"}}}
			if body, err = json.Marshal(request); err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		provider.ServeHTTP(w, r)
	})
}

// claudeSaid is what Claude Code tells of a run.
type claudeSaid struct {
	tools          []string
	called, answer string
	failed         bool
}

// readClaude reads the lines that Claude Code prints as stream-json.
func readClaude(t *testing.T, out []byte) (said claudeSaid) {
	t.Helper()
	for line := range strings.Lines(string(out)) {
		var event struct {
			Subtype string
			Tools   []string
			Message struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if event.Subtype == "init" {
			said.tools = event.Tools
		}
		var blocks []struct {
			Type, Name string
			Content    json.RawMessage
			IsError    bool `json:"is_error"`
		}
		if json.Unmarshal(event.Message.Content, &blocks) != nil {
			continue // text alone
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				said.called = b.Name
			case "tool_result":
				said.answer, said.failed = string(b.Content), b.IsError
			}
		}
	}
	return said
}
