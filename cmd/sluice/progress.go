package main

import (
	"fmt"
	"io"
	"time"

	"github.com/sluicehq/sluice/sim"
)

// progress shows how far a long run is. For short runs it prints nothing.
type progress struct {
	w        io.Writer
	what     string
	began    time.Time
	terminal bool
	shown    bool
	last     time.Time
}

const (
	quiet  = 2 * time.Second
	redraw = 100 * time.Millisecond // faster updates cannot be read
)

func newProgress(w io.Writer, what string) *progress {
	return &progress{w: w, what: what, began: time.Now(), terminal: isTerminal(w)}
}

func (p *progress) step(at sim.Progress) {
	now := time.Now()
	if now.Sub(p.began) < quiet || now.Sub(p.last) < redraw {
		return
	}
	p.last = now
	switch {
	case p.terminal:
		fmt.Fprintf(p.w, "\r\x1b[K%s: %d of %d runs done, now %s, %.0f%% of its calls", p.what, at.Done, at.Runs, at.Strategy, at.Part*100)
	case !p.shown:
		fmt.Fprintf(p.w, "%s: %d of %d runs done\n", p.what, at.Done, at.Runs)
	}
	p.shown = true
}

// end clears the line.
func (p *progress) end() {
	if p.shown && p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
