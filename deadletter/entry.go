// Package deadletter keeps commands and requests that were given up after the last retry, with everything needed to
// examine them and run them again.
//
// A list is a directory with one file per entry. Only its owner can read it: command lines can hold secrets, and
// request bodies are private. Values of environment variables, a command's input and API keys of requests are never
// stored. With a key ([List.SetKey]) entries are encrypted. Any number of processes can use a list at the same time.
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

// The bounds of a list. When one is exceeded, the oldest entries of the same kind are dropped.
const (
	MaxEntries = 1000     // of each kind
	MaxBytes   = 16 << 20 // of all commands together
	MaxEntry   = 4 << 20  // of one command; longer command lines are not kept
	MaxWaits   = 64       // in one entry; the latest are kept

	MaxRequestBytes = 64 << 20 // of all requests together
	MaxRequest      = 16 << 20 // of one request
	MaxBody         = 8 << 20  // of a request's body; longer bodies are not kept
)

// Kind is the kind of an entry.
type Kind string

// The kinds.
const (
	Command Kind = "command"
	HTTP    Kind = "request"
)

// bounds returns how many entries of a kind are kept, how many bytes in all, and how many bytes one entry may have.
func (k Kind) bounds() (entries int, all, one int64) {
	if k == HTTP {
		return MaxEntries, MaxRequestBytes, MaxRequest
	}
	return MaxEntries, MaxBytes, MaxEntry
}

// Intercept says how to gate those calls of a command that cannot be pointed at Sluice's address.
type Intercept struct {
	OnlyGated bool     `json:"only_gated,omitempty"`
	Tunnel    []string `json:"tunnel,omitempty"` // hosts that are not intercepted
}

// Entry is a command or request that was given up.
type Entry struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"` // when it was last given up

	// Who ran it, and what to charge. Empty fields were not stated: the configuration decides.
	Resource  string           `json:"resource"`
	Agent     string           `json:"agent"`
	Class     string           `json:"class"`
	User      string           `json:"user"`
	Model     string           `json:"model"`
	Tool      string           `json:"tool"`
	Key       string           `json:"key,omitempty"` // label of its API key, never the key
	Cost      map[string]int64 `json:"cost,omitempty"`
	Emergency bool             `json:"emergency,omitempty"`

	// Request is the request that was given up; nil for a command.
	Request *Request `json:"request,omitempty"`

	// How to run a command again.
	Argv     []Text   `json:"argv,omitempty"`
	Dir      Text     `json:"dir,omitempty"`    // working directory
	Config   Text     `json:"config,omitempty"` // configuration file
	Store    Text     `json:"store,omitempty"`  // URL; only of stores that cannot hold a password
	Wait     Millis   `json:"wait_ms"`
	TTL      Millis   `json:"ttl_ms,omitempty"`
	Most     int      `json:"max_attempts"` // in one round
	Deadline Millis   `json:"deadline_ms"`  // of one round
	WaitsFor []string `json:"waits_for,omitempty"`
	NewWork  bool     `json:"new_work,omitempty"`
	// Intercept is how all calls of the command were intercepted; nil if that was not asked for. NoIntercept says that none
	// were to be.
	Intercept   *Intercept `json:"intercept,omitempty"`
	NoIntercept bool       `json:"no_intercept,omitempty"`

	// What happened.
	Attempts int       `json:"attempts"` // starts so far, in all rounds
	Rounds   int       `json:"rounds"`   // how often it was given up
	First    time.Time `json:"first"`    // first start
	Last     time.Time `json:"last"`     // last start
	Reason   string    `json:"reason"`
	ExitCode int       `json:"exit_code"` // of the last attempt
	Waits    []Wait    `json:"waits"`     // between attempts

	// Damaged says why the entry cannot be read. Such an entry has an ID, a Time and nothing else.
	Damaged string `json:"damaged,omitempty"`
}

// Wait is how long an attempt had to wait, and why.
type Wait struct {
	Attempt int    `json:"attempt"` // from 1, in its round
	Waited  Millis `json:"waited_ms"`
	Why     string `json:"why"`
}

// Millis is a duration. Its JSON form is a number of milliseconds, rounded up so that a short wait does not become 0.
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

// Kind returns the kind of the entry.
func (e *Entry) Kind() Kind {
	if e.Request != nil {
		return HTTP
	}
	return Command
}

// Program returns the name of the command, without its arguments.
func (e *Entry) Program() string {
	if len(e.Argv) == 0 {
		return ""
	}
	return string(e.Argv[0])
}

// Args returns the whole command line.
func (e *Entry) Args() []string {
	args := make([]string, len(e.Argv))
	for i, a := range e.Argv {
		args[i] = string(a)
	}
	return args
}

// Texts converts strings to Text.
func Texts(list []string) []Text {
	texts := make([]Text, len(list))
	for i, s := range list {
		texts[i] = Text(s)
	}
	return texts
}

// Text is a string of arbitrary bytes, such as an argument or a file name. Its JSON form is a string, or {"base64":
// "..."} if the bytes are not valid UTF-8.
type Text string

type binary struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON encodes t without losing any byte.
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

// empty reports whether an entry has neither a command nor a request.
func (e *Entry) empty() bool {
	if e.Request != nil {
		return e.Request.Method == ""
	}
	return len(e.Argv) == 0 || e.Argv[0] == ""
}

// encode returns the file content of an entry.
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

// decode reads the content of a file. If it is not valid, the returned entry says so in Damaged.
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
