package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/store"
)

// repairJSON is what repair prints for programs.
type repairJSON struct {
	Resource string  `json:"resource"`
	At       string  `json:"at"`     // the key
	Damage   *string `json:"damage"` // null: none
	Aside    *string `json:"aside"`  // where the damaged state is now; null: it was not moved
}

func newRepair() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repair RESOURCE",
		Short: "Move damaged state of a resource aside",
		Long: `Repair reads the whole state of the resource in Redis and says whether it is damaged: another program
has written to Sluice's key, or a different version of Sluice made it. With --yes it renames the damaged
key to KEY:damaged-TIME, where it stays for a week, and the resource begins anew. The gate then cannot know
what was sent before, so it treats windows of up to 10 minutes as spent for one window: the provider sees no
more than its limit. State that is not damaged is never moved.

RESOURCE is the name that the hint of an error shows. Run repair against the store itself: a daemon
(http://) repairs nothing for others.

Exit codes: 0 not damaged, or repaired; 64 usage; 69 the state is damaged and --yes was not given, or the
store cannot be reached; 78 bad configuration.`,
		Example: `  sluice repair github
  sluice repair github --yes --store redis://HOST:6379`,
		Args: needs("RESOURCE"),
		RunE: runRepair,
	}
	cmd.Flags().Bool("yes", false, "move damaged state aside and begin anew")
	return cmd
}

func runRepair(cmd *cobra.Command, args []string) error {
	f, err := configOf(cmd)
	if err != nil {
		return err
	}
	at, err := placeOf(cmd, f)
	if err != nil {
		return err
	}
	st, err := sluice.OpenStore(cmd.Context(), at.url)
	if err != nil {
		return at.openFailure(err)
	}
	defer func() { _ = st.Close() }() // nothing was asked of it
	r, ok := st.(store.Repairer)
	if !ok {
		return &failure{
			code: exitUsage, message: "the state of this store cannot be repaired from here",
			hint: "repair is for redis://; for a daemon, run it with the --store that the daemon uses. Of a file store remove the directory that the error names",
		}
	}
	yes, _ := cmd.Flags().GetBool("yes")
	found, err := r.Repair(cmd.Context(), args[0], yes)
	if err != nil {
		return fail(err)
	}
	return printRepair(cmd, args[0], found)
}

func printRepair(cmd *cobra.Command, resource string, r store.Repair) error {
	if r.Damage != "" && r.Aside == "" {
		return &failure{
			code: exitUnavailable, message: fmt.Sprintf("the key %q in Redis is damaged: %s", r.At, r.Damage),
			hint: "sluice repair " + shellLine([]string{resource}) + " --yes moves it aside; windows of up to 10 minutes then count as spent for one window",
		}
	}
	if asJSON(cmd) {
		out := repairJSON{Resource: resource, At: r.At}
		if r.Damage != "" {
			out.Damage, out.Aside = &r.Damage, &r.Aside
		}
		return printJSON(cmd.OutOrStdout(), out)
	}
	text := fmt.Sprintf("%s is not damaged: %s", resource, r.At)
	if r.Damage != "" {
		text = fmt.Sprintf("repaired %s: %s (%s) is now %s and expires in 7 days", resource, r.At, r.Damage, r.Aside)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), harmless(text))
	return err
}
