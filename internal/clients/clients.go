// Package clients is the table of clients: programs and libraries that call providers, with what is known of each. A file
// of the directory table describes one client: how it is recognized, which variables it reads, and which way through the
// gate works for it. run, setup, ping, doctor and docs/clients-table.md are made from these files, and a user can add
// files of their own.
package clients

import (
	"net/http"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/provider"
)

// Client is one program or library.
type Client struct {
	// Name identifies the client, such as codex. An agent without a name of its own is called by it.
	Name string `yaml:"name"`
	// Title is the name for people, such as Codex.
	Title string `yaml:"title"`
	Kind  Kind   `yaml:"kind"`
	// Commands are names of its programs, without a directory.
	Commands []string `yaml:"commands,omitempty"`
	// Packages are its names at package managers: npm, pypi, go, cargo, maven, apt, brew.
	Packages map[string]string `yaml:"packages,omitempty"`
	// UserAgents are beginnings of its User-Agent or X-Goog-Api-Client header.
	UserAgents []string `yaml:"user_agents,omitempty"`
	// Files show that it is installed. They are relative to the home directory.
	Files []string `yaml:"files,omitempty"`
	// Keys are environment variables with its API keys.
	Keys []string `yaml:"keys,omitempty"`
	// Providers are the providers that it calls.
	Providers []string `yaml:"providers,omitempty"`
	// Aside are providers whose hosts it also asks for other things than calls, such as updates or telemetry.
	Aside []string `yaml:"aside,omitempty"`
	// Way is how its calls reach the gate.
	Way Way `yaml:"way"`
	// Why says in a few words why Way is not a base URL. It completes the sentence "Codex ...".
	Why string `yaml:"why,omitempty"`
	// Bases are the variables with a base URL that it reads.
	Bases []Base `yaml:"bases,omitempty"`
	// Never are variables that run must not give it.
	Never []string `yaml:"never,omitempty"`
	// Settings are lines of its own files, or commands, that point it to a daemon.
	Settings []Setting `yaml:"settings,omitempty"`
	// KeepAlive is what a held stream may send it, by provider. Other providers have their usual one.
	KeepAlive map[string]KeepAlive `yaml:"keep_alive,omitempty"`
	// Try is how its program makes one short call and ends, for setup --check. Nil means that no such call is known.
	Try *Try `yaml:"try,omitempty"`
	// Tested are the versions that the suite of clients has run.
	Tested []Tested `yaml:"tested,omitempty"`
	// Note is a remark for its user.
	Note string `yaml:"note,omitempty"`
}

// Kind says what a client is.
type Kind string

// Kinds of clients.
const (
	Agent   Kind = "agent"   // a program that people start
	Library Kind = "library" // an SDK or framework that programs use
	Runtime Kind = "runtime" // runs programs that use libraries
)

// Way is a way through the gate.
type Way string

// Ways through the gate.
const (
	ByBase      Way = "base"      // it reads variables with a base URL
	ByIntercept Way = "intercept" // its connections to providers are intercepted
	ByBoth      Way = "both"      // it gets base URLs, and what goes to providers all the same is intercepted
	BySetting   Way = "setting"   // it has to be configured
)

// Base is a variable with a base URL.
type Base struct {
	Variable string `yaml:"variable"`
	Provider string `yaml:"provider"`
	// Suffix follows the provider's address, such as /v1.
	Suffix string `yaml:"suffix,omitempty"`
	// Own says that other programs must not get the variable, because it changes more than an address. The client itself
	// gets it only with one of its keys.
	Own bool `yaml:"own,omitempty"`
	// Signed is the domain of hosts that check a signature of the request's address. The variable is of no use for them.
	Signed string `yaml:"signed,omitempty"`
}

