package provider

import "slices"

// KeepAlive names what a held stream gets while its request waits for its turn.
type KeepAlive string

// What a held stream may get.
const (
	KeepEvent   KeepAlive = "event"   // an event of the provider that clients skip, such as Anthropic's ping
	KeepComment KeepAlive = "comment" // a comment of server-sent events
	KeepBlank   KeepAlive = "blank"   // blank lines
	KeepNothing KeepAlive = "nothing" // the stream is silent until it begins
)

// Hold says how a stream of a call is kept alive while its request waits, and how it learns of an error after that.
// docs/proxy.md lists the clients that each was tested with.
type Hold struct {
	usual KeepAlive
	event string // the provider's own keep-alive; empty means that it has none
	name  string // of the event that holds an error; empty: events have no names
	field string // goes before the fields of an error
}

const (
	commentLine = ": keep-alive\n\n"
	// blankLines are two, because some parsers cut the stream at each pair: with a single one before an event, Gemini's
	// client for Go does not find the event.
	blankLines = "\n\n"
)

var (
	holdBlank    = &Hold{usual: KeepBlank}
	holdMessages = &Hold{usual: KeepEvent, event: "event: ping\ndata: {\"type\": \"ping\"}\n\n", name: "error"} // as Anthropic sends it
	// holdResponses: without the type, the AI SDK complains of the event instead of telling the error.
	holdResponses = &Hold{usual: KeepBlank, name: "error", field: `"type":"error","sequence_number":0,`}
	// holdSilent is for streams whose clients take an error for the end of an empty response. They need the status.
	holdSilent = &Hold{usual: KeepNothing}
)

// Line returns what keeps a stream alive, given what its client was tested to bear. Empty bears means that nothing is
// known of the client. Line returns "" if the stream has to stay silent.
func (h *Hold) Line(bears KeepAlive) string {
	if bears == "" || bears == KeepEvent && h.event == "" {
		bears = h.usual
	}
	switch bears {
	case KeepEvent:
		return h.event
	case KeepComment:
		return commentLine
	case KeepBlank:
		return blankLines
	}
	return ""
}

// Failure returns the event that tells a stream of an error. body is the error as a JSON object on one line.
func (h *Hold) Failure(body []byte) []byte {
	var event []byte
	if h.name != "" {
		event = append(event, "event: "+h.name+"\n"...)
	}
	if len(body) > 2 && h.field != "" && len(values(body, "type")) == 0 {
		body = slices.Insert(slices.Clone(body), 1, []byte(h.field)...)
	}
	return append(append(append(event, "data: "...), body...), "\n\n"...)
}
