package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/test/docs"
)

// documentation returns all pages that people read.
func documentation(t *testing.T) []docs.Page {
	t.Helper()
	pages, err := docs.Pages()
	if err != nil {
		t.Fatal(err)
	}
	return pages
}

var (
	called  = regexp.MustCompile("(?:^|[\\s;&|(\"'=$`]|bin/)sluice((?: +[^\\s`]+)+)")
	aName   = regexp.MustCompile(`^[a-z]+$`)
	aFlag   = regexp.MustCompile(`^\[?--([a-z][a-z0-9-]+)`)
	stopped = []string{"--", "|", ";", "&&", "&", "#", ">", "2>", "2>>", "||", "\\"}
)

// noCommands follow the word where it is not the program: in a file's first line, and a user of Redis.
var noCommands = []string{"history", "on"}

// Every command and flag in the documentation exists.
func TestCommandsInTheDocumentationExist(t *testing.T) {
	t.Parallel()
	root, seen := newRoot(), 0
	root.InitDefaultCompletionCmd()
	check := func(page, text string) {
		for _, m := range called.FindAllStringSubmatch(strings.ReplaceAll(text, "mcp add sluice ", ""), -1) {
			cmd, descend := root, true
			for i, word := range strings.Fields(m[1]) {
				if slices.Contains(stopped, word) {
					break
				}
				if f := aFlag.FindStringSubmatch(word); f != nil {
					seen++
					if flagOf(cmd, f[1]) == nil {
						t.Errorf("%s: %q has no flag --%s: %s", page, cmd.CommandPath(), f[1], m[0])
					}
					continue
				}
				sub := subcommand(cmd, word)
				switch {
				case sub != nil && descend:
					seen++
					cmd = sub
				case i == 0 && aName.MatchString(word) && !slices.Contains(noCommands, word):
					t.Errorf("%s: unknown command sluice %s", page, word)
				default:
					descend = false
				}
				if i == 0 && sub == nil {
					break
				}
				if word != strings.TrimRight(word, ";)") {
					break
				}
			}
		}
	}
	for _, p := range documentation(t) {
		prose, blocks := p.Split()
		for _, s := range docs.Spans(prose) {
			check(p.Path, s)
		}
		for _, b := range blocks {
			if !slices.Contains([]string{"", "sh", "console"}, b.Language) {
				continue
			}
			for line := range strings.Lines(strings.ReplaceAll(b.Text, "\\\n", " ")) {
				check(p.Path, strings.TrimPrefix(line, "$ "))
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d commands and flags were found", seen)
	}
}

func subcommand(cmd *cobra.Command, name string) *cobra.Command {
	for _, sub := range cmd.Commands() {
		if sub.Name() == name {
			return sub
		}
	}
	return nil
}

func flagOf(cmd *cobra.Command, flag string) *pflag.Flag {
	if flag == "help" {
		return new(pflag.Flag) // which cobra adds when it is asked for
	}
	if f := cmd.Flags().Lookup(flag); f != nil {
		return f
	}
	return cmd.InheritedFlags().Lookup(flag)
}

// ofOtherPrograms are flags that stand alone in prose and are not ours.
var ofOtherPrograms = []string{"read-only", "network", "tags"}

// A flag on its own in the documentation belongs to some command.
func TestFlagsInTheDocumentationExist(t *testing.T) {
	t.Parallel()
	known := slices.Clone(ofOtherPrograms)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		add := func(f *pflag.Flag) { known = append(known, f.Name) }
		cmd.Flags().VisitAll(add)
		cmd.PersistentFlags().VisitAll(add)
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(newRoot())
	known = append(known, "help")
	seen := 0
	for _, p := range documentation(t) {
		prose, _ := p.Split()
		for _, s := range docs.Spans(prose) {
			if f := aFlag.FindStringSubmatch(s); f != nil {
				seen++
				if !slices.Contains(known, f[1]) {
					t.Errorf("%s: no command has the flag `%s`", p.Path, s)
				}
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d flags were found", seen)
	}
}

// offline are commands that need nothing but a state directory, and end at once.
var offline = []string{"acquire", "agents", "config", "doctor", "observe", "pause", "pool", "report", "resume", "setup", "status", "token", "version", "why"}

// fleetFile has the resources that the documentation speaks of.
const fleetFile = `resources:
  search-api: {upstream: "https://api.example.com", limits: [{name: minute, size: 1000/min}]}
  anthropic: {provider: anthropic}
  github: {provider: github}
`

// Documented shell lines that need no network, no daemon and no time work.
func TestDocumentedCommandsRun(t *testing.T) {
	t.Parallel()
	var script strings.Builder
	seen := map[string]bool{}
	for _, p := range documentation(t) {
		_, blocks := p.Split()
		for _, b := range blocks {
			if b.Language != "sh" {
				continue
			}
			for line := range strings.Lines(b.Text) {
				line, _, _ = strings.Cut(line, " #")
				line, _, _ = strings.Cut(line, "&&")
				line = strings.TrimSpace(line)
				words := strings.Fields(line)
				if len(words) < 2 || words[0] != "sluice" || !slices.Contains(offline, words[1]) || seen[line] ||
					strings.ContainsAny(line, "$|<>;&*") || slices.Contains(words, "--yes") || slices.Contains(words, "--against") {
					continue
				}
				seen[line] = true
				fmt.Fprintf(&script, "# %s\nexec %s\n", p.Path, line)
			}
		}
	}
	if len(seen) < 10 {
		t.Fatalf("only %d commands can be run:\n%s", len(seen), script.String())
	}
	runScript(t, script.String()+"-- fleet.yaml --\n"+fleetFile)
}

// runScript runs a script with its files.
func runScript(t *testing.T, body string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "docs.txtar")
	head := "env LANG=C.UTF-8\nenv HOME=$WORK/home\nmkdir $WORK/home\nenv XDG_CONFIG_HOME=$WORK/home/.config\nenv XDG_STATE_HOME=$WORK/state\nenv SLUICE_STORE=\nenv SLUICE_CONFIG=$WORK/fleet.yaml\n"
	if err := os.WriteFile(file, []byte(head+body), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("session", func(t *testing.T) {
		testscript.Run(t, testscript.Params{Files: []string{file}, Deadline: time.Now().Add(scriptsWithin)})
	})
}

// Transcripts other than the README's show what happens when their lines are typed into a shell.
func TestDocumentedTranscripts(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, p := range documentation(t) {
		if p.Path == "README.md" {
			continue
		}
		_, blocks := p.Split()
		for _, b := range blocks {
			if b.Language != "console" {
				continue
			}
			seen++
			steps, dir := typed(b.Text), t.TempDir()
			var session, archive strings.Builder
			archive.WriteString("exec bash session.sh\n")
			for i, s := range steps {
				fmt.Fprintf(&session, "{ %s\n} > out%d 2>&1\n", s.command, i)
				fmt.Fprintf(&archive, "cp out%d %s\n", i, filepath.Join(dir, fmt.Sprint(i)))
			}
			runScript(t, archive.String()+"-- fleet.yaml --\n"+fleetFile+"-- session.sh --\n"+session.String()+"true\n")
			for i, s := range steps {
				got, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(i)))
				if err != nil {
					t.Fatal(err)
				}
				if !pattern(s.output).Match(got) {
					t.Errorf("%s:%d: $ %s\nprints\n%s\nThe page says\n%s", p.Path, b.Line, s.command, got, s.output)
				}
			}
		}
	}
	if seen < 2 {
		t.Errorf("only %d transcripts", seen)
	}
}
