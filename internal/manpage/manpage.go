// Package manpage writes manual pages from a tree of commands. Help is the only source: a page has what --help prints, in the form
// that man reads.
package manpage

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Section is the section of the manual that commands are in.
const Section = "1"

// Page is one page.
type Page struct {
	File string // such as sluice-run.1
	Text string
}

// Pages returns a page for a command and each one below it, but for hidden ones. The version and the date stand at the foot.
func Pages(root *cobra.Command, version string, date time.Time) []Page {
	root.InitDefaultHelpFlag()
	var pages []Page
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		pages = append(pages, Page{File: name(cmd) + "." + Section, Text: page(cmd, version, date)})
		for _, c := range children(cmd) {
			walk(c)
		}
	}
	walk(root)
	return pages
}

// Write writes pages to a directory, which is made if it is missing.
func Write(dir string, pages []Page) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range pages {
		if err := os.WriteFile(filepath.Join(dir, p.File), []byte(p.Text), 0o644); err != nil { // everybody may read a manual
			return err
		}
	}
	return nil
}

func children(cmd *cobra.Command) []*cobra.Command {
	var list []*cobra.Command
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() && c.Name() != "help" {
			list = append(list, c)
		}
	}
	return list
}

// name is that of a command's page: sluice-config-check.
func name(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

func page(cmd *cobra.Command, version string, date time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".TH %s %s %q %q %q\n", quoted(strings.ToUpper(name(cmd))), Section, date.UTC().Format(time.DateOnly), "sluice "+version, "Sluice")
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", escape(name(cmd)), escape(cmd.Short))
	fmt.Fprintf(&b, ".SH SYNOPSIS\n.B %s\n", escape(synopsis(cmd)))
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	b.WriteString(".SH DESCRIPTION\n" + block(text))
	if list := children(cmd); len(list) > 0 {
		b.WriteString(".SH COMMANDS\n")
		for _, c := range list {
			fmt.Fprintf(&b, ".TP\n.BR %s (%s)\n%s\n", escape(name(c)), Section, escape(c.Short))
		}
	}
	options(&b, "OPTIONS", cmd.NonInheritedFlags())
	options(&b, "OPTIONS OF ALL COMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		b.WriteString(".SH EXAMPLES\n" + block(cmd.Example))
	}
	see(&b, cmd)
	return b.String()
}

// synopsis is how a command is called, from its first word on.
func synopsis(cmd *cobra.Command) string {
	line := cmd.UseLine()
	if cmd.HasAvailableSubCommands() && !strings.Contains(line, "[command]") {
		line = strings.TrimSuffix(line, " [flags]") + " [command] [flags]"
	}
	return line
}

func options(b *strings.Builder, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	b.WriteString(".SH " + title + "\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Deprecated != "" {
			return
		}
		value, usage := pflag.UnquoteUsage(f)
		text := `\fB` + escape("--"+f.Name) + `\fP`
		if f.Shorthand != "" {
			text = `\fB` + escape("-"+f.Shorthand) + `\fP, ` + text
		}
		if value != "" {
			text += ` \fI` + escape(value) + `\fP`
		}
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "[]" {
			usage += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(b, ".TP\n%s\n%s\n", text, escape(usage))
	})
}

// see names the pages around this one.
func see(b *strings.Builder, cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, name(cmd.Parent()))
	}
	for _, c := range children(cmd) {
		pages = append(pages, name(c))
	}
	if len(pages) == 0 {
		return
	}
	b.WriteString(".SH SEE ALSO\n")
	for i, p := range pages {
		comma := ","
		if i == len(pages)-1 {
			comma = ""
		}
		fmt.Fprintf(b, ".BR %s (%s)%s\n", escape(p), Section, comma)
	}
}

// block is text with its own lines: help is written for 80 columns, and examples and tables must stay as they are.
func block(text string) string {
	var b strings.Builder
	b.WriteString(".nf\n")
	for line := range strings.Lines(strings.Trim(text, "\n") + "\n") {
		b.WriteString(escape(strings.TrimRight(line, "\n")) + "\n")
	}
	b.WriteString(".fi\n")
	return b.String()
}

// escape makes text mean itself: no letter after a backslash, no dot at the beginning of a line, and dashes that can be copied.
func escape(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n", " ").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

func quoted(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }
