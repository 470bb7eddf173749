// Package deadletter keeps what was given up: a command or a request that was tried as often as it may
// be, with everything needed to look at it and to run it again.
//
// A list is a directory with one file for each entry, which only its owner can read: command
// lines can hold secrets, and bodies of requests are private. Values of environment variables, what a command
// reads and the keys of requests are never in it. With a key ([List.SetKey]) entries are encrypted. Any number of
// processes can use a list at the same time.
package deadletter

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"
	"unicode/utf8"
)

// The bounds of a list. When one is reached, the oldest entries of the same kind go.
const (
	MaxEntries = 1000     // commands, and as many requests
	MaxBytes   = 16 << 20 // of all commands
	MaxEntry   = 4 << 20  // of one command; longer command lines are not kept
	MaxWaits   = 64       // of one entry; the latest are kept

	MaxRequestBytes = 64 << 20 // of all requests
	MaxRequest      = 16 << 20 // of one request
	MaxBody         = 8 << 20  // of a request's body that can be kept
)

// Kind is what was given up.
type Kind string

// The kinds.
const (
	Command Kind = "command"
	HTTP    Kind = "request"
)

// bounds are how many entries of a kind are kept, and how many bytes.
func (k Kind) bounds() (entries int, all, one int64) {
	if k == HTTP {
		return MaxEntries, MaxRequestBytes, MaxRequest
	}
	return MaxEntries, MaxBytes, MaxEntry
}

// Intercept says how calls of a command pass the gate that cannot be pointed to it.
type Intercept struct {
	OnlyGated bool     `json:"only_gated,omitempty"`
	Tunnel    []string `json:"tunnel,omitempty"` // hosts that are left out
}

// Entry is something that was given up.
type Entry struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"` // when it was given up, the last time

	// Who ran it, and what it was to be charged to. What is empty was not stated: the
	// configuration decides.
	Resource  string           `json:"resource"`
	Agent     string           `json:"agent"`
	Class     string           `json:"class"`
	User      string           `json:"user"`
	Model     string           `json:"model"`
	Tool      string           `json:"tool"`
	Key       string           `json:"key,omitempty"` // label of its API key, never the key
	Cost      map[string]int64 `json:"cost,omitempty"`
	Emergency bool             `json:"emergency,omitempty"`

	// Request is what was given up, nil if it was a command.
	Request *Request `json:"request,omitempty"`

	// How a command is run again.
	Argv     []Text   `json:"argv,omitempty"`
	Dir      Text     `json:"dir,omitempty"`    // working directory
	Config   Text     `json:"config,omitempty"` // configuration file
	Store    Text     `json:"store,omitempty"`  // URL; only of those that can hold no password
	Wait     Millis   `json:"wait_ms"`
	TTL      Millis   `json:"ttl_ms,omitempty"`
	Most     int      `json:"max_attempts"` // in one go
	Deadline Millis   `json:"deadline_ms"`  // of one go
	WaitsFor []string `json:"waits_for,omitempty"`
	NewWork  bool     `json:"new_work,omitempty"`
	// Intercept is how calls of the command were intercepted, nil if they were not.
	Intercept *Intercept `json:"intercept,omitempty"`

	// What became of it.
	Attempts int       `json:"attempts"` // starts so far, also of those that ran it again
	Rounds   int       `json:"rounds"`   // how often it was given up
	First    time.Time `json:"first"`    // start
	Last     time.Time `json:"last"`     // start
	Reason   string    `json:"reason"`
	ExitCode int       `json:"exit_code"` // of the last attempt
	Waits    []Wait    `json:"waits"`     // between attempts

	// Damaged says why the entry cannot be read; then it has an ID and little else.
	Damaged string `json:"damaged,omitempty"`
}

// Wait is how long an attempt was held back, and why.
type Wait struct {
	Attempt int    `json:"attempt"` // counted from 1, of that round
	Waited  Millis `json:"waited_ms"`
	Why     string `json:"why"`
}

// Millis is a duration. In JSON it is a number of milliseconds, rounded up so that a short wait
// does not become none.
type Millis time.Duration

