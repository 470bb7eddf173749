package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/internal/manpage"
)

// manPages are all pages, by file, and the command that they describe.
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

func TestGroffTakesTheManualPages(t *testing.T) {
	groff, err := exec.LookPath("groff")
	if err != nil {
		t.Skip("there is no groff to look at the pages")
	}
	_, pages := manPages()
	var all []string
	for _, text := range pages {
		all = append(all, text)
	}
	cmd := exec.Command(groff, "-man", "-Tutf8", "-ww", "-z")
	cmd.Stdin = strings.NewReader(strings.Join(all, ""))
	if said, err := cmd.CombinedOutput(); err != nil || len(said) > 0 {
		t.Errorf("%v: %s", err, said)
	}
}
