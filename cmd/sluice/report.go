package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

// reportJSON is what was sent in a period.
type reportJSON struct {
	Since     time.Time            `json:"since"`
	Resources []resourceReportJSON `json:"resources"`
	Against   []comparison         `json:"against,omitempty"` // the comparison of before and after
}

type resourceReportJSON struct {
	Name string `json:"name"`
	// Since is the time from which sends are remembered, if that is later than the requested one.
	Since   time.Time      `json:"since"`
	Total   callerReport   `json:"total"`
	Callers []callerReport `json:"callers"`
	// Minutes has the sends and refusals of each minute that has any. Only a daemon's clients ask for it.
	Minutes map[time.Time]minuteJSON `json:"minutes,omitempty"`

	throttled map[time.Time]int64 // refusals (429) by minute
}

type minuteJSON struct {
	Sends     int64 `json:"sends,omitempty"`
	Throttled int64 `json:"throttled,omitempty"`
}

// callerReport is what one caller sent, and what it cost as far as prices are known.
type callerReport struct {
	inspect.CallerReport
	USD      float64 `json:"usd"`
	RetryUSD float64 `json:"retry_usd"`
	HeldUSD  float64 `json:"held_usd"`
	Took     *spread `json:"took,omitempty"` // from the request for a ticket to the first byte of a good response
	// FirstSend and LastSend are the times of the first and the last send, if the event log has all sends.
	FirstSend time.Time `json:"first_send,omitzero"`
	LastSend  time.Time `json:"last_send,omitzero"`
	// Unstored has the sends of each minute that only the event log knows. Only a daemon's clients ask for it: they read
	// the rest in the store.
	Unstored map[time.Time]int64 `json:"unstored_minutes,omitempty"`
}

func newReport() *cobra.Command {
	from, against, html := lastDay(), "", ""
	cmd := &cobra.Command{
		Use:   "report [RESOURCE]",
		Short: "Show what each caller sent, with retries, refusals and cost",
		Long: `Report shows for each resource and caller what was sent in a period: first sends, retries, refusals
(429), peak and mean rate, waiting time and dollars, in all and for retries alone.

The peak is the most in one second of the clock. The mean covers the minutes from the first to the last
send. --against compares the period with a saved report: sluice report --json > before.json

--html FILE also writes the report as one page with plots, for people without Sluice. The page loads nothing
from elsewhere and contains no keys and no bodies. --html - prints the page instead of the report.`,
		Example:           "  sluice report github --since 7d\n  sluice report --json > before.json\n  sluice report --against before.json\n  sluice report --since 7d --html week.html",
		Args:              atMost(1),
		ValidArgsFunction: completeShown,
		RunE: func(cmd *cobra.Command, args []string) error {
			var before *reportJSON
			if cmd.Flags().Changed("against") {
				var err error
				if before, err = loadReport(against); err != nil {
					return err
				}
			}
			wantsPage := cmd.Flags().Changed("html")
			if wantsPage {
				if err := checkPage(html, asJSON(cmd)); err != nil {
					return err
				}
			}
			now := time.Now()
			rep, err := reading(cmd, args, func(ctx context.Context, s *session) (inspect.Report, error) {
				return readReport(ctx, s, from.moment(now))
			})
			if err != nil {
				return err
			}
			r := asReport(&rep)
			if before != nil {
				r.Against = compare(before, r, args)
			}
			if wantsPage {
				page := pageOf(r, now)
				if html == "-" {
					return written(page.writeTo(cmd.OutOrStdout()))
				}
				if err := pageFile(html).write(page.writeTo); err != nil {
					return err
				}
			}
			return printResult(cmd, r, func(s *screen) { s.report(r) })
		},
	}
	cmd.Flags().Var(&from, "since", "the period: a time before now such as 24h or 7d, or a moment")
	cmd.Flags().StringVar(&against, "against", "", "compare with a `FILE` saved with report --json")
	cmd.Flags().StringVar(&html, "html", "", "also write one self-contained page with plots into `FILE`; - prints the page")
	return cmd
}

