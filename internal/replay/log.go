// Package replay reads logs of API calls and computes what the gate would have done with them. The calls of the log
// are the arrivals of a simulation in virtual time. Its limits are given, or derived from the log's own refusals.
package replay

import (
	"fmt"
	"time"
)

// Formats that [Read] knows.
const (
	Events  = "events"  // the event log of the gate, docs/events.md
	Access  = "access"  // JSON lines with time, caller, model, tokens and status
	LiteLLM = "litellm" // LiteLLM's spend log, as JSON, JSON lines or CSV
)

// Formats lists all formats.
var Formats = []string{Events, Access, LiteLLM}

// Bounds of a log.
const (
	MaxLine  = 4 << 20 // bytes of a line
	MaxSends = 200_000
	// MaxYears is the longest time from the first request of a log to the end of its last.
	MaxYears = 10
	// MaxCallers is the number of callers that are listed separately: those with the most requests. All others count as
	// one.
	MaxCallers = 1_000
	maxText    = 200 // bytes of a name

	longest   = 24 * time.Hour // of a response, and of the wait before it
	maxTokens = 1_000_000_000  // of a request
	maxUSD    = 1_000_000      // of a request
)

// Names of callers that are none in the log.
const (
	NoCaller = "(none)"   // of requests without a caller
	Others   = "(others)" // of callers beyond MaxCallers
)

// Times of a log are between these two. A clock that was never set shows others.
var (
	earliest = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
)

func plausible(t time.Time) bool { return !t.Before(earliest) && t.Before(latest) }

// Send is one request of a log.
type Send struct {
	Line int
	// Start is when the request was sent, and Wanted when its caller wanted it. First is the first byte of the
	// response, and End its end.
	Start, Wanted, First, End time.Time

	Resource, Caller, User, Class string
	Model                         string // name as in limits
	Named                         string // name as in the request

	Input, Output int64 // tokens; 0 if unknown, as for most refusals
	Refused       bool  // with a 429
	Failed        bool  // for a reason other than a 429
	Retry         bool  // the log marks it as a retry
	USD           float64
	Priced        bool

	answered bool // by the provider
}

// Log is the content of a log file.
type Log struct {
	File   string
	Format string
	Lines  int
	// Skipped counts lines that are incomplete or not requests. Cached counts responses from a cache, which never
	// reached the provider.
	Skipped, Cached int
	// Ignored lists the fields with values that a replay cannot use.
	Ignored []Ignored
	Sends   []Send // by Start
	// Resource is the resource of the sends, or empty if the log names none. Others lists the log's other resources.
	Resource string
	Others   []string
}

// Ignored counts the values of a field that are negative, too large or not readable. The replay treats them as missing.
type Ignored struct {
	Field  string `json:"field"`
	Values int    `json:"values"`
	Line   int    `json:"line"` // of the first one; in a JSON array, its entry
}

// Error reports where a log is invalid.
type Error struct {
	File    string
	Line    int // 0: none
	Message string
	Hint    string // empty: none
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return e.File + ": " + e.Message
}
