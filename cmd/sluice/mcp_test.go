//go:build unix

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/sluicehq/sluice/internal/proctest"
)

// speak connects the SDK's client.
func speak(t *testing.T, transport sdk.Transport) *sdk.ClientSession {
	t.Helper()
	c, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// asked calls a tool and returns its data and its sentence.
func asked(t *testing.T, c *sdk.ClientSession, tool, arguments string) (map[string]any, string) {
	t.Helper()
	res, err := c.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		t.Fatal(err)
	}
	data, _ := res.StructuredContent.(map[string]any)
	return data, res.Content[0].(*sdk.TextContent).Text
}

// An agent that starts sluice mcp and one that asks a daemon on the same store get the same answers from the real program.
func TestMCPOnBothFaces(t *testing.T) {
	t.Parallel()
	proctest.DefaultSignals()
	dir := t.TempDir()
	file := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources: {db: {limits: [{name: hour, size: 10/h}]}}\nagents: {boss: {class: p0}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := []string{"SLUICE_STORE=file:" + filepath.Join(dir, "store"), "SLUICE_CONFIG=" + file, "SLUICE_AGENT=w7", "XDG_STATE_HOME=" + dir}
	acquire := start(t, env, "acquire", "db")
	acquire.ends(0)
	daemon := start(t, env, "serve", "--listen", "127.0.0.1:0")
	url, _, _ := strings.Cut(daemon.tells("sluice: listening on "), ";")
	child := exec.Command("sluice", "mcp")
	child.Env = append(os.Environ(), env...)
	stdio := speak(t, &sdk.CommandTransport{Command: child, TerminateDuration: time.Minute})
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	remote := speak(t, &sdk.StreamableClientTransport{Endpoint: url + "/mcp", HTTPClient: &http.Client{Transport: asW7{base}}, MaxRetries: -1})
	for name, c := range map[string]*sdk.ClientSession{"stdio": stdio, "http": remote} {
		tools, err := c.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, tool := range tools.Tools {
			names = append(names, tool.Name)
			if tool.Description == "" || tool.OutputSchema == nil {
				t.Errorf("%s: %s does not say what it does", name, tool.Name)
			}
		}
		slices.Sort(names)
		if got := strings.Join(names, " "); got != "may_i_start_new_work pause_resource remaining_quota resume_resource what_have_i_spent why_am_i_waiting" {
			t.Error(name, got)
		}
		if _, text := asked(t, c, "remaining_quota", `{"resource":"db"}`); !strings.Contains(text, "9 of 10 requests left") {
			t.Error(name, text)
		}
		if _, text := asked(t, c, "why_am_i_waiting", `{}`); text != "No request of w7 waits." {
			t.Error(name, text)
		}
		if data, text := asked(t, c, "what_have_i_spent", `{}`); !strings.HasPrefix(text, "w7 sent 1 request ") || data["agent"] != "w7" {
			t.Error(name, text)
		}
		if data, text := asked(t, c, "may_i_start_new_work", `{"resource":"db"}`); data["start"] != true {
			t.Error(name, text)
		}
		if data, text := asked(t, c, "pause_resource", `{"resource":"db","minutes":60,"reason":"a test"}`); data["paused"] != true {
			t.Error(name, text)
		}
		for _, other := range []*sdk.ClientSession{stdio, remote} {
			if data, text := asked(t, other, "may_i_start_new_work", `{"resource":"db"}`); data["start"] != false || !strings.Contains(text, "a test") {
				t.Error(name, text)
			}
		}
		if data, text := asked(t, c, "resume_resource", `{"resource":"db"}`); data["paused"] != false {
			t.Error(name, text)
		}
		if _, text := asked(t, c, "pause_resource", `{"resource":"bd","minutes":60}`); !strings.HasPrefix(text, "error: ") || !strings.Contains(text, "\nhint: ") {
			t.Error(name, text)
		}
		for _, uri := range []string{"sluice://status", "sluice://report"} {
			res, err := c.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
			if err != nil || !strings.Contains(res.Contents[0].Text, `"db"`) {
				t.Error(name, uri, err)
			}
		}
	}
	if err := stdio.Close(); err != nil { // the end of its input ends it
		t.Error(err)
	}
	if code := child.ProcessState.ExitCode(); code != 0 {
		t.Error("sluice mcp ended with", code)
	}
	daemon.signal(syscall.SIGTERM)
	daemon.ends(0)
}

// asW7 says which agent it is.
type asW7 struct{ base http.RoundTripper }

func (n asW7) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("X-Sluice-Agent", "w7")
	return n.base.RoundTrip(r)
}

// Errors are reported before a client waits, and a signal ends the command.
func TestMCPEnds(t *testing.T) {
	t.Parallel()
	bad := start(t, nil, "mcp", "--class", "p9")
	bad.ends(exitUsage)
	bad = start(t, []string{"SLUICE_STORE=nowhere:"}, "mcp")
	bad.ends(exitUsage)
	fine := start(t, nil, "mcp")
	for _, line := range []string{"hello", strings.Repeat("x", 100_000)} { // a person, and one who sends too much
		_, _ = fine.stdin.Write([]byte(`{"jsonrpc":"` + line + "\n"))
		fine.tells(`{"jsonrpc":"2.0","id":null,"error":`)
	}
	_, _ = fine.stdin.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n"))
	fine.says(`{"jsonrpc":"2.0","id":1,"result":{}}`) // so it is there
	fine.signal(syscall.SIGTERM)
	fine.ends(0)
}
