package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/show"
)

// screen shows results to people.
type screen struct {
	show.Style
	w     *bufio.Writer
	width int // of the terminal; 0 means unlimited
	now   time.Time
}

// screenFor returns a screen on w, with the colours and width that w supports.
func screenFor(w io.Writer, now time.Time) *screen {
	s := &screen{
		Style: show.Style{Colour: bool(painterFor(w)), ASCII: !show.UTF8(os.Getenv)},
		w:     bufio.NewWriter(w), now: now,
	}
	if f, ok := w.(*os.File); ok && isTerminal(w) {
		if width, _, err := term.GetSize(f.Fd()); err == nil {
			s.width = width
		}
	}
	return s
}

func (s *screen) line(format string, args ...any) { fmt.Fprintf(s.w, format+"\n", args...) }

func (s *screen) table(t *show.Table) {
	for _, line := range t.Lines(s.Style, s.width) {
		s.line("%s", line)
	}
}

// end flushes the output and returns its error.
func (s *screen) end() error { return written(s.w.Flush()) }

// reading opens the gate for reading, reads, and closes it before anything is printed. It says so if that takes long.
func reading(cmd *cobra.Command, resources []string, read func(ctx context.Context, s *session) error) error {
	return patiently(cmd.ErrOrStderr(), "reading the store", func() (err error) {
		s, err := openReadOnly(cmd, resources...)
		if err != nil {
			return err
		}
		defer s.closing(&err)
		return fail(read(cmd.Context(), s))
	})
}

// longAfter is the time after which patiently prints that something takes long.
var longAfter = quiet

// patiently calls do, and prints what if it takes long.
func patiently(w io.Writer, what string, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	begun, terminal := time.Now(), isTerminal(w)
	wait := time.NewTimer(longAfter)
	defer wait.Stop()
	for shown := false; ; {
		select {
		case err := <-done:
			if shown && terminal {
				fmt.Fprint(w, "\r\x1b[K")
			}
			return err
		case <-wait.C:
			switch {
			case terminal:
				fmt.Fprintf(w, "\r\x1b[K%s for %s", what, show.Span(time.Since(begun).Truncate(time.Second)))
				wait.Reset(time.Second)
			default: // once is enough
				fmt.Fprintf(w, "%s takes long\n", what)
			}
			shown = true
		}
	}
}

// asJSON reports whether --json is set.
func asJSON(cmd *cobra.Command) bool {
	yes, _ := cmd.Flags().GetBool("json")
	return yes
}

// classNames returns the classes, highest first.
func (s *session) classNames() []string {
	var names []string
	for _, c := range s.file.Classes {
		names = append(names, c.Name)
	}
	return names
}

// resourceNames returns the sorted names of the open resources.
func (s *session) resourceNames() []string { return slices.Sorted(maps.Keys(s.limits)) }
