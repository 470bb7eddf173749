package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"
	"unicode"

	"github.com/sluicehq/sluice/config"
)

// Exit codes, after sysexits. They are part of the command line's contract.
const (
	exitOK          = 0
	exitUsage       = 64 // usage, unknown resource, ticket or scenario
	exitUnavailable = 69 // store unreachable or damaged
	exitInternal    = 70
	exitNotYet      = 75 // not within the requested wait
	exitRefused     = 77 // budget, class, cost above capacity
	exitConfig      = 78 // bad configuration or scenario file
)

// failure is an error with the exit code of the program.
type failure struct {
	code    int
	message string
	detail  string // further lines, such as an excerpt of a file; may be empty
	hint    string // what to do about it; may be empty

	limit   string    // the limit that holds the request, if any
	retryAt time.Time // when a retry may help; zero if unknown

	heldBy    []string  // agents of unanswered tickets that hold the limit
	heldUntil time.Time // when the last of these tickets ends; zero if there are none
	chain     []string  // agents that wait for each other, up to the limited one

	parse config.Errors  // all mistakes in a file, if that is the failure
	extra map[string]any // printed beside error in the JSON
}

func (f *failure) Error() string { return f.message }

// Hint returns what to do about the failure.
func (f *failure) Hint() string { return f.hint }

// usage returns the hint for a command line that was not understood.
func usage(command string) string { return "run " + command + " --help to see how to use it" }

// asFailure gives every error an exit code. An error without one comes from parsing the command line.
func asFailure(err error) *failure {
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	return &failure{code: exitUsage, message: err.Error(), hint: usage("sluice")}
}

// report prints f for people on stderr and, if asked for, for programs on stdout.
func (f *failure) report(stdout, stderr io.Writer, asJSON bool) {
	fmt.Fprintf(stderr, "error: %s\n", harmless(f.message))
	if f.detail != "" {
		fmt.Fprintln(stderr, harmless(f.detail))
	}
	if f.hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", harmless(f.hint))
	}
	if asJSON {
		// If the output is not read, the exit code still tells.
		out := map[string]any{"error": f.json()}
		maps.Copy(out, f.extra)
		_ = printJSON(stdout, out)
	}
}

func (f *failure) json() errorJSON {
	e := errorJSON{Code: f.code, Message: f.message, Hint: f.hint, Chain: append([]string{}, f.chain...)}
	if f.limit != "" {
		e.Limit = &f.limit
	}
	if !f.retryAt.IsZero() {
		e.RetryAt = new(f.retryAt.UTC())
	}
	if !f.heldUntil.IsZero() {
		e.HeldBy, e.HeldUntil = f.heldBy, new(f.heldUntil.UTC())
	}
	return e
}

// harmless returns text that may quote a file, without characters that would control a terminal.
func harmless(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) { // Cf reverses the direction of text
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// written returns the failure for a result that could not be printed. That is not a usage error.
func written(err error) error {
	if err == nil {
		return nil
	}
	return &failure{code: exitInternal, message: "the result could not be written: " + err.Error()}
}

// errorJSON is the shape of every error printed with --json.
type errorJSON struct {
	Code    int        `json:"code"` // the exit code
	Message string     `json:"message"`
	Hint    string     `json:"hint"`
	Limit   *string    `json:"limit"`
	RetryAt *time.Time `json:"retry_at"`
	Chain   []string   `json:"chain"`
	// The agents of unanswered tickets that hold the limit, and when the last of these ends. Left out if there are none.
	HeldBy    []string   `json:"held_by,omitempty"`
	HeldUntil *time.Time `json:"held_until,omitempty"`
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}
