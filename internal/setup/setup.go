// Package setup finds programs on a machine that call the APIs of providers, and returns the lines that make them send
// through the gate. What it knows of them is the table of package clients. It does not read their files; it only checks
// whether they exist.
package setup

import (
	"cmp"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/internal/shellword"
	"github.com/sluicehq/sluice/provider"
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

// Line is a step that points a client to the gate.
type Line struct {
	// Where the line belongs: shell, start, run, or the path of a file.
	Where string `json:"where"`
	Text  string `json:"text"`
}

// Values of Line.Where that are not files.
const (
	Shell = "shell" // a line for a shell's profile
	Start = "start" // how to start the client
	Run   = "run"   // a command to run once
)

// Client is a program that calls providers, or a library.
type Client struct {
	Name      string      `json:"name"`
	Client    string      `json:"client"` // its name in the table of clients
	Way       clients.Way `json:"way"`
	Found     string      `json:"found"` // where it was found: a path, or names of variables
	Resources []string    `json:"resources"`
	Lines     []Line      `json:"lines"` // what works first
	// Ready reports that the client already sends to this gate, as far as environment variables show.
	Ready bool `json:"ready"`
	// Note is a remark for the user; it may be empty.
	Note string `json:"note"`
	// Checked reports whether a call passed the gate; nil if none was tried. Problem says why it did not, or was not tried.
	Checked *bool  `json:"checked"`
	Problem string `json:"problem"`

	// Known is the client's entry in the table.
	Known *clients.Client `json:"-"`
	// Program is the path of its program, or "" if it was found by other signs.
	Program string `json:"-"`
}

// Find returns the clients of a table that are on a machine, with the lines that point them to the gate. Agents come first.
func Find(m Machine, g Endpoint, table *clients.Table) []Client {
	if m.Program == nil {
		m.Program = exec.LookPath
	}
	found := []Client{}
	for _, k := range table.All() {
		if k.Kind == clients.Runtime {
			continue // on every machine, and no client by itself
		}
		program, where := m.find(k)
		if where == "" {
			continue
		}
		c := Client{Name: k.Title, Client: k.Name, Way: k.Way, Found: where, Resources: reachable(k), Lines: []Line{}, Note: k.Note, Known: k, Program: program}
		c.point(&m, g)
		found = append(found, c)
	}
	slices.SortStableFunc(found, func(a, b Client) int { return cmp.Compare(rank(a.Known.Kind), rank(b.Known.Kind)) })
	found = withoutRepeats(found)
	for i := range found {
		if left := leftOut(found, found[i].Known); left != "" {
			found[i].remark(left)
		}
	}
	return found
}

func rank(k clients.Kind) int {
	if k == clients.Agent {
		return 0
	}
	return 1
}

// withoutRepeats leaves out frameworks: libraries that were found by keys of SDKs, and add no line to theirs.
func withoutRepeats(found []Client) []Client {
	libraries := slices.DeleteFunc(slices.Clone(found), func(c Client) bool { return c.Known.Kind != clients.Library })
	slices.SortStableFunc(libraries, func(a, b Client) int { // SDKs first: they are for one provider, and read most
		return cmp.Or(cmp.Compare(len(a.Known.Providers), len(b.Known.Providers)), cmp.Compare(len(b.Lines), len(a.Lines)))
	})
	said, repeats := map[string]bool{}, map[*clients.Client]bool{}
	for i := range libraries {
		c := &libraries[i]
		words := strings.Split(c.Found, ", ")
		for _, l := range c.Lines {
			words = append(words, l.Text)
		}
		repeats[c.Known] = !slices.ContainsFunc(words, func(w string) bool { return !said[w] })
		for _, w := range words {
			said[w] = true
		}
	}
	return slices.DeleteFunc(found, func(c Client) bool { return repeats[c.Known] })
}

// find returns a client's program and where the client was found; both are empty if it was not. Keys show only that a
// library is used: agents share them.
func (m *Machine) find(k *clients.Client) (program, where string) {
	for _, p := range k.Commands {
		if path, err := m.Program(p); err == nil {
			return path, path
		}
	}
	for _, p := range k.Files {
		if path := filepath.Join(m.Home, p); m.Exists(path) {
			return "", path
		}
	}
	if k.Kind != clients.Library {
		return "", ""
	}
	var set []string
	for _, v := range k.Keys {
		if m.Env(v) != "" {
			set = append(set, v)
		}
	}
	return "", strings.Join(set, ", ")
}

// reachable returns the providers of a client that have an address. The others need a resource of the user's own.
func reachable(k *clients.Client) []string {
	list := []string{}
	for _, name := range k.Providers {
		d, _ := provider.Lookup(name)
		if s, ok := d.(provider.Speaker); ok && s.Address() != "" {
			list = append(list, name)
		}
	}
	return list
}

// point fills in the lines for a client: what works first.
func (c *Client) point(m *Machine, g Endpoint) {
	k := c.Known
	through := Line{Start, "sluice run -- " + k.Starts()}
	var bases []Line
	var ready, exported int
	for _, b := range k.Bases {
		if b.Signed != "" {
			continue
		}
		want := g.URL + "/" + b.Provider + b.Suffix
		if b.Own { // it changes more than an address
			bases = append(bases, Line{Start, b.Variable + "=" + shellword.Quote(want) + " " + k.Starts()})
			continue
		}
		exported++
		switch was := m.Env(b.Variable); {
		case strings.TrimSuffix(was, "/") == want:
			ready++
		case was != "":
			c.remark(b.Variable + " is set to another address: set resources." + b.Provider + ".upstream to that one if the gate should send there")
		}
		bases = append(bases, Line{Shell, "export " + b.Variable + "=" + shellword.Quote(want)})
	}
	c.Ready = k.Way == clients.ByBase && exported > 0 && ready == exported
	if k.Why != "" {
		c.remark("it " + k.Why)
	}
	var settings []Line
	for _, s := range k.Settings {
		if s.Run != "" {
			settings = append(settings, Line{Run, g.fill(s.Run)})
			continue
		}
		settings = append(settings, Line{filepath.Join(m.Home, s.File), g.fill(s.Text)})
	}
	switch k.Way {
	case clients.ByBase:
		c.Lines = append(append(c.Lines, bases...), settings...)
	case clients.BySetting:
		c.Lines = append(append(c.Lines, settings...), bases...)
	default:
		c.Lines = append(append(append(c.Lines, through), bases...), settings...)
	}
}

// remark adds a remark for the user.
func (c *Client) remark(text string) {
	if c.Note != "" {
		text = c.Note + "; " + text
	}
	c.Note = text
}

// fill replaces the placeholders of a setting.
func (g Endpoint) fill(text string) string {
	text = strings.ReplaceAll(text, "{socket}", shellword.Quote(g.Socket))
	for _, name := range provider.Names() {
		text = strings.ReplaceAll(text, "{"+name+"}", g.URL+"/"+name)
	}
	return text
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

// Exports returns the lines for a shell, sorted and without duplicates. Variables that one of the clients must not have
// are left out.
func Exports(list []Client) []string {
	var lines []string
	for i := range list {
		for _, l := range list[i].Lines {
			if l.Where == Shell && !slices.ContainsFunc(list, func(c Client) bool { return c.Known.Refuses(variableOf(l)) }) {
				lines = append(lines, l.Text)
			}
		}
	}
	slices.Sort(lines)
	return slices.Compact(lines)
}

// variableOf returns the variable that a line for a shell sets.
func variableOf(l Line) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(l.Text, "export "), "=")
	return name
}

// leftOut says which variables of the other clients a client does not bear.
func leftOut(list []Client, k *clients.Client) string {
	var names []string
	for i := range list {
		for _, l := range list[i].Lines {
			if l.Where == Shell && k.Refuses(variableOf(l)) {
				names = append(names, variableOf(l))
			}
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "env.sh leaves out " + strings.Join(slices.Compact(names), ", ")
}

// Socket reports whether a client needs the gate's Unix socket.
func Socket(list []Client) bool {
	return slices.ContainsFunc(list, func(c Client) bool {
		return slices.ContainsFunc(c.Known.Settings, func(s clients.Setting) bool { return strings.Contains(s.Run+s.Text, "{socket}") })
	})
}
