//go:build linux || darwin

package sdk_test

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
)

// client is an official client, and how it is told where to send.
type client struct {
	script   string
	provider string
	suffix   string // what stands behind the provider's address
	baseVar  string
	keyVar   string
}

var (
	anthropic = client{"anthropic.mjs", "anthropic", "", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY"}
	openai    = client{"openai.mjs", "openai", "/v1", "OPENAI_BASE_URL", "OPENAI_API_KEY"}
	octokit   = client{"octokit.mjs", "github", "", "GITHUB_API_URL", "GITHUB_TOKEN"}
)

// rig is a provider, and a gate before it.
type rig struct {
	*testing.T
	client
	home   string
	config string
	mock   string // where the provider is
	gate   string // where the gate is; empty: there is none but that of sluice run
}

// setup is what a rig is to be like.
type setup struct {
	mock     []string // flags
	upstream string   // where the gate sends; empty: to the mock
	resource string   // YAML, fields of the resource
	others   string   // YAML, further resources
	file     string   // YAML, further fields of the configuration
	noServe  bool
}

// begin starts the servers.
func begin(t *testing.T, c client, s setup) *rig {
	t.Helper()
	if err := watched(); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, client: c, home: t.TempDir()}
	t.Cleanup(r.findKey) // when the servers have ended
	said := serve(t, r.home, append([]string{"mock", c.provider, "--listen", "127.0.0.1:0"}, s.mock...)...)
	r.mock = decode[struct{ URL string }](t, said).URL
	r.config = filepath.Join(r.home, "sluice.yaml")
	text := fmt.Sprintf("store: file:%s\n%s\nresources:\n%s\n  %s:\n    provider: %[4]s\n    upstream: %s\n",
		filepath.Join(r.home, "state"), s.file, s.others, c.provider, cmp.Or(s.upstream, r.mock))
	for line := range strings.Lines(s.resource) {
		text += "    " + line
	}
	if err := os.WriteFile(r.config, []byte(text+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if s.noServe {
		return r
	}
	said = serve(t, r.home, "serve", "--listen", "127.0.0.1:0", "--config", r.config)
	r.gate = decode[struct{ Listen []string }](t, said).Listen[0] + "/@sdk/" + c.provider
	return r
}

// key is what every client sends. It is in no file that is left.
const key = "a-key-of-nobody"

// findKey looks for the key where the gate has kept anything.
func (r *rig) findKey() {
	err := filepath.WalkDir(r.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if bytes.Contains(text, []byte(key)) {
			r.Errorf("the key is in %s", path)
		}
		return err
	})
	if err != nil {
		r.Error(err)
	}
}

// env is what a program with the client runs in.
func (r *rig) env(address string) []string {
	env := built.Env(r.home, r.keyVar+"="+key, "DIRECT_BASE_URL="+r.mock+r.suffix)
	if address != "" {
		env = append(env, r.baseVar+"="+address+r.suffix)
	}
	return env
}

// direct runs cases without the gate.
func (r *rig) direct(cases ...string) results {
	r.Helper()
	return r.results(output(r.T, r.env(r.mock), nodeDir, "node", append([]string{r.script}, cases...)...))
}

// gated runs cases through sluice serve.
func (r *rig) gated(cases ...string) results {
	r.Helper()
	return r.results(output(r.T, r.env(r.gate), nodeDir, "node", append([]string{r.script}, cases...)...))
}

// run runs cases through sluice run. Nothing tells the client where to send but sluice.
func (r *rig) run(cases ...string) results {
	r.Helper()
	args := append([]string{"run", "--config", r.config, "--agent", "sdk", "--quiet", "--", "node", r.script}, cases...)
	return r.results(output(r.T, r.env(""), nodeDir, sluiceBinary, args...))
}

// sluice runs a command of ours.
func (r *rig) sluice(args ...string) []byte {
	r.Helper()
	return output(r.T, built.Env(r.home), "", sluiceBinary, append(args, "--config", r.config, "--json")...)
}