// Setting points a client to a daemon. In Text and Run, {PROVIDER} stands for the address of the provider's resource, such
// as http://127.0.0.1:7979/openai for {openai}, and {socket} for the path of the daemon's socket.
type Setting struct {
	File string `yaml:"file,omitempty"` // relative to the home directory
	Text string `yaml:"text,omitempty"` // a line of that file
	Run  string `yaml:"run,omitempty"`  // a command to run once
}

// Try is a command line of a client that makes one short call and ends. In values of Env, {key} stands for an API key; the
// first of Keys is set anyway.
type Try struct {
	Args []string          `yaml:"args"`
	Env  map[string]string `yaml:"env,omitempty"`
}

// KeepAlive is what keeps a held stream alive.
type KeepAlive = provider.KeepAlive

// What a held stream may get.
const (
	Event   = provider.KeepEvent
	Comment = provider.KeepComment
	Blank   = provider.KeepBlank
	Nothing = provider.KeepNothing
)

// Tested is a version that the suite of clients has run.
type Tested struct {
	Version string `yaml:"version"`
	Date    string `yaml:"date"` // such as 2026-11-19
}

// Intercepts reports whether connections of the client to providers are to be intercepted.
func (c *Client) Intercepts() bool { return c != nil && (c.Way == ByIntercept || c.Way == ByBoth) }

// Refuses reports whether the client must not get a variable.
func (c *Client) Refuses(variable string) bool { return slices.Contains(c.Never, variable) }

// Starts returns the command that starts the client, or a placeholder if it has none of its own.
func (c *Client) Starts() string {
	if len(c.Commands) > 0 {
		return c.Commands[0]
	}
	return "COMMAND"
}

// Bears returns what a held stream from a provider may send the client, or "" if that is not known.
func (c *Client) Bears(provider string) KeepAlive {
	if c == nil {
		return ""
	}
	return c.KeepAlive[provider]
}

// Table is a set of clients. A nil *Table is empty.
type Table struct {
	list []*Client // sorted by name
}

// All returns the clients, sorted by name.
func (t *Table) All() []*Client {
	if t == nil {
		return nil
	}
	return t.list
}

// Find returns the client with a name, or nil.
func (t *Table) Find(name string) *Client {
	i := slices.IndexFunc(t.All(), func(c *Client) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return t.list[i]
}

// UserAgent returns the client that sends a User-Agent, or nil. The longest beginning decides.
func (t *Table) UserAgent(value string) *Client {
	var found *Client
	longest := 0
	for _, c := range t.All() {
		for _, prefix := range c.UserAgents {
			if len(prefix) > longest && strings.HasPrefix(value, prefix) {
				found, longest = c, len(prefix)
			}
		}
	}
	return found
}

// Of returns the client that sends a request, or nil. Libraries of Google may name themselves in a header of their own.
func (t *Table) Of(h http.Header) *Client {
	if c := t.UserAgent(h.Get("User-Agent")); c != nil {
		return c
	}
	return t.UserAgent(h.Get("X-Goog-Api-Client"))
}

// Bases returns the variables that programs without an entry get, sorted by name: those of all clients that are not for one
// client alone.
func (t *Table) Bases() []Base {
	seen := map[string]bool{}
	var all []Base
	for _, c := range t.All() {
		for _, b := range c.Bases {
			if !b.Own && !seen[b.Variable] {
				seen[b.Variable] = true
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, func(a, b Base) int { return strings.Compare(a.Variable, b.Variable) })
	return all
}

// For returns the variables that a client gets: the common ones and its own, without those that it must not have. A nil
// client gets the common ones.
func (t *Table) For(c *Client) []Base {
	all := t.Bases()
	if c == nil {
		return all
	}
	for _, own := range c.Bases {
		if i := slices.IndexFunc(all, func(b Base) bool { return b.Variable == own.Variable }); i >= 0 {
			all[i] = own
		} else {
			all = append(all, own)
		}
	}
	return slices.DeleteFunc(all, func(b Base) bool { return slices.Contains(c.Never, b.Variable) })
}