// MarshalJSON writes milliseconds.
func (m Millis) MarshalJSON() ([]byte, error) {
	ms := int64(m) / int64(time.Millisecond)
	if int64(m) > ms*int64(time.Millisecond) {
		ms++
	}
	return strconv.AppendInt(nil, ms, 10), nil
}

// UnmarshalJSON reads milliseconds.
func (m *Millis) UnmarshalJSON(data []byte) error {
	var ms int64
	if err := json.Unmarshal(data, &ms); err != nil {
		return err
	}
	const most = math.MaxInt64 / int64(time.Millisecond)
	if ms < -most || ms > most {
		return fmt.Errorf("%d ms is out of range", ms)
	}
	*m = Millis(ms * int64(time.Millisecond))
	return nil
}

// Kind is what was given up.
func (e *Entry) Kind() Kind {
	if e.Request != nil {
		return HTTP
	}
	return Command
}

// Program is the name of the command, without its arguments.
func (e *Entry) Program() string {
	if len(e.Argv) == 0 {
		return ""
	}
	return string(e.Argv[0])
}

// Args is the whole command line.
func (e *Entry) Args() []string {
	args := make([]string, len(e.Argv))
	for i, a := range e.Argv {
		args[i] = string(a)
	}
	return args
}

// Texts turns strings into what an entry holds.
func Texts(list []string) []Text {
	texts := make([]Text, len(list))
	for i, s := range list {
		texts[i] = Text(s)
	}
	return texts
}

// Text is a string of any bytes, as arguments and file names are. In JSON it is a string, or
// {"base64": "..."} if a string could not hold it.
type Text string

type binary struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON writes t so that every byte of it comes back.
func (t Text) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(t)) {
		return json.Marshal(string(t))
	}
	return json.Marshal(binary{[]byte(t)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (t *Text) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var b binary
		if err := json.Unmarshal(data, &b); err != nil {
			return err
		}
		*t = Text(b.Base64)
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	*t = Text(s)
	return nil
}

// empty reports an entry that nothing could be done with.
func (e *Entry) empty() bool {
	if e.Request != nil {
		return e.Request.Method == ""
	}
	return len(e.Argv) == 0 || e.Argv[0] == ""
}

// encode writes an entry as a file's content.
func (l *List) encode(e *Entry) ([]byte, error) {
	if e.empty() {
		return nil, errors.New("dead letter: an entry needs a command or a request")
	}
	if n := len(e.Waits); n > MaxWaits {
		e.Waits = e.Waits[n-MaxWaits:]
	}
	if r := e.Request; r != nil && len(r.Answers) > MaxAnswers {
		r.Answers = r.Answers[len(r.Answers)-MaxAnswers:]
	}
	data, err := json.MarshalIndent(e, "", "  ")
	if err != nil {
		return nil, err
	}
	data, err = l.closed(e.ID, append(data, '\n'))
	if err != nil {
		return nil, err
	}
	if _, _, most := e.Kind().bounds(); int64(len(data)) > most+1 {
		return nil, fmt.Errorf("%w: %d bytes, at most %d are kept", ErrTooLarge, len(data), most)
	}
	return data, nil
}

// decode reads a file's content. What makes no sense is an entry that says so.
func (l *List) decode(at stored, data []byte) Entry {
	data, why := l.opened(at.id, data)
	if why != "" {
		return damaged(at.id, why)
	}
	var e Entry
	if err := json.Unmarshal(data, &e); err != nil {
		return damaged(at.id, "not an entry: "+err.Error())
	}
	switch {
	case e.ID != at.id:
		return damaged(at.id, "it is another entry's content")
	case e.Kind() != at.kind:
		return damaged(at.id, "it is not a "+string(at.kind))
	case e.empty():
		return damaged(at.id, "it has no "+string(at.kind))
	}
	e.Damaged = ""
	return e
}

func damaged(id, why string) Entry {
	return Entry{ID: id, Time: timeOf(id), Damaged: why}
}
