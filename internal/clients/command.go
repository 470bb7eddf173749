package clients

import (
	"path"
	"slices"
	"strings"
)

// starters are commands that run a package or a program that an argument names. The values are words between the command
// and that argument.
var starters = map[string][]string{
	"npx": nil, "bunx": nil, "uvx": nil, "pnpx": nil,
	"npm": {"exec", "x"}, "pnpm": {"dlx", "exec"}, "yarn": {"dlx", "exec"}, "bun": {"x"}, "pipx": {"run"}, "uv": {"run", "tool"},
	"env": nil, "nice": nil, "nohup": nil, "time": nil, "timeout": nil, "stdbuf": nil, "setsid": nil,
}

// maxWords bounds how many arguments are looked at.
const maxWords = 12

// Command returns the client that a command line starts, or nil. It sees through commands that start others, such as npx
// and env, and through paths, versions and the endings of Windows.
func (t *Table) Command(argv []string) *Client {
	for len(argv) > 0 {
		name := program(argv[0])
		between, starts := starters[name]
		if !starts {
			return t.called(name, argv[0])
		}
		next := started(argv[1:], between)
		if len(next) == 0 {
			return t.called(name, argv[0])
		}
		if c := t.called(program(next[0]), next[0]); c != nil {
			return c
		}
		if c := t.called(name, argv[0]); c != nil && starts && between == nil {
			return c
		}
		if _, more := starters[program(next[0])]; !more {
			return t.called(name, argv[0]) // npx of a package that is not known still runs Node
		}
		argv = next
	}
	return nil
}

// started returns the command line without flags, settings and the words between, or nil if there is none.
func started(args, between []string) []string {
	for i, arg := range args[:min(len(args), maxWords)] {
		switch {
		case strings.HasPrefix(arg, "-"), strings.Contains(arg, "=") && !strings.Contains(arg, "/"):
		case slices.Contains(between, arg):
			between = append(slices.Clone(between), "run") // uv tool run
		case strings.Trim(arg, "0123456789.smh") == "": // the argument of timeout or nice
		default:
			return args[i:]
		}
	}
	return nil
}

// program returns the name of a program without its directory and without an ending of Windows.
func program(arg string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(arg, `\`, "/")))
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// called returns the client with a program or a package of a name. python3.12 is python.
func (t *Table) called(name, arg string) *Client {
	plain := strings.TrimRight(name, "0123456789.")
	pkg := arg
	if i := strings.LastIndexByte(pkg, '@'); i > 0 { // @openai/codex@latest
		pkg = pkg[:i]
	}
	pkg, _, _ = strings.Cut(pkg, "==")
	for _, c := range t.All() {
		if slices.Contains(c.Commands, name) || c.Kind == Runtime && slices.Contains(c.Commands, plain) {
			return c
		}
	}
	for _, c := range t.All() {
		for manager, p := range c.Packages {
			if p == pkg && (manager == "npm" || manager == "pypi") && c.Kind == Agent {
				return c
			}
		}
	}
	return nil
}
