package provider

import (
	"strings"
	"sync"

	"github.com/sluicehq/sluice/store"
)

// usageReader reads usage, and errors within the response, from a response body.
type usageReader struct {
	vendor  *vendor
	asked   string // the requested model
	scan    scanner
	events  *events // nil: the body is not a stream of events
	frames  *frames // nil: the body is not a stream of frames
	stream  bool    // the end of a document is not the end of the response
	usage   Usage
	tally   tally
	event   event // type of the document that is being read
	ended   bool  // the response says that it is complete
	failure failure
	failed  Observation
}

// newUsageReader returns a reader for a content type, or nil if that type has no usage. model is the requested one.
func newUsageReader(v *vendor, model, contentType string) UsageReader {
	kind := mediaType(contentType)
	u := usageReaders.Get().(*usageReader)
	*u = usageReader{vendor: v, asked: model, tally: noTally}
	u.scan.to, u.scan.state = u, afterwards
	switch {
	case kind == "text/event-stream":
		u.stream = true
		u.events = &events{to: &u.scan}
	case kind == "application/vnd.amazon.eventstream":
		u.stream = true
		u.frames = &frames{to: &u.scan}
	case kind == "application/x-ndjson" || kind == "application/jsonl" || kind == "application/stream+json":
		u.stream = true
	case kind == "" || isJSON(kind):
	default:
		u.Free()
		return nil
	}
	return u
}

// mediaType returns a content type without its parameters.
func mediaType(contentType string) string {
	kind, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(kind))
}

func isJSON(kind string) bool { return kind == "application/json" || strings.HasSuffix(kind, "+json") }

// Write reads the next piece of the body.
func (u *usageReader) Write(p []byte) {
	switch {
	case u.events != nil:
		u.events.write(p)
	case u.frames != nil:
		u.frames.write(p)
	default:
		u.scan.write(p)
	}
}

// usageReaders pools readers, because they are large.
var usageReaders = sync.Pool{New: func() any { return new(usageReader) }}

// Free lets another response use the reader. The caller must not use it again.
func (u *usageReader) Free() { usageReaders.Put(u) }

// Usage returns the usage stated so far.
func (u *usageReader) Usage() Usage { return u.usage }

// Failed says what an error within the response means.
func (u *usageReader) Failed() Observation { return u.failed }

// inner returns how many names wrap the fields of interest. Some providers put them into the message that begins,
// the response that ends, or the delta.
func inner(s *scanner) int {
	if s.objs > 1 && (s.is(0, "message") || s.is(0, "response") || s.is(0, "x_groq") || s.is(0, "delta") && s.is(1, "usage")) {
		return 1
	}
	return 0
}

func (u *usageReader) scalar(s *scanner) {
	if s.objs > maxPath {
		return
	}
	from := inner(s)
	switch depth := s.objs - from; {
	case s.is(from, "meta"):
		if depth == 3 && s.is(from+1, "billed_units") { // the rest is about something else
			u.tally.note("billed_units", s.at(from+2), s)
		}
		return
	case s.is(from, "usage") || s.is(from, "usageMetadata"):
		switch depth {
		case 2:
			u.tally.note("", s.at(from+1), s)
		case 3:
			u.tally.note(s.at(from+1), s.at(from+2), s)
		}
		return
	case depth == 1 && s.quoted:
		u.top(s, from)
		return
	}
	u.failure.note(s, from)
	u.seen(s)
}

// top reads a field of the outermost object, or of the one wrapped in it.
func (u *usageReader) top(s *scanner, from int) {
	switch s.at(from) {
	case "type":
		if from == 0 {
			u.event = eventOf(s.value())
		}
	case "event_type": // Cohere's first version
		u.event = eventOf(s.value())
	case "model", "modelVersion":
		switch string(s.value()) { // usually one that is known
		case u.usage.Model:
			return
		case u.asked:
			if !s.long && s.size <= maxModel {
				u.usage.Model = u.asked
				return
			}
		}
		if m := plainModel(s.text()); m != "" {
			u.usage.Model = m
		}
	case "delta":
		u.usage.Seen += int64(s.size)
	case "text":
		if u.event == eventText {
			u.usage.Seen += int64(s.size)
		}
	case "stopReason":
		u.ended = true
	}
	u.failure.note(s, from)
}

// seen counts the text of the response, and notes the end of the response.
func (u *usageReader) seen(s *scanner) {
	last := min(s.objs, maxPath) - 1
	switch {
	case last == 1 && (s.is(0, "serverContent") && s.is(1, "turnComplete") || s.is(0, "server_content") && s.is(1, "turn_complete")):
		u.ended = u.ended || s.isTrue()
	case !s.quoted || last < 1:
	case s.is(0, "delta") || s.is(1, "delta"):
		switch s.at(last) {
		case "text", "thinking", "partial_json", "content", "reasoning", "reasoning_content", "arguments":
			u.usage.Seen += int64(s.size)
		case "stop_reason", "finish_reason":
			u.ended = true
		}
	case (s.is(0, "candidates") || s.is(0, "serverContent") || s.is(0, "server_content")) && s.is(last, "text"):
		u.usage.Seen += int64(s.size)
	case last == 1 && (s.is(1, "finish_reason") || s.is(1, "finishReason")):
		u.ended = true
	}
}

// closed takes over a usage object as soon as it is complete, because the rest of the response may never come.
func (u *usageReader) closed(s *scanner) {
	from := 0
	if s.objs == 2 {
		from = 1
	}
	if s.objs == from+1 && (s.is(from, "usage") || s.is(from, "usageMetadata") || s.is(from, "meta")) {
		u.tally.into(&u.usage)
		u.tally = noTally
	}
}

// done ends a document: one event of a stream, or the whole response.
func (u *usageReader) done() {
	if u.event == eventEnd {
		u.ended = true
	}
	if u.usage.Known && (u.ended || !u.stream) {
		u.usage.Final = true
	}
	if (u.failure.there || u.event == eventError) && u.failed.Verdict == store.VerdictNone {
		u.failed = u.vendor.within(&u.failure)
	}
	u.failure, u.event, u.tally = failure{}, eventOther, noTally
}

// event is the type that a document states.
type event uint8

const (
	eventOther event = iota
	eventEnd
	eventError
	eventText // its text is a piece of the output
)

// eventOf takes bytes to avoid allocations: a stream has thousands of events.
func eventOf(kind []byte) event {
	switch string(kind) {
	case "message_stop", "response.completed", "response.done", "response.incomplete", "response.failed", "message-end", "stream-end":
		return eventEnd
	case "error":
		return eventError
	case "text-generation":
		return eventText
	}
	return eventOther
}
