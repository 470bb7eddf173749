package provider

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Live reads the messages of a WebSocket over which a provider answers many calls. Its methods may be called at the same time.
type Live interface {
	// Asked is what a response takes that the provider starts by itself. Its model is that of the connection, as far as it is known.
	Asked() ParsedRequest
	// Said reads a message of the client.
	Said(message []byte) LiveCall
	// Told reads a message of the provider.
	Told(message []byte) LiveEvent
	// Closed reads why the provider has closed the connection: status is that of the refusal which it is, 0 if it is none.
	Closed(reason string) (status int, body []byte)
	// Refuse is a refusal of a call in the provider's own words. Nil means that the provider closes the connection instead.
	Refuse(c *LiveCall, status int, message string, after time.Duration) []byte
}

// LiveCall is a message of a client.
type LiveCall struct {
	// Starts tells that the message asks for a response, Cancels that it withdraws one, of which Response is the id, if it names any.
	Starts, Cancels bool
	// Follows tells that the message starts a response only if none is under way.
	Follows  bool
	Response string
	// ID is the client's name for the message, Stream for the conversation that it belongs to; empty: none.
	ID, Stream string
	// Asked is what is asked for. Nil means that the message is read like the body of a call.
	Asked *ParsedRequest
}

// LiveEvent is a message of a provider.
type LiveEvent struct {
	// About tells that the message is about a response: that it begins, that it goes on, that it Ends.
	About, Begins, Ends bool
	// Content tells that the message has a part of the response, where responses have no ids.
	Content bool
	// Usage tells that the message says what was used. Late tells that it may come after the end.
	Usage, Late bool
	// Response is the id of the response, Stream that of its conversation; empty: the provider does not say.
	Response, Stream string
	// Failed tells that a response, or the message For of the client, was refused with a status.
	Failed bool
	For    string
	Status int
	// Header is what the message states, as the header of an answer would.
	Header map[string][]string
}

// Live returns a reader for the WebSocket that a call opens; nil: nothing is known of such a connection.
func (v *vendor) Live(c *Call) Live {
	if !v.models {
		return nil
	}
	path := strings.TrimSuffix(c.Path, "/")
	switch {
	case strings.HasSuffix(path, "/realtime"):
		l := &liveOpenAI{vendor: v, realtime: true}
		for _, name := range [...]string{"model", "deployment"} {
			if l.model == "" {
				l.model = plainModel(inQuery(c.Query, name))
			}
		}
		l.fixed = l.model != ""
		return l
	case strings.HasSuffix(path, "/responses"):
		return &liveOpenAI{vendor: v}
	case strings.HasSuffix(path, ".BidiGenerateContent"):
		return &liveGemini{vendor: v}
	}
	return nil
}

// inQuery is the value of a name in a query, empty if it is not there or malformed.
func inQuery(query, name string) string {
	for part := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(part, name+"=")
		if !ok {
			continue
		}
		var b strings.Builder
		for i := 0; i < len(value); i++ {
			switch c := value[i]; {
			case c == '+':
				b.WriteByte(' ')
			case c == '%':
				n, err := strconv.ParseUint(value[min(i+1, len(value)):min(i+3, len(value))], 16, 8)
				if err != nil {
					return ""
				}
				b.WriteByte(byte(n))
				i += 2
			default:
				b.WriteByte(c)
			}
		}
		return b.String()
	}
	return ""
}

// liveState is what is known of a connection.
type liveState struct {
	mu    sync.Mutex
	model string
	text  int64 // bytes of text that the client has sent: they are the input of every response
	most  int64 // output tokens of a response, as the session says; 0: it does not
}

// Bounds of what is kept of a connection.
const audioText = 1600 // bytes of audio, in base64, that count as one of text: a tenth of a second is a token

// hear adds what a message says to the conversation.
func (l *liveState) hear(m *liveMessage, size int) {
	l.text = min(l.text+max(int64(size)-m.blobs, 0)+m.blobs/audioText, store.MaxAmount)
}

// asked is a call for a response.
func (l *liveState) asked(v *vendor, m *liveMessage) *ParsedRequest {
	a := &ParsedRequest{Model: l.model, Tokens: true, Stream: true, Text: l.text, MaxOutput: l.most}
	if m != nil && m.most > 0 {
		a.MaxOutput = m.most
	}
	a.Part = l.model
	if v.part != nil {
		a.Part = v.part("", l.model)
	}
	if v.cost != nil {
		a.Cost = v.cost(l.model)
	}
	return a
}

