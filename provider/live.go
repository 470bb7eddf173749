package provider

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluicehq/sluice/store"
)

// Live reads the messages of a WebSocket over which a provider serves many calls. Its methods may be called
// concurrently.
type Live interface {
	// Asked returns the cost of a response that the provider starts by itself. Its model is that of the connection,
	// if it is known.
	Asked() ParsedRequest
	// Said reads a message from the client.
	Said(message []byte) LiveCall
	// Told reads a message from the provider.
	Told(message []byte) LiveEvent
	// Closed reads why the provider closed the connection. If that is a refusal, status is its HTTP status, else 0.
	Closed(reason string) (status int, body []byte)
	// Refuse returns a refusal of a call in the provider's own format. Nil means that the provider closes the
	// connection instead.
	Refuse(c *LiveCall, status int, message string, after time.Duration) []byte
}

// LiveCall is a message from a client.
type LiveCall struct {
	// Starts is set if the message asks for a response, Cancels if it withdraws one. Response is the id of the
	// withdrawn response, if the message names it.
	Starts, Cancels bool
	// Unread is set if the message could not be read with certainty. Another parser may find that it asks for a
	// response, so do not pass it on.
	Unread bool
	// Follows is set if the message starts a response only when none is in progress.
	Follows  bool
	Response string
	// ID is the client's id of the message, Stream that of its conversation. Either may be empty.
	ID, Stream string
	// Asked is what the message asks for. Nil means that the message is read like the body of a call.
	Asked *ParsedRequest
}

// LiveEvent is a message from a provider.
type LiveEvent struct {
	// About is set if the message is about a response: it begins, continues or ends.
	About, Begins, Ends bool
	// Content is set if the message has a part of the response, for providers whose responses have no ids.
	Content bool
	// Usage is set if the message states usage. Late is set if usage may come after the end.
	Usage, Late bool
	// Response is the id of the response, Stream that of its conversation. Either is empty if the provider does not
	// say.
	Response, Stream string
	// Failed is set if a response, or the client's message For, was refused with Status.
	Failed bool
	For    string
	Status int
	// Header has what the message states, in the form of response headers.
	Header map[string][]string
}

// Live returns a reader for the WebSocket that a call opens, or nil if the kind of connection is unknown.
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

// inQuery returns the value of a name in a query, or empty if it is missing or malformed.
func inQuery(query, name string) string {
	for part := range strings.SplitSeq(query, "&") {
		value, ok := strings.CutPrefix(part, name+"=")
		if !ok {
			continue
		}
		var b strings.Builder
		for i := 0; i < len(value); i++ {
			switch c := value[i]; c {
			case '+':
				b.WriteByte(' ')
			case '%':
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

// liveState is what is known about a connection.
type liveState struct {
	mu    sync.Mutex
	model string
	text  int64 // bytes of text that the client has sent: they are the input of every response
	most  int64 // maximum output tokens of a response, as the session states; 0: not stated
}

// audioText is how many bytes of base64 audio count as one byte of text. A tenth of a second is a token.
const audioText = 1600

// hear adds a message to the text of the conversation.
func (l *liveState) hear(m *liveMessage, size int) {
	l.text = min(l.text+max(int64(size)-m.blobs, 0)+m.blobs/audioText, store.MaxAmount)
}

// asked returns the cost of a response on this connection.
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

// liveMessage is what is read of a message from either side.
type liveMessage struct {
	kind                 string // its type
	id, stream, response string
	status               int64
	model                string // of the session or setup
	most                 int64
	warms                bool // it asks for no output
	failed               bool // the response has failed
	errorCode, errorFor  string
	errs                 bool // it has an error
	usage                bool
	top                  string // the first name, for messages without a type
	complete             bool   // the turn is complete
	content              bool   // it has output of the model
	text, over           bool   // of realtime input: it has text, or its activity has ended
	tool                 bool   // it has the results of tools
	blobs                int64
	documents            int
	unread               bool // parsers may disagree about it
}

// readLive reads a message. A message that is not one JSON document is unread.
func readLive(message []byte) *liveMessage {
	m := new(liveMessage)
	s := scanners.Get().(*scanner)
	defer scanners.Put(s)
	s.anew(m)
	s.write(message)
	m.unread = m.unread || s.state != afterwards || m.documents > 1
	return m
}

func (m *liveMessage) done() { m.documents++ }

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
	m.tool = m.tool || s.is(0, "toolResponse") || s.is(0, "tool_response")
}

func (m *liveMessage) outer(s *scanner, name string) {
	if strings.EqualFold(name, "type") { // servers in some languages ignore case
		kind := s.text()
		m.unread = m.unread || m.kind != "" && m.kind != kind // which of two counts depends on the parser
		m.kind = kind
		return
	}
	switch name {
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
			m.complete = m.complete || s.isTrue() // a server may take either of two
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
