package main

import (
	"context"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/shellword"
	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/sim"
)

// knownResources returns the names that openGate accepts. It returns none for a wrong configuration; the command itself
// will report the error.
func knownResources(cmd *cobra.Command) []string {
	f := completionConfig(cmd)
	if f == nil {
		return nil
	}
	f.AddPresets()
	return slices.Sorted(maps.Keys(f.Resources))
}

// completionConfig returns the configuration of the command line being typed, or nil if it is wrong.
func completionConfig(cmd *cobra.Command) *config.File {
	name := configName(cmd, nil)
	if name == "" {
		return config.Default()
	}
	f, err := config.Load(name)
	if err != nil {
		return nil
	}
	return f
}

// completeResources completes the name of a resource from the configuration alone: completion does not open the store.
func completeResources(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return knownResources(cmd), cobra.ShellCompDirectiveNoFileComp
}

// completeShown completes the name of a resource that can be shown. That includes resources of other configurations
// that were recently used on this machine. It does not open the store.
func completeShown(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := knownResources(cmd)
	recentSends(cmd, func(e *inspect.Event) {
		if e.Resource != "" && len(names) < mostShown && !slices.Contains(names, e.Resource) && !strings.ContainsAny(e.Resource, "\t\n") {
			names = append(names, e.Resource)
		}
	})
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeClasses completes the name of a class, from the configuration alone.
func completeClasses(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	var names []string
	if f := completionConfig(cmd); f != nil {
		names = classesOf(f)
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// Bounds on what completion reads.
const (
	recentFor  = time.Hour
	recentMost = 50
	mostShown  = 100 // resources
	lookWithin = time.Second
)

// completeAgents completes the name of an agent: agents of the configuration, and agents that recently sent from this
// machine.
func completeAgents(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	names := map[string]bool{}
	if f := completionConfig(cmd); f != nil {
		for name := range f.Agents {
			names[name] = name != "*"
		}
	}
	recentSends(cmd, func(e *inspect.Event) {
		if len(names) < recentMost && e.Agent != "" {
			names[e.Agent] = true
		}
	})
	maps.DeleteFunc(names, func(name string, is bool) bool { return !is || strings.ContainsAny(name, "\t\n") })
	return slices.Sorted(maps.Keys(names)), cobra.ShellCompDirectiveNoFileComp
}

// completeTickets completes a ticket that was recently granted to this machine and has no response yet, the latest
// first.
func completeTickets(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var open []inspect.Event
	recentSends(cmd, func(e *inspect.Event) {
		open = slices.DeleteFunc(open, func(o inspect.Event) bool { return o.Ticket == e.Ticket })
		if e.Kind == inspect.EventSend && e.Ticket != "" {
			open = append(open, *e)
		}
		if len(open) > recentMost {
			open = open[1:]
		}
	})
	var list []string
	for _, e := range slices.Backward(open) {
		list = append(list, e.Ticket+"\t"+shellword.Escape(e.Agent)+", "+show.Ago(e.Time, time.Now()))
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// recentSends reads recent sends from this machine, and their outcome, from the event log. It does not open the store.
func recentSends(cmd *cobra.Command, yield func(*inspect.Event)) {
	f := completionConfig(cmd)
	if f == nil {
		return
	}
	at, err := placeOf(cmd, f)
	if err != nil || at.dir == "" {
		return
	}
	kinds := []string{inspect.EventSend, inspect.EventAnswer, inspect.EventCancel, inspect.EventUsage}
	ours := []string{at.label()}
	_ = eventlog.ReadKinds(at.dir, time.Now().Add(-recentFor), kinds, func(e inspect.Event) bool { // on an error there is nothing to complete
		if eventlog.IsOf(&e, ours) {
			yield(&e)
		}
		return true
	})
}

// completeWaiting completes the ticket of a waiting request. Only the store knows these, so it is read for a moment; a
// missing store is not created.
func completeWaiting(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	f := completionConfig(cmd)
	if f == nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	at, err := placeOf(cmd, f)
	dir, isFile := strings.CutPrefix(at.url, "file:")
	if _, missing := os.Stat(dir); err != nil || at.url == "mem:" || isFile && missing != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), lookWithin)
	defer cancel()
	cmd.SetContext(ctx)
	w, err := readWaiting(cmd, args, whose{}, time.Now())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	for i := range w.Waiting[:min(len(w.Waiting), recentMost)] {
		list = append(list, w.Waiting[i].Ticket+"\t"+shellword.Escape(w.Waiting[i].Agent))
	}
	return list, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeScenarios completes the name of a scenario, or a file with one.
func completeScenarios(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var list []string
	for _, sc := range sim.Builtin() {
		list = append(list, sc.Name+"\t"+sc.About)
	}
	return list, cobra.ShellCompDirectiveDefault // and files
}

// completeFlag registers the completion of a flag's values. It panics for an unknown flag, which a test would catch.
func completeFlag(cmd *cobra.Command, flag string, with cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, with); err != nil {
		panic(err)
	}
}
