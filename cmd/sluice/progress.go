package main

import (
	"fmt"
	"io"
	"time"
)

// progress tells how far a long run is. Short ones pass without a word.
type progress struct {
	w        io.Writer
	what     string
	began    time.Time
	terminal bool
	shown    bool
}

const quiet = 2 * time.Second

func newProgress(w io.Writer, what string) *progress {
	return &progress{w: w, what: what, began: time.Now(), terminal: isTerminal(w)}
}

func (p *progress) step(strategy string, done, total int) {
	if time.Since(p.began) < quiet {
		return
	}
	switch {
	case p.terminal:
		fmt.Fprintf(p.w, "\r\x1b[K%s: %d of %d runs done, now %s", p.what, done, total, strategy)
	case !p.shown:
		fmt.Fprintf(p.w, "%s: %d of %d runs done\n", p.what, done, total)
	}
	p.shown = true
}

// end wipes the line.
func (p *progress) end() {
	if p.shown && p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