// readReport returns what the store remembers, completed from the event log: sends before the store's memory begins,
// and sends that the store was not asked about.
func readReport(ctx context.Context, s *session, from time.Time) (inspect.Report, error) {
	return reportOf(ctx, s, s.gate, from)
}

// reportOf returns what was sent through a gate of a session since a moment. If the store is a daemon's, it adds what the
// daemon's event log knows.
func reportOf(ctx context.Context, s *session, gate *sluice.Gate, from time.Time) (inspect.Report, error) {
	rep, err := gate.Report(ctx, from)
	if err != nil {
		return rep, err
	}
	told, sameLog, err := s.daemonReport(ctx, from)
	if err != nil { // the part that the store has is useful alone
		s.notes.Warn("what only the event log of the daemon knows is missing: " + err.Error())
	}
	for i := range rep.Resources {
		if of, ok := told[rep.Resources[i].Name]; ok {
			of.replace(&rep.Resources[i])
		}
	}
	if !sameLog {
		if err := eventlog.Complete(&rep, s.dir, from, s.ours()...); err != nil { // the store's part is useful alone
			s.warnOfLog(err)
		}
	}
	for i := range rep.Resources {
		r := &rep.Resources[i]
		of := told[r.Name]
		if of != nil && of.Since.Before(r.Since) {
			r.Since = of.Since.UTC()
		}
		if from.IsZero() && r.Since.Before(rep.Since) {
			rep.Since = r.Since
		}
	}
	return rep, nil
}

func (s *session) warnOfLog(err error) {
	s.notes.Warn("the log of events cannot be read: " + err.Error())
}

func asReport(rep *inspect.Report) *reportJSON {
	out := &reportJSON{Since: rep.Since.UTC(), Resources: []resourceReportJSON{}}
	for _, r := range rep.Resources {
		one := resourceReportJSON{Name: r.Name, Since: r.Since.UTC(), Total: withMoney(r.Total), Callers: []callerReport{}, throttled: r.ThrottledMinutes}
		for _, c := range r.Callers {
			one.Callers = append(one.Callers, withMoney(c))
		}
		out.Resources = append(out.Resources, one)
	}
	return out
}

// withMoney adds dollars and times to a caller's report.
func withMoney(c inspect.CallerReport) callerReport {
	r := callerReport{CallerReport: c, USD: float64(c.Micros) / 1e6, RetryUSD: float64(c.RetryMicros) / 1e6, HeldUSD: float64(c.HeldMicros) / 1e6, Took: spreadOf(c.Answers, c.TookS, c.TookSquares)}
	if c.Logged == r.sends() {
		r.FirstSend, r.LastSend = c.First, c.Last
	}
	return r
}

func (c *callerReport) sends() int64 { return c.FirstSends + c.Retries }

// retryShare returns the part of the sends that were retries.
func (c *callerReport) retryShare() float64 {
	if c.sends() <= 0 {
		return 0
	}
	return float64(c.Retries) / float64(c.sends())
}

// usdText formats dollars with cents, or with four decimals below 0.1.
func usdText(usd float64) string {
	if usd < 0.1 {
		return fmt.Sprintf("%.4f", usd)
	}
	return fmt.Sprintf("%.2f", usd)
}

// wereOf begins a sentence about some of the sends.
func wereOf(n int64) string {
	if n == 1 {
		return "1 of them was"
	}
	return fmt.Sprintf("%d of them were", n)
}

const manyCallers = 50 // further callers are not listed to people

