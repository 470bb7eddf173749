package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/audit"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/policy"
	"github.com/sluicehq/sluice/internal/show"
)

func newDoctor() *cobra.Command {
	from := lastWeek()
	cmd := &cobra.Command{
		Use:   "doctor [RESOURCE]",
		Short: "Compare all callers with the quota, and suggest changes",
		Long: `Doctor adds up what all callers of a resource send, on average and in their busiest minutes, and
compares it with the quota. A limit for longer than a minute is compared with what was sent in a window
of its length. From 80% the verdict is contention: callers get in each other's way. So it is while a limit
is full, and if the provider refused 5% of the sends or more.
It says what one more caller would do, and which settings to change and why.

The exit code is 0 for every verdict; --json has it as a word.`,
		Example:           "  sluice doctor\n  sluice doctor github --since 24h --json",
		Args:              atMost(1),
		ValidArgsFunction: completeShown,
		RunE: func(cmd *cobra.Command, args []string) error {
			since := from.moment(time.Now())
			d, err := reading(cmd, args, func(ctx context.Context, s *session) (inspect.Diagnosis, error) { return readDiagnosis(ctx, s, since) })
			if err != nil {
				return err
			}
			return printResult(cmd, d, func(s *screen) { s.diagnosis(&d) })
		},
	}
	cmd.Flags().Var(&from, "since", "the period that callers are judged by: a time before now such as 24h or 7d, or a moment")
	return cmd
}

// readDiagnosis returns the gate's diagnosis, with the callers that only the event log knows.
func readDiagnosis(ctx context.Context, s *session, from time.Time) (inspect.Diagnosis, error) {
	d, err := s.gate.Diagnose(ctx, from)
	if err != nil {
		return d, err
	}
	rep, err := readReport(ctx, s, from)
	if err != nil {
		return d, err
	}
	lost, err := readOutages(s, from)
	if err != nil {
		s.warnOfLog(err)
	}
	faults, err := readLogFaults(s, from)
	if err != nil {
		s.warnOfLog(err)
	}
	st, err := s.gate.Status(ctx)
	if err != nil {
		return d, err
	}
	s.pastAdvice(&d, from)
	for i := range d.Resources {
		for _, r := range rep.Resources {
			if r.Name == d.Resources[i].Name {
				weigh(&d.Resources[i], r.Callers, &policy.Facts{
					Observed: inside.Of(s.gate).Observes(r.Name), Provider: s.file.ProviderOf(inspect.ResourceOf(r.Name)), Highest: s.classNames()[0],
				})
			}
		}
		if o := lost[d.Resources[i].Name]; o != nil {
			d.Resources[i].Advice = append(d.Resources[i].Advice, o.advice())
		}
		d.Resources[i].Advice = append(d.Resources[i].Advice, faults[d.Resources[i].Name]...)
	}
	for i := range st.Resources {
		r := &st.Resources[i]
		at := slices.IndexFunc(d.Resources, func(x inspect.ResourceDiagnosis) bool { return x.Name == r.Name })
		if at < 0 {
			continue
		}
		x := &d.Resources[at]
		if a, ok := rulesAdvice(r.Log); ok {
			x.Advice = append(x.Advice, a)
		}
		if serves(r) {
			continue
		}
		x.Advice = slices.Insert(x.Advice, 0, inspect.Advice{Setting: troubleNow, Text: "It is " + r.State + ": " + r.Reason + "."})
		if len(x.Callers) == 0 { // no send says anything about the quota
			x.Verdict = policy.VerdictUnknown
		}
	}
	return d, nil
}

// serves reports whether requests to a resource are served now.
func serves(r *inspect.ResourceStatus) bool {
	return r.State != inspect.StateFailing && r.State != inspect.StatePaused && r.State != inspect.StateDegraded && !r.BillingStop
}

// yamlWidth bounds a line of YAML. Those of policy.Advise are shorter.
const yamlWidth = 650

// troubleNow is the setting of advice about a resource that serves nothing at the moment.
const troubleNow = "provider"

func isTroubled(d *inspect.ResourceDiagnosis) bool {
	return slices.ContainsFunc(d.Advice, func(a inspect.Advice) bool { return a.Setting == troubleNow })
}

// weigh compares these callers with the quota, instead of the ones that the store alone knows.
func weigh(d *inspect.ResourceDiagnosis, callers []inspect.CallerReport, facts *policy.Facts) {
	audit.Weigh(d, callers)
	facts.Resource, facts.Callers, facts.Over, facts.Fullest = inspect.ResourceOf(d.Name), len(d.Callers), d.Judged.Window.Microseconds(), d.Fullest
	facts.Sent, facts.Refused, facts.Unanswered, facts.Urgent = d.Sent, d.Refused, d.Unanswered, audit.Urgent(d)
	facts.Audit = policy.Audit{
		QuotaPerMin: d.QuotaPerMin, MeanPerMin: d.MeanPerMin, PeakPerMin: d.PeakPerMin, Ratio: d.Ratio, OneMoreRatio: d.OneMoreRatio, Verdict: d.Verdict,
	}
	for _, a := range policy.Advise(*facts) {
		i := slices.IndexFunc(d.Advice, func(b inspect.Advice) bool { return b.Setting == a.Setting })
		switch {
		case i < 0:
			d.Advice = append(d.Advice, inspect.Advice(a))
		case a.Setting == "agents": // these figures are more complete
			d.Advice[i] = inspect.Advice(a)
		}
	}
}

