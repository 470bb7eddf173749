package main

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/show"
)

const manyBudgets = 20 // further budgets are not listed to people

// budgets shows what was spent.
func (s *screen) budgets(list []inspect.BudgetStatus) {
	if len(list) == 0 {
		return
	}
	s.line("\n%s", s.Paint(show.Bold, "budgets"))
	t := &show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "budget", Least: 8}, {Head: "of", Least: 6, Drop: 3}, {Head: "", Drop: 1}, {Head: "spent", Right: true}, {Head: "of usd", Right: true},
		{Head: "per", Drop: 4}, {Head: "resets", Right: true}, {Head: "then", Drop: 2},
	}}
	for i := range list[:min(len(list), manyBudgets)] {
		b := &list[i]
		part := b.UsedUSD / b.SizeUSD
		t.Add(
			show.Cell{Text: s.Text(b.Name, nameWidth)}, show.Cell{Text: s.payer(b)}, show.Cell{Text: s.Bar(min(part, 1), barWidth), Colour: show.Fullness(part)},
			show.Cell{Text: usdText(b.UsedUSD)}, show.Cell{Text: sizeText(b.SizeUSD)}, show.Cell{Text: b.Period, Colour: show.Dim},
			show.Cell{Text: show.Left(b.ResetsAt, s.now)}, show.Cell{Text: b.Over, Colour: show.Dim},
		)
	}
	s.table(t)
	for i := range list[:min(len(list), manyBudgets)] {
		if b := &list[i]; b.Slowing {
			s.line("  budget %s%s slows lower classes down until its reset%s", s.Text(b.Name, nameWidth), s.whose(b), s.slowed(b.Waiting))
		}
		if b := &list[i]; b.UnpricedUSD > 0 {
			s.line("  budget %s: %s of it at the default price, for models without a price; set them under prices:", s.Text(b.Name, nameWidth), usdText(b.UnpricedUSD))
		}
	}
	for _, what := range list[0].Uncounted {
		resource, unit, _ := strings.Cut(what, " ")
		s.line("  callers of %s stated usage in %s, which has no price: no budget counts it unless they state usd too", s.Text(resource, nameWidth), unitText(s.Text(unit, nameWidth)))
	}
	if more := len(list) - manyBudgets; more > 0 {
		s.line("  and %d more: sluice status --json lists them all", more)
	}
}

// payer returns whose account of a budget this is. Agents without a user share one.
func (s *screen) payer(b *inspect.BudgetStatus) string {
	if b.Who == "" && b.Per == "user" {
		return "(no user)"
	}
	return s.Text(b.Who, nameWidth)
}

// sizeText returns the size of a budget in cents, or exactly if cents do not show it.
func sizeText(usd float64) string {
	if cents := math.Round(usd * 100); math.Abs(usd*100-cents) > 1e-6 {
		return strconv.FormatFloat(usd, 'f', -1, 64)
	}
	return fmt.Sprintf("%.2f", usd)
}

// whose returns the owner of a budget's account, if each has its own.
func (s *screen) whose(b *inspect.BudgetStatus) string {
	if b.Who == "" {
		return ""
	}
	return " of " + s.Text(b.Who, nameWidth)
}

// slowed describes how many requests wait for a budget, by class.
func (s *screen) slowed(waiting map[string]int) string {
	var list []string
	for _, class := range slices.Sorted(maps.Keys(waiting)) {
		list = append(list, fmt.Sprintf("%d %s", waiting[class], s.Text(class, nameWidth)))
	}
	if len(list) == 0 {
		return ""
	}
	return ": " + strings.Join(list, ", ") + " waiting"
}

// unitText names the unit of stated usage. Units that no limit counts are called other.
func unitText(unit string) string {
	if unit == "other" {
		return "a unit that no limit counts"
	}
	return "the unit " + unit
}
