package main

import (
	"fmt"
	"io"
	"time"

	"github.com/sluicehq/sluice/internal/demo"
	"github.com/sluicehq/sluice/internal/show"
)

// printDemo shows both phases side by side, what they mean, and what to do next.
func printDemo(w io.Writer, r *demo.Report, told bool) error {
	s := screenFor(w, time.Now())
	t := &show.Table{Indent: "  ", Columns: []show.Column{{}, {Head: "on their own", Right: true}, {Head: "through the gate", Right: true}}}
	row := func(what string, cell func(p *demo.Phase) show.Cell) {
		t.Add(show.Cell{Text: what}, cell(&r.Before), cell(&r.After))
	}
	row("calls made", func(p *demo.Phase) show.Cell {
		return show.Cell{Text: fmt.Sprintf("%d/%d", p.Done, r.Calls), Colour: redIf(p.Done < r.Calls)}
	})
	row("requests that reached the provider", func(p *demo.Phase) show.Cell { return show.Cell{Text: fmt.Sprint(p.Sent)} })
	row("refused with 429", func(p *demo.Phase) show.Cell {
		c := show.Cell{Text: fmt.Sprint(p.Throttled), Colour: show.Green}
		if p.Throttled > 0 {
			c.Colour = show.Amber
		}
		return c
	})
	row("retries, of all requests", func(p *demo.Phase) show.Cell { return show.Cell{Text: show.Percent(p.RetryShare)} })
	row("peak rate, in any second", func(p *demo.Phase) show.Cell { return show.Cell{Text: fmt.Sprintf("%d/s", p.PeakRate)} })
	row("wasted on retries, at list price", func(p *demo.Phase) show.Cell { return show.Cell{Text: fmt.Sprintf("$%.2f", p.WastedUSD)} })
	row("wall clock", func(p *demo.Phase) show.Cell {
		return show.Cell{Text: fmt.Sprintf("%.1fs", p.WallS), Colour: redIf(!p.Finished)}
	})
	row(fmt.Sprintf("against the ideal of %.1fs", r.IdealS), func(p *demo.Phase) show.Cell { return show.Cell{Text: fmt.Sprintf("x %.2f", p.OfIdeal)} })
	for i, c := range r.Before.Classes {
		row("longest wait in "+c.Name, func(p *demo.Phase) show.Cell {
			return show.Cell{Text: fmt.Sprintf("%.1fs", p.Classes[i].LongestS)}
		})
	}
	row("worst class", func(p *demo.Phase) show.Cell {
		return show.Cell{Text: fmt.Sprintf("%s %.1fs", p.WorstClass, p.WorstWaitS)}
	})
	s.table(t)
	s.line("")
	if r.OK {
		s.line("%s", s.Paint(show.Green, fmt.Sprintf("The same work in %.1fs instead of %.1fs, and the provider refused no request.", r.After.WallS, r.Before.WallS)))
		if !told {
			s.line("The gate was told no numbers: it learned the limit from answers.")
		}
	} else {
		s.line("%s", s.Paint(show.Red, "This run did not come out as it should:"))
		for _, why := range r.Why {
			s.line("  %s", why)
		}
	}
	s.line("\nWhat to do next")
	for _, next := range [...][2]string{
		{"sluice run -- claude", "any command behind the gate, as it is"},
		{"sluice serve", "then ANTHROPIC_BASE_URL=http://127.0.0.1:7979/anthropic"},
		{"sluice top", "who waits, and for what; sluice report tells what was sent"},
	} {
		s.line("  %s  %s", s.Paint(show.Bold, fmt.Sprintf("%-20s", next[0])), next[1])
	}
	return s.end()
}

func redIf(yes bool) show.Colour {
	if yes {
		return show.Red
	}
	return show.Plain
}
