package main

import "github.com/spf13/cobra"

func newResume() *cobra.Command {
	return &cobra.Command{
		Use:   "resume RESOURCE",
		Short: "End a pause",
		Long: `Resume ends every pause of the resource, also after a 429. Waiting requests follow in order, a few at
first. A resource that is not paused is no error. A billing stop is no pause: it ends with the first
request that the provider serves.

Exit codes: 0 not paused; 64 usage, unknown resource; 69 the store cannot be reached; 78 bad
configuration.`,
		Example:           `  sluice resume github`,
		Args:              needs("RESOURCE"),
		ValidArgsFunction: completeShown,
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			s, err := openReadOnly(cmd, args[0])
			if err != nil {
				return err
			}
			defer s.closing(&err)
			if err := s.gate.Resume(cmd.Context(), args[0]); err != nil {
				return fail(err)
			}
			return s.printPaused(cmd, args[0], "resumed")
		},
	}
}
