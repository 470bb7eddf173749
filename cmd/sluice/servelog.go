package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/internal/logging"
)

// logFlags holds the flags of serve for its log.
type logFlags struct {
	format, level     string
	requests, verbose bool
	out               io.Writer
}

func (f *logFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.format, "log", "text", "`FORMAT` of the log on stderr: "+strings.Join(logging.Formats, " or "))
	cmd.Flags().StringVar(&f.level, "log-level", "info", "lowest `LEVEL` to log: "+strings.Join(logging.Levels, ", "))
	cmd.Flags().BoolVar(&f.requests, "log-requests", false, "log one line per request, never a key or a body")
	cmd.Flags().BoolVar(&f.verbose, "verbose", false, "log every refusal: the same as --log-level debug")
	for name, values := range map[string][]string{"log": logging.Formats, "log-level": logging.Levels} {
		completeFlag(cmd, name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp))
	}
}

// open creates the log, and makes the rest of the command use it.
func (f *logFlags) open(cmd *cobra.Command) (*slog.Logger, error) {
	level := f.level
	if f.verbose {
		level = "debug"
	}
	f.out = logging.Shared(cmd.ErrOrStderr())
	log, err := logging.New(f.out, f.format, level)
	if err != nil {
		hint := didYouMean(f.format, logging.Formats, "--log is "+strings.Join(logging.Formats, " or "))
		if strings.Contains(err.Error(), "level") {
			hint = didYouMean(f.level, logging.Levels, "--log-level is one of "+strings.Join(logging.Levels, ", "))
		}
		return nil, &failure{code: exitUsage, message: fmt.Sprintf("serve: %v", err), hint: hint}
	}
	cmd.SetContext(context.WithValue(cmd.Context(), notesKey{}, log))
	return log, nil
}

// requestLines is how many request lines may wait to be written. Further lines are dropped, because a log that is not
// read must not hold requests.
const requestLines = 4096

// forRequests returns the logger for request lines, at any level; nil if they are not wanted. end closes it.
func (f *logFlags) forRequests(log *slog.Logger) (lines *slog.Logger, end func()) {
	if !f.requests {
		return nil, func() {}
	}
	out := logging.NewAsync(f.out, requestLines)
	lines, _ = logging.New(out, f.format, "info") // the format was checked before
	return lines, func() {
		out.Close()
		if lost := out.Lost(); lost > 0 {
			log.Warn("some requests are not in the log: they came faster than it could be written", "lines", lost)
		}
	}
}

type notesKey struct{}

// notesOf returns the logger for messages to people: lines on stderr, or the log of serve.
func notesOf(cmd *cobra.Command) *slog.Logger {
	if log, ok := cmd.Context().Value(notesKey{}).(*slog.Logger); ok {
		return log
	}
	return logging.Plain(cmd.ErrOrStderr())
}