// report shows what was sent.
func (s *screen) report(r *reportJSON) {
	s.line("since %s", r.Since.Format(time.RFC3339))
	var idle []string
	for i := range r.Resources {
		one := &r.Resources[i]
		if one.Total.sends() == 0 && one.Total.Throttled == 0 && one.Total.Failed == 0 {
			idle = append(idle, one.Name)
			continue
		}
		s.line("\n%s%s", s.Paint(show.Bold, s.Text(one.Name, nameWidth)), shorter(one.Since, r.Since))
		s.table(s.callers(one))
		s.sentModels(one.Total.Models)
		if n := one.Total.WouldWait; n > 0 {
			s.line("  %d of them would have been held or refused: mode observe sends every request at once", n)
		}
		if n := one.Total.Slowed; n > 0 {
			s.line("  %s slowed by a budget that has to last until its reset: sluice status shows budgets", wereOf(n))
		}
		if n := one.Total.Unpriced; n > 0 {
			s.line("  %s for models without a known price, reckoned at 10 usd per million tokens: prices: in the configuration names others", wereOf(n))
		}
		if more := len(one.Callers) - manyCallers; more > 0 {
			s.line("  and %d more callers: sluice report --json lists them all", more)
		}
	}
	if len(idle) > 0 {
		s.line("\nno request reached: %s", s.Names(idle, ", ", 20, nameWidth))
	}
	if len(r.Resources) == 0 {
		s.line("No resource is configured: sluice config init FILE starts a configuration.")
	}
	s.comparisons(r.Against)
}

// sentModels shows how much was sent for each model, most first, with the names that clients used for it.
func (s *screen) sentModels(models map[string]inspect.ModelReport) {
	var shown []string
	for _, name := range modelsBySends(models) {
		shown = append(shown, s.named(name, models[name].Requested...)+" "+show.Count(models[name].Sends))
	}
	s.listModels(shown, "sluice report --json lists them")
}

// shorter says that less is remembered than was asked for.
func shorter(remembered, asked time.Time) string {
	if !remembered.After(asked.Add(time.Minute)) {
		return ""
	}
	return "  since " + remembered.Format(time.RFC3339) + ", the first that is remembered"
}

func (s *screen) callers(r *resourceReportJSON) *show.Table {
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "caller", Least: 10}, {Head: "sent", Right: true}, {Head: "retries", Right: true}, {Head: "share", Right: true, Drop: 3},
		{Head: "429s", Right: true}, {Head: "failed", Right: true, Drop: 5}, {Head: "peak/s", Right: true, Drop: 1},
		{Head: "peak/min", Right: true, Drop: 4}, {Head: "mean/s", Right: true, Drop: 2}, {Head: "waited", Right: true}, {Head: "usd", Right: true, Drop: 6},
		{Head: "of retries", Right: true, Drop: 7},
	}}
	if r.Total.USD == 0 {
		t.Columns = t.Columns[:len(t.Columns)-1] // no column for dollars if there are none
	}
	add := func(name string, c *callerReport, colour show.Colour) {
		refused := show.Cell{Text: show.Count(c.Throttled)}
		if c.Throttled > 0 {
			refused.Colour = show.Amber
		}
		row := []show.Cell{
			{Text: name, Colour: colour}, {Text: show.Count(c.sends())}, {Text: show.Count(c.Retries)}, {Text: show.Percent(c.retryShare())}, refused,
			{Text: show.Count(c.Failed)}, {Text: show.Count(c.PeakPerS)}, {Text: show.Count(c.PeakPerMin)}, {Text: show.Rate(c.MeanPerS)},
			{Text: show.Span(time.Duration(c.WaitedMS) * time.Millisecond)}, {},
		}
		if c.USD > 0 {
			row[10].Text = usdText(c.USD)
		}
		if r.Total.USD > 0 {
			row = append(row, show.Cell{})
		}
		if c.RetryUSD > 0 {
			row[11] = show.Cell{Text: usdText(c.RetryUSD), Colour: show.Amber}
		}
		t.Add(row...)
	}
	for i := range r.Callers[:min(len(r.Callers), manyCallers)] {
		add(s.Text(r.Callers[i].Name, nameWidth), &r.Callers[i], show.Plain)
	}
	add("all", &r.Total, show.Bold)
	return t
}
