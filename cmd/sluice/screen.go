package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/show"
)

// screen shows results to people.
type screen struct {
	show.Style
	w     *bufio.Writer
	width int // of the terminal; 0 means unlimited
	now   time.Time

	turnedAway map[string]int // requests that the gate refused in the last hour, by resource
}

// screenFor returns a screen on w, with the colours and width that w supports.
func screenFor(w io.Writer, now time.Time) *screen {
	s := &screen{Style: styleOf(w), w: bufio.NewWriter(w), now: now}
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

// printResult prints v as JSON if --json is set, and otherwise shows it to people.
func printResult(cmd *cobra.Command, v any, show func(s *screen)) error {
	if asJSON(cmd) {
		return written(printJSON(cmd.OutOrStdout(), v))
	}
	s := screenFor(cmd.OutOrStdout(), time.Now())
	show(s)
	return s.end()
}

// printLine prints v as JSON if --json is set, and otherwise a line of text.
func printLine(cmd *cobra.Command, v any, format string, args ...any) error {
	if asJSON(cmd) {
		return written(printJSON(cmd.OutOrStdout(), v))
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), format+"\n", args...)
	return written(err)
}

// reading opens the gate for reading, reads, and closes it before anything is printed. It says so if that takes long.
func reading[T any](cmd *cobra.Command, resources []string, read func(ctx context.Context, s *session) (T, error)) (got T, err error) {
	err = patiently(cmd.ErrOrStderr(), "reading the store", func() (err error) {
		s, err := openToLook(cmd, resources...)
		if err != nil {
			return err
		}
		defer s.closing(&err)
		got, err = read(cmd.Context(), s)
		return fail(err)
	})
	return got, err
}

// longAfter is the time after which patiently prints that something takes long.
var longAfter = quiet

// patiently calls do, and prints what if it takes long.
func patiently(w io.Writer, what string, do func() error) error {
	begun, terminal := time.Now(), isTerminal(w)
	defer showLine(context.Background(), w, longAfter, func(context.Context) string {
		if terminal {
			return what + " for " + show.Span(time.Since(begun).Truncate(time.Second))
		}
		return what + " takes long"
	})()
	return do()
}

// asJSON reports whether --json is set.
func asJSON(cmd *cobra.Command) bool {
	yes, _ := cmd.Flags().GetBool("json")
	return yes
}

// classNames returns the classes, highest first.
func (s *session) classNames() []string { return classesOf(s.file) }

// classesOf returns the classes of a configuration, highest first.
func classesOf(f *config.File) (names []string) {
	for _, c := range f.Classes {
		names = append(names, c.Name)
	}
	return names
}

// checkClass refuses a class that is not in the configuration.
func checkClass(f *config.File, class string) error {
	if known := classesOf(f); !slices.Contains(known, class) {
		return &failure{
			code: exitUsage, message: fmt.Sprintf("--class: unknown class %.80q", class), hint: didYouMean(class, known, "classes are "+strings.Join(known, ", ")),
		}
	}
	return nil
}

// resourceNames returns the sorted names of the open resources.
func (s *session) resourceNames() []string { return slices.Sorted(maps.Keys(s.limits)) }