// diagnosis shows the findings of an audit, verdicts first.
func (s *screen) diagnosis(d *inspect.Diagnosis) {
	if len(d.Resources) == 0 {
		s.line("No resource is configured: sluice config init FILE starts a configuration.")
	}
	quiet, shown := quietOnes(d), false
	for i := range d.Resources {
		r := &d.Resources[i]
		if slices.Contains(quiet, r.Name) {
			continue
		}
		if shown {
			s.line("")
		}
		shown = true
		colour := show.Green
		switch r.Verdict {
		case policy.VerdictContention:
			colour = show.Amber
		case policy.VerdictUnknown:
			colour = show.Plain
		}
		s.line("%s  %s  %s", s.Paint(show.Bold, s.Text(r.Name, nameWidth)), s.Paint(colour, r.Verdict), auditText(r))
		for _, a := range r.Advice {
			s.line("  %s", s.Paint(show.Amber, s.Text(a.Setting, textWidth)))
			for _, line := range s.wrap(s.Text(a.Text, 500), 4) {
				s.line("    %s", line)
			}
			if a.YAML != "" { // in one line, to be copied
				s.line("    %s", s.Text(a.YAML, yamlWidth))
			}
		}
		if len(r.Callers) > 0 {
			s.table(s.audited(r))
		}
		if more := len(r.Callers) - manyCallers; more > 0 {
			s.line("  and %d more callers: sluice doctor --json lists them all", more)
		}
	}
	if len(quiet) > 0 {
		if shown {
			s.line("")
		}
		for _, line := range s.wrap("no sends in this period: "+s.Text(strings.Join(quiet, ", "), 2000), 0) {
			s.line("%s", line)
		}
	}
}

// manyQuiet is the number of resources without sends from which they share one line: serve has all built-in providers.
const manyQuiet = 4

// quietOnes returns the resources that share one line.
func quietOnes(d *inspect.Diagnosis) (names []string) {
	for i := range d.Resources {
		if r := &d.Resources[i]; len(r.Callers) == 0 && r.Fullest == "" && !isTroubled(r) && !slices.ContainsFunc(r.Advice, func(a inspect.Advice) bool { return a.Setting == storeFault }) {
			names = append(names, r.Name)
		}
	}
	if len(names) < manyQuiet {
		return nil
	}
	return names
}

// auditText summarizes the figures in a line.
func auditText(r *inspect.ResourceDiagnosis) string {
	full := ""
	if r.Fullest != "" {
		full = fmt.Sprintf("; %s is at %s", harmless(r.Fullest), show.Percent(r.Ratio))
	}
	if policy.ManyRefused(r.Refused, r.Sent) {
		full += fmt.Sprintf("; %d of %d sends were refused (429)", r.Refused, r.Sent)
	}
	per, _ := policy.Per(r.Judged.Window)
	minutes := max(r.Judged.Window, time.Minute).Minutes()
	switch n := len(r.Callers); {
	case n == 0 && isTroubled(r):
		return "no send was served in this period" + full
	case n == 0:
		return "no sends in this period" + full
	case r.QuotaPerMin == 0:
		return fmt.Sprintf("%s up to %s a minute; the quota is not known%s", callersSend(n), show.Rate(r.PeakPerMin), full)
	default:
		like := "them"
		if n == 1 {
			like = "it"
		}
		return fmt.Sprintf("%s up to %s %s, %s of the quota of %s; one more like "+like+" makes it %s%s",
			callersSend(n), show.Rate(r.PeakPerMin*minutes), per, show.Percent(r.PeakPerMin/r.QuotaPerMin), show.Rate(r.QuotaPerMin*minutes), show.Percent(r.OneMoreRatio), full)
	}
}

func callersSend(n int) string {
	if n == 1 {
		return "1 caller sends"
	}
	return fmt.Sprintf("%d callers send", n)
}

func (s *screen) audited(r *inspect.ResourceDiagnosis) *show.Table {
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "caller", Least: 10}, {Head: "mean/min", Right: true}, {Head: "peak/min", Right: true}, {Head: "of the quota", Right: true},
		{Head: "429s", Right: true}, {Head: "sent", Right: true, Drop: 1},
	}}
	for _, c := range r.Callers[:min(len(r.Callers), manyCallers)] {
		row := []show.Cell{
			{Text: s.Text(c.Name, nameWidth)}, {Text: show.Rate(c.MeanPerS * 60)}, {Text: show.Count(c.PeakPerMin)}, {},
			{Text: show.Count(c.Throttled)}, {Text: show.Count(c.FirstSends + c.Retries)},
		}
		if r.QuotaPerMin > 0 {
			row[3].Text = show.Percent(audit.Peak(&c, &r.Judged) / r.QuotaPerMin)
		}
		if c.Throttled > 0 {
			row[4].Colour = show.Amber
		}
		t.Add(row...)
	}
	return t
}

// wrap breaks a text at spaces to the width of the screen, less an indent.
func (s *screen) wrap(text string, indent int) []string {
	width := 96
	if s.width > 0 {
		width = min(width, s.width)
	}
	return show.Wrap(text, max(width-indent, 20))
}
