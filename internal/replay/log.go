// Package replay reads logs of API calls and finds out what the gate would have made of them: the calls of the log are
// the arrivals of a simulation, in virtual time, against limits that are given or taken from the log's own refusals.
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

// Formats lists them all.
var Formats = []string{Events, Access, LiteLLM}

// Bounds of a log.
const (
	MaxLine  = 4 << 20 // bytes of a line
	MaxSends = 200_000
	// MaxCallers are told apart, those with the most requests. The others are one.
	MaxCallers = 1_000
	others     = "(others)"
	maxText    = 200 // bytes of a name
)

// Send is one request of a log.
type Send struct {
	Line int
	// Start is when it was sent, Wanted when its caller wanted it, First the first byte of the answer and End its end.
	Start, Wanted, First, End time.Time

	Resource, Caller, User, Class string
	Model                         string // as limits have it
	Named                         string // as its caller wrote it

	Input, Output int64 // tokens; of a refusal they are often not known, and 0
	Refused       bool  // with 429
	Failed        bool  // for another reason
	Retry         bool  // the log says so
	USD           float64
	Priced        bool
}

// Log is what a file says.
type Log struct {
	File   string
	Format string
	Lines  int
	// Skipped counts lines that are no request, or torn. Cached are answers that came from a cache and never reached the
	// provider.
	Skipped, Cached int
	Sends           []Send // by Start
	// Resource is whose sends these are; empty where the log names none. Others are further resources of the log.
	Resource string
	Others   []string
}

// Error says where a log is wrong.
type Error struct {
	File    string
	Line    int // 0: none
	Message string
}

func (e *Error) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
	}
	return e.File + ": " + e.Message
}
