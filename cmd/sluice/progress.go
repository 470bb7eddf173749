package main

import (
	"context"
	"fmt"
	"io"
	"sync"
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

// showLine shows a line if a wait takes longer than after: on a terminal it is updated every second, elsewhere it is
// printed once. stop clears it.
func showLine(ctx context.Context, w io.Writer, after time.Duration, line func(ctx context.Context) string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		terminal, timer := isTerminal(w), time.NewTimer(after)
		defer timer.Stop()
		for shown := false; ; {
			select {
			case <-ctx.Done():
				if shown && terminal {
					fmt.Fprint(w, "\r\x1b[K")
				}
				return
			case <-timer.C:
			}
			switch text := harmless(line(ctx)); {
			case ctx.Err() != nil: // the wait is over
			case terminal:
				fmt.Fprintf(w, "\r\x1b[K%s", clip(text))
				shown = true
				timer.Reset(time.Second)
			default:
				fmt.Fprintln(w, text)
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// end clears the line.
func (p *progress) end() {
	if p.shown && p.terminal {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
