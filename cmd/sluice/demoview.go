package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"

	"github.com/sluicehq/sluice/internal/demo"
	"github.com/sluicehq/sluice/internal/show"
)

const (
	demoEvery = 5 * time.Second // between lines, where output cannot be redrawn
	demoBar   = 24              // cells
)

// demoView shows the progress of a demo: growing bars on a terminal, a line now and then elsewhere.
type demoView struct {
	w     io.Writer
	style show.Style
	fd    uintptr
	draws bool // redraws in place
	calls int

	phase int // the phase shown last; -1 if none
	last  time.Duration
	lines int // lines drawn for it
}

func newDemoView(w io.Writer, script *demo.Script) *demoView {
	v := &demoView{w: w, style: styleOf(w), calls: script.Calls(), phase: -1}
	if f, ok := w.(*os.File); ok && isTerminal(w) && os.Getenv("TERM") != "dumb" {
		v.fd = f.Fd()
		_, height, err := term.GetSize(v.fd)
		v.draws = err == nil && (height == 0 || height > len(script.Agents)+3) // some terminals do not report their height
	}
	fmt.Fprintf(w, "One key with a limit of %s, %d agents, %d calls. At best that takes %s.\n",
		script.Limits(), len(script.Agents), v.calls, show.Span(script.Ideal()))
	return v
}

// show shows the progress.
func (v *demoView) show(at demo.View) {
	if at.Phase != v.phase {
		v.phase, v.lines, v.last = at.Phase, 0, 0
		fmt.Fprintf(v.w, "\n%s\n", v.style.Paint(show.Bold, fmt.Sprintf("%d of %d: %s", at.Phase+1, len(demo.Titles), demo.Titles[at.Phase])))
	}
	switch {
	case v.draws:
		if at.Elapsed-v.last >= redraw || v.lines == 0 || v.over(at) {
			v.last = at.Elapsed
			v.draw(at)
		}
	case at.Elapsed-v.last >= demoEvery || v.over(at):
		v.last = at.Elapsed
		fmt.Fprintln(v.w, "  "+v.sum(at))
	}
}

func (v *demoView) over(at demo.View) bool {
	return !slices.ContainsFunc(at.Agents, func(a demo.Progress) bool { return !a.Ended })
}

// sum returns a line with the totals of all agents.
func (v *demoView) sum(at demo.View) string {
	done, refused, waiting := 0, 0, 0
	for _, a := range at.Agents {
		done, refused, waiting = done+a.Done, refused+a.Throttled, waiting+a.Waiting
	}
	return fmt.Sprintf("%s: %d of %d calls done, %d waiting, %d answers with 429", show.Span(at.Elapsed), done, v.calls, waiting, refused)
}

// draw redraws the agents in place, with one write so that it does not flicker.
func (v *demoView) draw(at demo.View) {
	width := 80
	if w, _, err := term.GetSize(v.fd); err == nil && w > 0 {
		width = w
	}
	t := show.Table{Indent: "  ", Columns: []show.Column{
		{Head: "agent"}, {Head: "class", Drop: 2}, {Head: "", Drop: 1}, {Head: "done", Right: true}, {Head: "429s", Right: true}, {Head: "waiting", Right: true},
	}}
	for _, a := range at.Agents {
		part, colour := float64(a.Done)/float64(max(a.Calls, 1)), show.Plain
		if a.Throttled > 0 {
			colour = show.Amber
		}
		t.Add(show.Cell{Text: a.Name}, show.Cell{Text: a.Class}, show.Cell{Text: v.style.Bar(part, demoBar), Colour: show.Green},
			show.Cell{Text: fmt.Sprintf("%d/%d", a.Done, a.Calls)}, show.Cell{Text: fmt.Sprint(a.Throttled), Colour: colour}, show.Cell{Text: fmt.Sprint(a.Waiting)})
	}
	lines := append(t.Lines(v.style, width), "  "+ansi.Truncate(v.sum(at), max(width-3, 1), "")) // a wrapped line could not be redrawn
	var b bytes.Buffer
	if v.lines > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", v.lines)
	}
	for _, line := range lines {
		fmt.Fprintf(&b, "\r\x1b[K%s\n", line)
	}
	v.lines = len(lines)
	_, _ = v.w.Write(b.Bytes()) // errors on a terminal have no receiver
}

// end leaves the cursor below the drawing.
func (v *demoView) end() { fmt.Fprintln(v.w) }
