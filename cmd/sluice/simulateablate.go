package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/show"
	"github.com/sluicehq/sluice/sim"
)

// leaveOut shows what each mechanism of the gate contributes.
func (s *simulation) leaveOut(ctx context.Context, sc *sim.Scenario, cmd *cobra.Command) error {
	if s.plot != "" {
		return &failure{code: exitUsage, message: "--ablate has no picture: --plot cannot be given with it", hint: "run sluice simulate twice, once with each"}
	}
	p := newProgress(cmd.ErrOrStderr(), sc.Name)
	a, err := sim.Ablate(ctx, sc, s.seed, p.step)
	p.end()
	if err != nil {
		return tooLong(err)
	}
	return printResult(cmd, a, func(s *screen) { s.ablation(a) })
}

// ablation shows the gate as it is, and without each mechanism.
func (s *screen) ablation(a *sim.Ablation) {
	about := ""
	if a.About != "" {
		about = ": " + s.Text(a.About, 0)
	}
	s.line("%s%s\n", s.Paint(show.Bold, s.Text(a.Scenario, nameWidth)), about)
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "without", Least: 10}, {Head: "finished", Right: true}, {Head: "429s", Right: true}, {Head: "quota used", Right: true}, {Head: "time", Right: true},
		{Head: a.Class + " waits", Right: true}, {Head: "95% within", Right: true, Drop: 2}, {Head: "evenness", Right: true, Drop: 1},
	}}
	t.Add(s.variant(&a.Full, nil)...)
	var same []string
	for i := range a.Without {
		if v := &a.Without[i]; v.Same {
			same = append(same, v.Name)
		} else {
			t.Add(s.variant(v, &a.Full)...)
		}
	}
	s.table(t)
	if len(same) > 0 {
		s.line("\nNo difference in this scenario without: %s", strings.Join(same, ", "))
	}
	s.line("\nNetwork with the light tail, seed %d. Small differences are chance: compare several seeds.", a.Seed)
}

// variant returns a row of the table. Values worse than the full gate's are coloured.
func (s *screen) variant(v, full *sim.Variant) []show.Cell {
	worse := func(text string, is bool) show.Cell {
		if full != nil && is {
			return show.Cell{Text: text, Colour: show.Amber}
		}
		return show.Cell{Text: text}
	}
	name := show.Cell{Text: v.Name}
	if full == nil {
		name.Colour, full = show.Bold, v
	}
	even := show.Cell{Text: "-"}
	if v.Jain != nil {
		even = worse(fmt.Sprintf("%.3f", *v.Jain), full.Jain != nil && *v.Jain < *full.Jain-0.01)
	}
	return []show.Cell{
		name,
		worse(fmt.Sprintf("%d/%d", v.Finished, v.Calls), v.Finished < full.Finished),
		worse(show.Count(int64(v.Throttled)), v.Throttled > full.Throttled),
		worse(fmt.Sprintf("%.1f%%", v.Utilization*100), v.Utilization < full.Utilization-0.01),
		worse(span(v.Makespan), v.Makespan > 1.01*full.Makespan),
		worse(seconds(v.WaitMean), v.WaitMean > 1.1*full.WaitMean),
		worse(seconds(v.WaitP95), v.WaitP95 > 1.1*full.WaitP95),
		even,
	}
}
