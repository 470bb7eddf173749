package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/store"
)

// repairJSON is the output of repair with --json.
type repairJSON struct {
	Resource string  `json:"resource"`
	At       string  `json:"at"`     // the key or the file
	Damage   *string `json:"damage"` // null if there is none
	Aside    *string `json:"aside"`  // where the damaged state is now; null if it was not moved
}

func newRepair() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "repair RESOURCE",
		Short: "Move damaged state of a resource aside",
		Long: `Repair checks the state of a resource for damage: another program wrote to Sluice's key or files, they
were cut short, or another version of Sluice wrote them. With --yes it moves damaged state aside, and
the resource starts again. Sluice then cannot know what was sent, so it holds all requests for 3 s
and treats windows of up to 10 minutes as spent for one window. Sound state is never moved.

In Redis the keys of the resource become PREFIX:{NAME}:damaged-TIME:... and stay for a week. Processes
that know what was lost put it back. In a file store the resource's
directory becomes NAME.damaged-TIME and stays until you remove it.

RESOURCE is the name in the error's hint. Run repair against the store itself, not through a daemon
(http://).

Exit codes: 0 sound, or repaired; 64 usage; 69 the state is damaged and --yes was not given, or the
store cannot be reached; 78 bad configuration.`,
		Example: `  sluice repair github
  sluice repair github --yes --store redis://HOST:6379`,
		Args:              needs("RESOURCE"),
		ValidArgsFunction: completeResources,
		RunE:              runRepair,
	}
	cmd.Flags().Bool("yes", false, "move damaged state aside and start again")
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
	st, err := openStore(cmd.Context(), at.url)
	if err != nil {
		return at.openFailure(err)
	}
	defer func() { _ = st.Close() }() // nothing was asked of it
	r, ok := st.(store.Repairer)
	if !ok {
		return &failure{
			code: exitUsage, message: "the state of this store cannot be repaired from here",
			hint: "repair is for file: and redis://; for a daemon, run it with the --store that the daemon uses",
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
	for _, said := range []string{"the state is damaged: ", "a key is damaged: "} { // the sentences here say so themselves
		r.Damage = strings.TrimPrefix(r.Damage, said)
	}
	if r.Damage != "" && r.Aside == "" {
		return &failure{
			code: exitUnavailable, message: fmt.Sprintf("%s is damaged: %s", where(r), r.Damage),
			hint: store.RepairCommand(resource) + " --yes moves it aside; windows of up to 10 minutes then count as spent for one window",
		}
	}
	out := repairJSON{Resource: resource, At: r.At}
	text := fmt.Sprintf("%s is not damaged: %s", resource, r.At)
	if _, err := os.Stat(r.At); r.What != "key" && errors.Is(err, fs.ErrNotExist) { // perhaps the name is misspelt
		text = fmt.Sprintf("%s has no state in this store: there is no %s", resource, r.At)
	}
	if r.Damage != "" {
		out.Damage, out.Aside = &r.Damage, &r.Aside
		text = fmt.Sprintf("repaired %s: %s (%s) is now in %s; remove that when you have looked at it", resource, r.At, r.Damage, r.Aside)
		if r.What == "key" {
			text = fmt.Sprintf("repaired %s: %s (%s) is now %s and expires in 7 days", resource, r.At, r.Damage, r.Aside)
		}
	}
	return printLine(cmd, out, "%s", harmless(text))
}

// where describes what is damaged.
func where(r store.Repair) string {
	if r.What == "key" {
		return fmt.Sprintf("the key %q in Redis", r.At)
	}
	return "the file " + r.At
}
