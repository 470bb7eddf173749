package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/inspect"
)

// wayOf prepares a gate for a command line, with a configuration and an environment.
func wayOf(t *testing.T, yaml, line string, env map[string]string) *runGate {
	t.Helper()
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		upper := strings.ToUpper(name)
		if strings.HasSuffix(upper, "_PROXY") || strings.Contains(upper, "BASE") || strings.HasPrefix(upper, "SLUICE_") || upper == "CO_API_URL" || upper == "GITHUB_API_URL" {
			t.Setenv(name, "")
		}
	}
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_CONFIG", file)
	t.Setenv("SLUICE_STORE", "mem:")
	for name, value := range env {
		t.Setenv(name, value)
	}
	cmd := newRun()
	cmd.SetContext(t.Context())
	cmd.Flags().String("config", "", "")
	cmd.Flags().String("store", "", "")
	g, err := newRunGate(cmd, strings.Fields(line), &interceptFlags{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *runGate) sent() (names []string) {
	for _, b := range g.way.bases {
		names = append(names, b.Variable)
	}
	return names
}

func TestTheTableChooses(t *testing.T) {
	none := "presets: on\n"
	for _, test := range []struct {
		line, yaml          string
		env                 map[string]string
		decrypts            string
		gets, without       string
		watches, notWatches string
	}{
		{line: "./agent", gets: "OPENAI_BASE_URL", without: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", watches: "api.openai.com:443"},
		{line: "./agent", gets: "CO_API_URL", without: "COPILOT_PROVIDER_BASE_URL", watches: "api.mistral.ai:443"},
		{line: "copilot", gets: "OPENAI_BASE_URL", without: "COPILOT_PROVIDER_BASE_URL"},
		{line: "copilot", env: map[string]string{"COPILOT_PROVIDER_API_KEY": "k"}, gets: "COPILOT_PROVIDER_BASE_URL", watches: "api.openai.com:443"},
		{line: "codex", decrypts: "api.openai.com:443", gets: "ANTHROPIC_BASE_URL", watches: "api.anthropic.com:443", notWatches: "api.openai.com:443"},
		{line: "codex", notWatches: "api.github.com:443", decrypts: "api.openai.com:443"},
		{line: "npx @google/gemini-cli", decrypts: "generativelanguage.googleapis.com:443", gets: "OPENAI_BASE_URL", without: "GOOGLE_GEMINI_BASE_URL"},
		{line: "sh -c codex", watches: "api.openai.com:443", gets: "OPENAI_BASE_URL"},
		{line: "codex", yaml: "intercept: off\n", watches: "api.openai.com:443", gets: "OPENAI_BASE_URL"},
		{line: "codex", yaml: "presets: off\nresources: {mine: {upstream: 'https://api.openai.com', limits: [{name: m, size: 1/min}]}}\n", decrypts: "api.openai.com:443", without: "OPENAI_BASE_URL"},
		{line: "codex", env: map[string]string{"HTTPS_PROXY": "socks4://proxy.test:1080"}, gets: "OPENAI_BASE_URL", notWatches: "api.anthropic.com:443"},
		{line: "./agent", env: map[string]string{"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, gets: "OPENAI_BASE_URL", watches: "api.openai.com:443", notWatches: "127.0.0.1:1"},
		{line: "./agent", yaml: "resources: {bedrock: {provider: bedrock, upstream: 'https://bedrock-runtime.us-east-1.amazonaws.com', limits: [{name: m, size: 1/min}]}}\n",
			without: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", watches: "bedrock-runtime.us-east-1.amazonaws.com:443"},
		{line: "python3 app.py", yaml: "resources: {bedrock: {provider: bedrock, upstream: 'https://bedrock-runtime.us-east-1.amazonaws.com', limits: [{name: m, size: 1/min}]}}\n",
			without: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME", decrypts: "bedrock-runtime.us-east-1.amazonaws.com:443"},
		{line: "./agent", yaml: "resources: {bedrock: {provider: bedrock, upstream: 'http://127.0.0.1:1', limits: [{name: m, size: 1/min}]}}\n", gets: "AWS_ENDPOINT_URL_BEDROCK_RUNTIME"},
	} {
		t.Run(test.line, func(t *testing.T) {
			yaml := test.yaml
			if yaml == "" {
				yaml = none
			}
			g := wayOf(t, yaml, test.line, test.env)
			got := g.sent()
			decrypts, watches := g.way.decrypted.Addresses(), g.way.watched.Addresses()
			if test.decrypts == "" && len(decrypts) > 0 || test.decrypts != "" && !slices.Contains(decrypts, test.decrypts) {
				t.Errorf("decrypts %v", decrypts)
			}
			if test.gets != "" && !slices.Contains(got, test.gets) || slices.Contains(got, test.without) {
				t.Errorf("gets %v", got)
			}
			if test.watches != "" && !slices.Contains(watches, test.watches) || test.notWatches != "" && slices.Contains(watches, test.notWatches) {
				t.Errorf("watches %v", watches)
			}
		})
	}
}

// The only resource is one of the command's start, unless its calls can pass the gate.
func TestOneResourceIsOfTheStartOrOfTheCalls(t *testing.T) {
	for _, test := range []struct {
		resource, line string
		gates          bool
	}{
		{"openai", "./agent", true}, {"deepseek", "./agent", false}, {"deepseek", "python3 app.py", true}, {"mistral", "./agent", false},
	} {
		g := wayOf(t, "resources: {"+test.resource+": {provider: "+test.resource+", limits: [{name: m, size: 1/min}]}}\n", test.line, nil)
		if got := g.gates(test.resource); got != test.gates {
			t.Errorf("%s with %s: %v", test.line, test.resource, got)
		}
	}
}

// What the environment exempts from a proxy stays so, and plain requests keep their proxy, unless ours has to take them.
func TestProxyVariablesOfACommand(t *testing.T) {
	for _, test := range []struct {
		line    string
		env     map[string]string
		noProxy string
		plain   bool
	}{
		{line: "./agent", noProxy: "localhost,127.0.0.1,::1"},
		{line: "codex", noProxy: "localhost,127.0.0.1,::1", plain: true},
		{line: "./agent", env: map[string]string{"no_proxy": "10.0.0.0/8, corp.test:8443"}, noProxy: "localhost,127.0.0.1,::1,10.0.0.0/8,corp.test:8443"},
		{line: "./agent", env: map[string]string{"NO_PROXY": "*"}, noProxy: "localhost,127.0.0.1,::1"},
		{line: "./agent", env: map[string]string{"NO_PROXY": "*", "http_proxy": "http://corp.test"}, noProxy: "localhost,127.0.0.1,::1", plain: true},
		{line: "./agent", env: map[string]string{"NO_PROXY": "other.test", "http_proxy": "http://corp.test"}, noProxy: "localhost,127.0.0.1,::1,other.test"},
		{line: "./agent", env: map[string]string{"NO_PROXY": ".openai.com,b.test", "ALL_PROXY": "http://corp.test"}, noProxy: "localhost,127.0.0.1,::1,b.test", plain: true},
		{line: "./agent", env: map[string]string{"HTTPS_PROXY": "socks4://corp.test", "NO_PROXY": "a.test"}, noProxy: "localhost,127.0.0.1,::1,a.test"},
	} {
		g := wayOf(t, "presets: on\n", test.line, test.env)
		if err := g.start(&interceptFlags{}, func(inspect.Event) {}); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, v := range g.variables("me", "", "") {
			got[v.name] = v.value
		}
		if got["NO_PROXY"] != test.noProxy || got["no_proxy"] != test.noProxy {
			t.Errorf("%v: NO_PROXY is %q", test.env, got["NO_PROXY"])
		}
		if _, plain := got["HTTP_PROXY"]; plain != test.plain {
			t.Errorf("%v: HTTP_PROXY is %q", test.env, got["HTTP_PROXY"])
		}
		if _, there := got["HTTPS_PROXY"]; there != (test.env["HTTPS_PROXY"] == "") {
			t.Errorf("%v: HTTPS_PROXY is %q", test.env, got["HTTPS_PROXY"])
		}
		if err := g.close(); err != nil {
			t.Error(err)
		}
	}
}

// Dead letters are run again as they were.
func TestDeadLettersKeepHowTheyWereIntercepted(t *testing.T) {
	for _, how := range []interceptFlags{{}, {mode: config.InterceptOff}, {mode: config.InterceptOn}, {mode: config.InterceptOn, onlyGated: true, tunnel: []string{"a.test"}}} {
		j := job{argv: []string{"x"}, catch: how}
		e := j.letter()
		if got := interceptOf(&e); got.mode != how.mode || got.onlyGated != how.onlyGated || !slices.Equal(got.tunnel, how.tunnel) {
			t.Errorf("%+v becomes %+v", how, got)
		}
	}
}

// Where the bundle of certificates cannot be written, a command that was to be intercepted runs as an unknown one would.
func TestWithoutABundleNothingIsIntercepted(t *testing.T) {
	g := wayOf(t, "presets: on\n", "codex", map[string]string{"TMPDIR": filepath.Join(t.TempDir(), "none"), "TMP": filepath.Join(t.TempDir(), "none")})
	var notes strings.Builder
	g.cmd.SetErr(&notes)
	if err := g.start(&interceptFlags{}, func(inspect.Event) {}); err != nil {
		t.Fatal(err)
	}
	vars := childEnv(nil, g.variables("me", "", ""))
	if slices.ContainsFunc(vars, func(v string) bool { return strings.HasPrefix(v, "SSL_CERT_FILE=") }) || !slices.Contains(vars, "SLUICE_DECRYPTED=none") {
		t.Errorf("it gets %q", vars)
	}
	if !strings.Contains(notes.String(), "nothing is intercepted: the bundle of certificates could not be written") || !slices.Contains(g.way.watched.Addresses(), "api.openai.com:443") {
		t.Errorf("it says %q, and watches %v", notes.String(), g.way.watched.Addresses())
	}
	if line := g.announce(); !strings.HasPrefix(line, "calls to ") {
		t.Error(line)
	}
	if err := g.close(); err != nil {
		t.Error(err)
	}
}