func (l *liveState) next(v *vendor) ParsedRequest {
	l.mu.Lock()
	defer l.mu.Unlock()
	return *l.asked(v, nil)
}

// liveMessage is what is read of a message of either side.
type liveMessage struct {
	kind                 string // its type
	id, stream, response string
	status               int64
	model                string // of the session, or the setup
	most                 int64
	warms                bool // it asks for no output
	failed               bool // the response is said to have failed
	errorCode, errorFor  string
	errs                 bool // it has an error
	usage                bool
	top                  string // the first name, where messages have no type
	complete             bool   // the turn is said to be
	content              bool   // it has some of what the model says
	text, over           bool   // of input that comes as it is made
	blobs                int64
}

// readLive reads a message. What is no JSON says nothing.
func readLive(message []byte) *liveMessage {
	m := new(liveMessage)
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.anew(m)
	s.write(message)
	return m
}

func (m *liveMessage) done() {}

func (m *liveMessage) scalar(s *scanner) {
	m.first(s)
	m.content = m.content || s.is(1, "modelTurn") || s.is(1, "model_turn")
	if s.quoted && s.size >= blobFrom && blob(s.value()) {
		m.blobs += int64(s.size)
		return
	}
	switch s.objs {
	case 1:
		m.outer(s, s.at(0))
	case 2:
		m.inner(s, s.at(0), s.at(1))
	case 3:
		if (s.is(0, "setup")) && (s.is(1, "generationConfig") || s.is(1, "generation_config")) {
			m.mostOf(s, s.at(2))
		}
	}
}

func (m *liveMessage) first(s *scanner) {
	if m.top == "" || m.top == "usageMetadata" || m.top == "usage_metadata" {
		m.top = s.at(0)
	}
}

func (m *liveMessage) outer(s *scanner, name string) {
	switch name {
	case "type":
		m.kind = s.text()
	case "event_id":
		m.id = s.text()
	case "stream_id":
		m.stream = s.text()
	case "response_id":
		m.response = s.text()
	case "model":
		m.model = plainModel(s.text())
	case "generate":
		m.warms = !s.quoted && string(s.value()) == "false"
	case "status", "status_code":
		m.status, _ = s.count()
	}
}

func (m *liveMessage) inner(s *scanner, outer, name string) {
	switch outer {
	case "response":
		switch name {
		case "id":
			m.response = s.text()
		case "status":
			m.failed = string(s.value()) == "failed"
		case "max_output_tokens":
			m.mostOf(s, name)
		}
	case "session", "setup":
		switch name {
		case "model":
			m.model = plainModel(s.text())
		case "max_output_tokens", "max_response_output_tokens":
			m.mostOf(s, "max_output_tokens")
		}
	case "error":
		m.errs = true
		switch name {
		case "event_id":
			m.errorFor = s.text()
		case "code", "type":
			if m.errorCode == "" || name == "code" {
				m.errorCode = strings.ToLower(s.text())
			}
		}
	case "clientContent", "client_content", "serverContent", "server_content":
		if name == "turnComplete" || name == "turn_complete" {
			m.complete = s.isTrue()
		}
	case "realtimeInput", "realtime_input":
		m.text = m.text || name == "text"
	case "usageMetadata", "usage_metadata":
		m.usage = true
	}
}

func (m *liveMessage) mostOf(s *scanner, name string) {
	switch name {
	case "max_output_tokens", "maxOutputTokens":
		if n, ok := s.count(); ok {
			m.most = n
		}
	}
}

func (m *liveMessage) closed(s *scanner) {
	if s.objs == 0 {
		return
	}
	m.first(s)
	switch {
	case s.objs == 2 && (s.is(0, "realtimeInput") || s.is(0, "realtime_input")) && (s.is(1, "activityEnd") || s.is(1, "activity_end")):
		m.over = true
	case s.objs == 2 && s.is(0, "response") && s.is(1, "usage"), s.objs == 1 && (s.is(0, "usageMetadata") || s.is(0, "usage_metadata")):
		m.usage = true
	}
}
