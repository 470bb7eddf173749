package main

import (
	"fmt"
	"runtime/debug"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/manpage"
)

// newMan returns the command that writes manual pages. It is hidden, because only packagers need it.
func newMan() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY",
		Short:  "Write the manual pages to a directory",
		Hidden: true,
		Args:   needs("DIRECTORY"),
		RunE: func(cmd *cobra.Command, args []string) error {
			v := buildVersion(debug.ReadBuildInfo())
			date, err := time.Parse(time.RFC3339, v.Time) // the same source gives the same pages
			if err != nil {
				date = time.Now()
			}
			pages := manpage.Pages(cmd.Root(), v.Version, date)
			if err := manpage.Write(args[0], pages); err != nil {
				return &failure{code: exitUnavailable, message: err.Error(), hint: "give a directory that can be written to"}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d pages in %s\n", len(pages), harmless(args[0]))
			return written(err)
		},
	}
}
