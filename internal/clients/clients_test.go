package clients

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestBuiltinIsSound(t *testing.T) {
	table := Builtin()
	suffix := map[string]Base{}
	agents := map[string]string{}
	for _, c := range table.All() {
		for _, b := range c.Bases {
			if was, ok := suffix[b.Variable]; ok && (was.Suffix != b.Suffix || was.Provider != b.Provider) {
				t.Errorf("%s: %s has another form elsewhere: %v and %v", c.Name, b.Variable, b, was)
			}
			suffix[b.Variable] = b
		}
		for _, ua := range c.UserAgents {
			if other, ok := agents[ua]; ok {
				t.Errorf("%s: %s is the User-Agent of %s", c.Name, ua, other)
			}
			agents[ua] = c.Name
		}
		if c.Way != ByBase && c.Why == "" {
			t.Errorf("%s: nothing says why its way is %s", c.Name, c.Way)
		}
		if c.Way == ByBase && len(c.Bases) == 0 {
			t.Errorf("%s: no variable", c.Name)
		}
	}
	if len(table.All()) < 20 {
		t.Errorf("%d clients", len(table.All()))
	}
}

func TestCommandsAreRecognized(t *testing.T) {
	table := Builtin()
	for line, want := range map[string]string{
		"codex exec hello":                           "codex",
		"/usr/local/bin/codex":                       "codex",
		`C:\Users\me\bin\codex.exe exec`:             "codex",
		"npx @openai/codex exec":                     "codex",
		"npx -y @openai/codex@latest exec":           "codex",
		"npm exec -- @google/gemini-cli -p x":        "gemini-cli",
		"pnpm dlx opencode-ai run x":                 "opencode",
		"uvx --from aider-chat aider -m x":           "aider",
		"uvx aider-chat":                             "aider",
		"uv tool run llm x":                          "llm",
		"env A=b claude -p x":                        "claude-code",
		"nice -n 10 timeout 30 gemini -p x":          "gemini-cli",
		"python3.12 app.py":                          "python",
		"uv run app.py":                              "python",
		"npx tsx app.ts":                             "node",
		"npx unknown-package":                        "node",
		"node app.js":                                "node",
		"./my-agent":                                 "",
		"curl https://api.openai.com/":               "",
		"env":                                        "",
		"my-codex":                                   "",
		"nice":                                       "",
		"echo codex":                                 "",
		"env " + strings.Repeat("-i ", 20) + "codex": "",
	} {
		got := ""
		if c := table.Command(strings.Fields(line)); c != nil {
			got = c.Name
		}
		if got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
	if table.Command(nil) != nil || (*Table)(nil).Command([]string{"codex"}) != nil {
		t.Error("nothing starts a client")
	}
}

func TestUserAgents(t *testing.T) {
	table := Builtin()
	for ua, want := range map[string]string{
		"codex_cli_rs/0.169.0 (Debian 12; x86_64)": "codex", "OpenAI/Python 2.8.0": "sdk-openai", "AsyncOpenAI/Python 2.8.0": "sdk-openai",
		"Mozilla/5.0": "", "": "", "claude-cli/2.0.1 (external, cli)": "claude-code",
	} {
		got := ""
		if c := table.Of(http.Header{"User-Agent": {ua}}); c != nil {
			got = c.Name
		}
		if got != want {
			t.Errorf("%q: %q, want %q", ua, got, want)
		}
	}
}

func TestVariables(t *testing.T) {
	table := Builtin()
	names := func(c *Client) string {
		var all []string
		for _, b := range table.For(c) {
			all = append(all, b.Variable)
		}
		return " " + strings.Join(all, " ") + " "
	}
	common := names(nil)
	for _, name := range []string{"ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "OPENAI_API_BASE", "GOOGLE_GEMINI_BASE_URL", "GROQ_BASE_URL", "GITHUB_API_URL", "CO_API_URL"} {
		if !strings.Contains(common, " "+name+" ") {
			t.Errorf("%s is missing: %s", name, common)
		}
	}
	if strings.Contains(common, "COPILOT") || !strings.Contains(names(table.Find("copilot")), " COPILOT_PROVIDER_BASE_URL ") {
		t.Errorf("only Copilot gets its own variable: %s", common)
	}
	if strings.Contains(names(table.Find("gemini-cli")), "GOOGLE_GEMINI_BASE_URL") {
		t.Error("the Gemini CLI got a variable with which it does not start")
	}
}

func TestFilesOfAUser(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("mine.yaml", "name: mine\nkind: agent\ncommands: [mine]\nproviders: [openai]\nway: intercept\nwhy: is my own\n")
	write("codex.yaml", "name: codex\nkind: agent\ncommands: [codex]\nway: base\nbases: [{variable: MY_BASE, provider: openai, suffix: /v1}]\n")
	write("README.md", "not a client")
	table, err := Builtin().With(dir)
	if err != nil {
		t.Fatal(err)
	}
	if c := table.Command([]string{"mine"}); c == nil || !c.Intercepts() || c.Title != "mine" {
		t.Errorf("%+v", c)
	}
	if c := table.Find("codex"); c.Intercepts() || len(table.All()) != len(Builtin().All())+1 || Builtin().Find("codex").Way != ByIntercept {
		t.Errorf("%+v", c)
	}
	for text, want := range map[string]string{
		"name: Bad Name\nkind: agent\nway: base\n":                                                "is not the name of a client",
		"name: x\nkind: agent\nway: telepathy\n":                                                  "telepathy",
		"name: x\nkind: agent\nway: base\ncolour: red\n":                                          "colour",
		"name: x\nkind: agent\nway: base\nproviders: [nobody]\n":                                  "unknown provider",
		"name: x\nkind: agent\nway: base\naside: [nobody]\n":                                      "unknown provider",
		"name: x\nkind: agent\nway: base\nbases: [{variable: A B, provider: openai}]\n":           "is not the name of a variable",
		"name: x\nkind: agent\nway: base\nbases: [{variable: A, provider: openai, suffix: v1}]\n": "does not follow",
		"name: x\nkind: agent\nway: base\nkeep_alive: {gemini: loud}\n":                           "loud",
		"name: x\nkind: agent\nway: base\nsettings: [{file: a}]\n":                                "a setting needs",
		"name: x\nkind: agent\nway: base\nuser_agents: [a]\n":                                     "too many",
		"name: mine\nkind: agent\nway: base\n":                                                    "already",
	} {
		write("zz.yaml", text)
		if _, err := Builtin().With(dir); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "zz.yaml") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := Builtin().With(filepath.Join(dir, "none")); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "none")+": ") {
		t.Error("a directory that does not exist was read")
	}
}
