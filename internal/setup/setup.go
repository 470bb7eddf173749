// Package setup finds programs on a machine that call the APIs of providers, and returns the lines that make them send
// through the gate. It does not read their files; it only checks whether they exist.
package setup

import (
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/shellword"
)

// Machine is the machine that setup searches.
type Machine struct {
	Home string
	Env  func(name string) string
	// Program finds a program. Nil means a search in PATH.
	Program func(name string) (string, error)
	// Exists reports whether a file or directory exists.
	Exists func(path string) bool
}

// Endpoint is the address of the gate.
type Endpoint struct {
	URL    string // such as http://127.0.0.1:7979
	Socket string // path of a Unix socket, for gh
}

// Line is a line of configuration that points a client to the gate.
type Line struct {
	// Where the line belongs: shell, the path of a file, or run for a command to run once.
	Where string `json:"where"`
	Text  string `json:"text"`
}

// Values of Line.Where that are not files.
const (
	Shell = "shell"
	Run   = "run"
)

// Client is a program that calls providers, or the SDKs of a provider.
type Client struct {
	Name      string   `json:"name"`
	Found     string   `json:"found"` // where it was found: a path, or names of variables
	Resources []string `json:"resources"`
	Lines     []Line   `json:"lines"`
	// Ready reports that the client already sends to this gate, as far as environment variables show.
	Ready bool `json:"ready"`
	// Note is a remark for the user; it may be empty.
	Note string `json:"note"`
}

// known is a client that setup can find.
type known struct {
	name      string
	programs  []string
	paths     []string // in the home directory
	variables []string // of keys
	resources []string
	bases     []base // variables that it reads
	lines     func(g Endpoint, home string) []Line
	note      string
}

// base is a variable with a base URL.
type base struct{ variable, resource, suffix string }

func (b *base) value(g Endpoint) string { return g.URL + "/" + b.resource + b.suffix }

var (
	anthropicBase = base{"ANTHROPIC_BASE_URL", "anthropic", ""}
	openaiBase    = base{"OPENAI_BASE_URL", "openai", "/v1"}
	geminiBase    = base{"GOOGLE_GEMINI_BASE_URL", "gemini", ""}
)

// clients lists all known clients, in the order in which they are shown.
var clients = []known{
	{
		name: "Claude Code", programs: []string{"claude"}, paths: []string{".claude", ".claude.json"}, resources: []string{"anthropic"}, bases: []base{anthropicBase},
		lines: func(g Endpoint, home string) []Line {
			return []Line{{filepath.Join(home, ".claude", "settings.json"), `"env": {"ANTHROPIC_BASE_URL": "` + anthropicBase.value(g) + `"}`}}
		},
		note: "the line in settings.json also holds where the shell's variables do not, as in an editor",
	},
	{
		name: "Codex", programs: []string{"codex"}, paths: []string{".codex"}, resources: []string{"openai"}, bases: []base{openaiBase},
		lines: func(g Endpoint, home string) []Line {
			return []Line{{filepath.Join(home, ".codex", "config.toml"), `openai_base_url = "` + openaiBase.value(g) + `"`}}
		},
		note: "in config.toml above the first [table]; it takes an API key, a ChatGPT login goes elsewhere",
	},
	{
		name: "Gemini CLI", programs: []string{"gemini"}, paths: []string{".gemini"}, resources: []string{"gemini"}, bases: []base{geminiBase},
		note: "it takes an API key (GEMINI_API_KEY), a Google login goes elsewhere",
	},
	{
		name: "gh", programs: []string{"gh"}, paths: []string{".config/gh"}, resources: []string{"github"},
		lines: func(g Endpoint, _ string) []Line {
			return []Line{{Run, "gh config set http_unix_socket " + shellword.Quote(g.Socket)}}
		},
		note: "the gate has to listen on that socket; gh config set http_unix_socket '' undoes it",
	},
	{
		name: "aider", programs: []string{"aider"}, paths: []string{".aider.conf.yml"}, resources: []string{"anthropic", "openai"},
		bases: []base{anthropicBase, {"OPENAI_API_BASE", "openai", "/v1"}},
	},
	{name: "SDKs of Anthropic", variables: []string{"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"}, resources: []string{"anthropic"}, bases: []base{anthropicBase}},
	{name: "SDKs of OpenAI", variables: []string{"OPENAI_API_KEY"}, resources: []string{"openai"}, bases: []base{openaiBase}},
	{name: "SDKs of Gemini", variables: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, resources: []string{"gemini"}, bases: []base{geminiBase}},
	{name: "SDKs of Groq", variables: []string{"GROQ_API_KEY"}, resources: []string{"groq"}, bases: []base{{"GROQ_BASE_URL", "groq", ""}}},
	{name: "SDKs of GitHub", variables: []string{"GITHUB_TOKEN", "GH_TOKEN"}, resources: []string{"github"}, bases: []base{{"GITHUB_API_URL", "github", ""}}},
}

// Find returns the clients on a machine, with the lines that point them to the gate.
func Find(m Machine, g Endpoint) []Client {
	if m.Program == nil {
		m.Program = exec.LookPath
	}
	found := []Client{}
	for i := range clients {
		k := &clients[i]
		where := k.find(&m)
		if where == "" {
			continue
		}
		c := Client{Name: k.name, Found: where, Resources: k.resources, Lines: []Line{}, Note: k.note}
		ready := 0
		for _, b := range k.bases {
			want := b.value(g)
			switch was := m.Env(b.variable); {
			case strings.TrimSuffix(was, "/") == want:
				ready++
			case was != "":
				c.Note = strings.TrimPrefix(c.Note+"; "+b.variable+" is set to another address: set resources."+b.resource+".upstream to that one if the gate should send there", "; ")
			}
			c.Lines = append(c.Lines, Line{Shell, "export " + b.variable + "=" + shellword.Quote(want)})
		}
		c.Ready = len(k.bases) > 0 && ready == len(k.bases)
		if k.lines != nil {
			c.Lines = append(c.Lines, k.lines(g, m.Home)...)
		}
		found = append(found, c)
	}
	return found
}

// find returns where a client was found, or "" if it was not.
func (k *known) find(m *Machine) string {
	for _, p := range k.programs {
		if path, err := m.Program(p); err == nil {
			return path
		}
	}
	for _, p := range k.paths {
		if path := filepath.Join(m.Home, p); m.Exists(path) {
			return path
		}
	}
	var set []string
	for _, v := range k.variables {
		if m.Env(v) != "" {
			set = append(set, v)
		}
	}
	return strings.Join(set, ", ")
}

// Resources returns the sorted names of the resources that the clients need.
func Resources(list []Client) []string {
	var names []string
	for i := range list {
		names = append(names, list[i].Resources...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Exports returns the lines for a shell, sorted and without duplicates.
func Exports(list []Client) []string {
	var lines []string
	for i := range list {
		for _, l := range list[i].Lines {
			if l.Where == Shell {
				lines = append(lines, l.Text)
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// Socket reports whether a client needs the gate's Unix socket.
func Socket(list []Client) bool {
	return slices.ContainsFunc(list, func(c Client) bool { return c.Name == "gh" })
}
