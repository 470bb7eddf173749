//go:build linux

package matrix_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/proxy/forward"
)

// serve starts sluice serve, and returns what points the client to it: the variables of its entry, the forward proxy, or its own settings.
func (b *bench) serve() (env []string, files map[string]string) {
	b.Helper()
	cmd := exec.Command(sluiceBinary, "serve", "--json", "--listen", "127.0.0.1:0", "--forward-listen", "127.0.0.1:0")
	cmd.Env = b.env
	line, _ := built.Serve(b.T, cmd)
	var said struct {
		Listen  []string
		Forward string
	}
	if err := json.Unmarshal(line, &said); err != nil {
		b.Fatalf("%q: %v", line, err)
	}
	gate := said.Listen[0] + "/@matrix/" + b.provider
	if s := b.setting; s != nil {
		files = maps.Clone(b.files)
		if files == nil {
			files = map[string]string{}
		}
		for name, text := range s.files {
			files[name] += strings.ReplaceAll(text, "{gate}", gate)
		}
		for _, v := range s.env {
			env = append(env, strings.ReplaceAll(v, "{gate}", gate))
		}
		return env, files
	}
	c := b.entry()
	if b.client == "" {
		c = &clients.Client{Way: clients.ByBoth}
	}
	if c.Way != clients.ByIntercept {
		for _, base := range clients.Builtin().For(c) {
			if base.Provider == b.provider {
				env = append(env, base.Variable+"="+gate+base.Suffix)
			}
		}
	}
	if c.Intercepts() {
		env = append(env, b.intercepted(strings.TrimPrefix(said.Forward, "http://"))...)
	}
	return env, b.files
}

// intercepted returns the variables that lead to a forward proxy.
func (b *bench) intercepted(at string) (env []string) {
	b.Helper()
	bundle := filepath.Join(b.home, "bundle.pem")
	text := b.sluice("ca", "show")
	if system, err := os.ReadFile("/etc/ssl/certs/ca-certificates.crt"); err == nil {
		text = append(text, system...)
	}
	b.write(bundle, string(text))
	for _, name := range forward.ProxyVariables() {
		env = append(env, name+"=http://matrix:@"+at) // Bun takes no user without a password
	}
	for _, name := range forward.NoProxyVariables() {
		env = append(env, name+"=localhost,127.0.0.1,::1")
	}
	for _, name := range forward.BundleVariables(func(string) string { return "" }) {
		env = append(env, name+"="+bundle)
	}
	slices.Sort(env)
	return append(env, "NODE_USE_ENV_PROXY=1")
}
