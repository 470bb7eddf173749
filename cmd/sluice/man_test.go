package main

import (
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/internal/manpage"
)

// manPages returns all pages by file, and the root command that they describe.
func manPages() (*cobra.Command, map[string]string) {
	root := newRoot()
	root.InitDefaultCompletionCmd()
	pages := map[string]string{}
	for _, p := range manpage.Pages(root, "v1", time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)) {
		pages[p.File] = p.Text
	}
	return root, pages
}

// Every command has a page with every flag of its own.
func TestManPages(t *testing.T) {
	root, pages := manPages()
	if len(pages) < 40 {
		t.Errorf("%d pages", len(pages))
	}
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		text, ok := pages[strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"]
		if !ok {
			t.Errorf("%s has no page", cmd.CommandPath())
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && !strings.Contains(text, strings.ReplaceAll("--"+f.Name, "-", `\-`)) {
				t.Errorf("%s: there is no --%s", cmd.CommandPath(), f.Name)
			}
		})
		for _, c := range cmd.Commands() {
			if c.IsAvailableCommand() && c.Name() != "help" {
				walk(c)
			}
		}
	}
	walk(root)
}
