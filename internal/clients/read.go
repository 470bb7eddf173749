package clients

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/internal/strictyaml"
	"github.com/sluicehq/sluice/provider"
)

//go:embed table
var files embed.FS

// Builtin returns the table that comes with this program.
var Builtin = sync.OnceValue(func() *Table {
	sub, err := fs.Sub(files, "table")
	if err != nil {
		panic(err)
	}
	t, err := (*Table)(nil).with(sub, "")
	if err != nil {
		panic("clients: " + err.Error()) // a test reads every file
	}
	return t
})

// maxClients bounds the files of a directory.
const maxClients = 1000

// With returns the table with the files of a directory, which end in .yaml. A file replaces the client of the same name.
func (t *Table) With(dir string) (*Table, error) {
	return t.with(os.DirFS(dir), dir)
}

func (t *Table) with(dir fs.FS, name string) (*Table, error) {
	entries, err := fs.ReadDir(dir, ".")
	if err != nil {
		if bad, ok := errors.AsType[*fs.PathError](err); ok {
			err = bad.Err // its path is relative to the directory
		}
		return nil, fmt.Errorf("the directory of clients %s: %w", name, err)
	}
	all := map[string]*Client{}
	for _, c := range t.All() {
		all[c.Name] = c
	}
	from := map[string]string{}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".yaml") {
			continue
		}
		if len(from) >= maxClients {
			return nil, fmt.Errorf("the directory of clients %s has more than %d files", name, maxClients)
		}
		f, err := dir.Open(e.Name())
		if err != nil {
			return nil, err
		}
		at := path.Join(name, e.Name())
		src, err := strictyaml.Read(at, "client", f)
		_ = f.Close() // it was only read
		if err != nil {
			return nil, err
		}
		c, err := Parse(at, src)
		if err != nil {
			return nil, err
		}
		if other, twice := from[c.Name]; twice {
			return nil, fmt.Errorf("%s: client %s is in %s already", at, c.Name, other)
		}
		from[c.Name], all[c.Name] = at, c
	}
	out := &Table{}
	for _, c := range all {
		out.list = append(out.list, c)
	}
	slices.SortFunc(out.list, func(a, b *Client) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// Parse reads the file of one client. Its errors name the line and what is expected there.
func Parse(name string, src []byte) (*Client, error) {
	doc, err := strictyaml.Parse(name, "client", src)
	if err != nil {
		return nil, err
	}
	c := &Client{}
	doc.Decode(c)
	c.check(doc)
	if err := doc.Err(); err != nil {
		return nil, err
	}
	return c, nil
}

var (
	nameForm     = lazyregexp.New(`^[a-z0-9][a-z0-9.-]{0,62}$`)
	variableForm = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	placeholder  = lazyregexp.New(`\{([a-z0-9-]+)\}`)
)

// check reports what a client must not say.
func (c *Client) check(doc *strictyaml.Doc) {
	if !nameForm.MatchString(c.Name) {
		doc.Fail("name", "%.80q is not the name of a client", c.Name).Hint("use lower-case letters, digits, dots and dashes, such as my-agent")
	}
	if c.Title == "" {
		c.Title = c.Name
	}
	oneOf(doc, "kind", c.Kind, Agent, Library, Runtime)
	oneOf(doc, "way", c.Way, ByBase, ByIntercept, ByBoth, BySetting)
	for i, p := range c.Providers {
		knownProvider(doc, strictyaml.Index("providers", i), p)
	}
	for i, p := range c.Aside {
		knownProvider(doc, strictyaml.Index("aside", i), p)
	}
	for i, b := range c.Bases {
		at := strictyaml.Index("bases", i)
		knownProvider(doc, strictyaml.Join(at, "provider"), b.Provider)
		if !variableForm.MatchString(b.Variable) {
			doc.Fail(strictyaml.Join(at, "variable"), "%.80q is not the name of a variable", b.Variable).Hint("write it as in the shell: OPENAI_BASE_URL")
		}
		if b.Suffix != "" && (!strings.HasPrefix(b.Suffix, "/") || strings.HasSuffix(b.Suffix, "/")) {
			doc.Fail(strictyaml.Join(at, "suffix"), "%.80q does not follow an address", b.Suffix).Hint("begin with a slash and end without one: /v1")
		}
	}
	for i, ua := range c.UserAgents {
		if len(ua) < 3 {
			doc.Fail(strictyaml.Index("user_agents", i), "%.80q fits too many programs", ua).Hint("give at least three characters, such as codex_cli_rs/")
		}
	}
	for p, k := range c.KeepAlive {
		knownProvider(doc, strictyaml.Join("keep_alive", p), p)
		oneOf(doc, strictyaml.Join("keep_alive", p), k, Event, Comment, Blank, Nothing)
	}
	if c.Try != nil && (len(c.Try.Args) == 0 || len(c.Commands) == 0) {
		doc.Fail("try", "a call needs arguments, and a command that takes them").Hint(`args: [-p, "Say hello."], with commands`)
	}
	for i, s := range c.Settings {
		at := strictyaml.Index("settings", i)
		if (s.Run == "") == (s.File == "" || s.Text == "") {
			doc.Fail(at, "a setting needs file and text, or run").Hint("file: .codex/config.toml, text: the line")
		}
		for _, m := range placeholder.FindAllStringSubmatch(s.Text+s.Run, -1) {
			if m[1] != "socket" {
				knownProvider(doc, at, m[1])
			}
		}
	}
}

// oneOf reports a value that is not one of those known.
func oneOf[T ~string](doc *strictyaml.Doc, at string, v T, known ...T) {
	if slices.Contains(known, v) {
		return
	}
	words := make([]string, len(known))
	for i, k := range known {
		words[i] = string(k)
	}
	doc.Fail(at, "%.80q is not known", string(v)).Hint("use one of: " + strings.Join(words, ", "))
}

func knownProvider(doc *strictyaml.Doc, at, name string) {
	if _, ok := provider.Lookup(name); !ok {
		doc.Fail(at, "unknown provider %.80q", name).Hint("use one of: " + strings.Join(provider.Names(), ", "))
	}
}
