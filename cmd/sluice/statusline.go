package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// Bounds on status --line: a prompt must not hang, and a status bar is narrow.
const (
	lineWithin = 2 * time.Second
	lineMost   = 3 // resources
)

// statusLine prints the state in one line, for prompts and status bars. It has no colours, because not every bar can
// show them.
func statusLine(cmd *cobra.Command) error {
	if asJSON(cmd) {
		return &failure{code: exitUsage, message: "--line and --json exclude each other", hint: "leave one of them out"}
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), lineWithin)
	defer cancel()
	cmd.SetContext(ctx)
	st, err := readStatus(cmd)
	err = orOfDaemon(cmd, err, &st)
	line := "sluice " + inspect.StateDegraded + ", no store"
	if err == nil {
		line = lineOf(&st, time.Now())
	} else if asFailure(err).code != exitUnavailable {
		return err
	}
	if _, failed := fmt.Fprintln(cmd.OutOrStdout(), line); failed != nil {
		return written(failed)
	}
	return err
}

// lineOf describes the resources in use, worst first.
func lineOf(st *inspect.Status, now time.Time) string {
	order := inspect.States()
	busy := slices.DeleteFunc(slices.Clone(st.Resources), func(r inspect.ResourceStatus) bool { return r.State == inspect.StateIdle })
	slices.SortStableFunc(busy, func(a, b inspect.ResourceStatus) int {
		return slices.Index(order, a.State) - slices.Index(order, b.State)
	})
	if len(busy) == 0 {
		return "sluice " + inspect.StateIdle
	}
	var parts []string
	for i := range busy[:min(len(busy), lineMost)] {
		parts = append(parts, linePart(&busy[i], now))
	}
	if more := len(busy) - lineMost; more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, " | ")
}

// linePart describes a resource in a few words: its state, what is left of a pause, waiting requests, and how full its
// fullest limit is.
func linePart(r *inspect.ResourceStatus, now time.Time) string {
	text := harmless(r.Name) + " " + r.State
	if r.State == inspect.StatePaused && r.Until != nil && r.Until.After(now) {
		text += " " + show.Span(r.Until.Sub(now))
	}
	if r.BillingStop {
		text += " (billing stop)"
	}
	if n := r.AllWaiting(); n > 0 {
		text += fmt.Sprintf(", %d waiting", n)
	}
	if full, known := fullest(r); known && r.State != inspect.StateFailing {
		text += fmt.Sprintf(", %d%% used", full)
	}
	return text
}

// fullest returns the used percentage of the fullest limit that agents share.
func fullest(r *inspect.ResourceStatus) (percent int64, known bool) {
	for i := range r.Limits {
		if l := &r.Limits[i]; l.Limit > 0 && isShared(l.Scope) {
			percent, known = max(percent, min(100*(l.Limit-l.Remaining)/l.Limit, 100)), true
		}
	}
	return percent, known
}

// isShared reports whether a scope is that of many agents: none, or a model and a key.
func isShared(scope string) bool {
	model, key := strings.HasPrefix(scope, "model="), strings.HasPrefix(scope, "key=")
	return scope == "" || key || model && !strings.Contains(scope, ",tool=")
}
