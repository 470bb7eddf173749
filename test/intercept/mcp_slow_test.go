//go:build slow && linux

package intercept_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/mock"
)

// Claude Code, as npm has it, lists the tools of "sluice mcp" and calls one. The model is a mock that calls the tool it is offered.
func TestClaudeCodeCallsATool(t *testing.T) {
	t.Parallel()
	if runtime.GOARCH != "amd64" {
		t.Skip("the package is for amd64")
	}
	claude := filepath.Join(npm(t, "@anthropic-ai/claude-code"), "@anthropic-ai", "claude-code-linux-x64", "claude")
	provider, err := mock.New(mock.Options{Provider: "anthropic", Requests: sim.Rate{N: 1000, Window: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	server := httptest.NewServer(onlyTool(provider, "mcp__sluice__remaining_quota"))
	t.Cleanup(server.Close)
	home := t.TempDir()
	servers, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"sluice": map[string]any{
		"command": sluiceBinary, "args": []string{"mcp", "--agent", "indexer"}, "env": map[string]string{"SLUICE_STORE": "file:" + filepath.Join(home, "state")},
		"alwaysLoad": true, // else the first message may go out before the tools are known
	}}})
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(home, "mcp.json")
	if err := os.WriteFile(config, servers, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := proctest.Command(t, claude, "-p", "use the tool", "--tools", "", "--mcp-config", config, "--strict-mcp-config",
		"--allowedTools", "mcp__sluice", "--output-format", "stream-json", "--verbose")
	cmd.Dir = home
	cmd.Env = built.Env(home, "ANTHROPIC_API_KEY="+canary, "ANTHROPIC_BASE_URL="+server.URL, "CLAUDE_CONFIG_DIR="+filepath.Join(home, "claude"),
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1", "ENABLE_TOOL_SEARCH=false", "MCP_CONNECTION_NONBLOCKING=0")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("claude: %v\n%s\n%s", err, out, stderr.String())
	}
	said := readClaude(t, out)
	for _, tool := range []string{"remaining_quota", "why_am_i_waiting", "may_i_start_new_work", "what_have_i_spent"} {
		if !slices.Contains(said.tools, "mcp__sluice__"+tool) {
			t.Errorf("%s is not listed: %q", tool, said.tools)
		}
	}
	if said.called != "mcp__sluice__remaining_quota" || said.failed || said.answer == "" {
		t.Errorf("it called %q, failed: %v, and was told %q", said.called, said.failed, said.answer)
	}
	t.Logf("it called %s and was told %s", said.called, said.answer)
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
