package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
)

// knownResources are the names that openGate takes. A configuration that is wrong has none: the
// command itself will say what is wrong with it.
func knownResources(cmd *cobra.Command) []string {
	f := config.Default()
	if name := configName(cmd, nil); name != "" {
		var err error
		if f, err = config.Load(name); err != nil {
			return nil
		}
	}
	f.AddPresets()
	return slices.Sorted(maps.Keys(f.Resources))
}

// completeResources completes the name of a resource, from the configuration alone: no store is
// opened while somebody types.
func completeResources(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return knownResources(cmd), cobra.ShellCompDirectiveNoFileComp
}

// completeClasses completes the name of a class, from the configuration alone.
func completeClasses(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	f := config.Default()
	if name := configName(cmd, nil); name != "" {
		var err error
		if f, err = config.Load(name); err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
	}
	var names []string
	for _, c := range f.Classes {
		names = append(names, c.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
