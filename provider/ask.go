package provider

import (
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/sluicehq/sluice/store"
)

const (
	maxModel = 128  // bytes in the name of a model
	maxSeats = 128  // completions that one call can ask for
	blobFrom = 1024 // minimum length of a string that may be a picture, in bytes
	blobText = 4096 // bytes of text that a picture counts as: about a thousand tokens
)

// form is a kind of call, recognized by the end of its path.
type form struct {
	ends   string
	tokens bool   // its response costs tokens
	stream bool   // its response is always streamed
	hides  bool   // a stream reports usage only if asked
	part   string // what it is limited as, if not as its model
	loose  bool   // its body may be a file, or may name no model
	hold   *Hold  // how a stream of server-sent events is held; nil: it has another format
	asked  string // what the query has to ask for so that the stream has server-sent events
}

// forms are the known kinds of call. Providers adopt each other's forms, so all of them are tried for every
// provider. Where one ending contains another, the longer comes first.
var forms = [...]form{
	{ends: "/chat/completions", tokens: true, hides: true, hold: holdBlank},
	{ends: "/completions", tokens: true, hides: true, hold: holdBlank},
	{ends: "/responses", tokens: true, hold: holdResponses},
	{ends: "/responses/compact", tokens: true},
	{ends: "/embeddings", tokens: true},
	{ends: "/images/generations", tokens: true, hold: holdBlank},
	{ends: "/v1/messages", tokens: true, hold: holdMessages},
	{ends: "/messages/count_tokens", part: "count_tokens"},
	{ends: "/responses/input_tokens", part: "count_tokens"},
	{ends: "/batches", part: "batches"},
	{ends: ":generateContent", tokens: true},
	{ends: ":streamGenerateContent", tokens: true, stream: true, hold: holdBlank, asked: "alt=sse"},
	{ends: ":embedContent", tokens: true},
	{ends: ":batchEmbedContents", tokens: true},
	{ends: ":countTokens", part: "count_tokens"},
	{ends: "/converse", tokens: true},
	{ends: "/converse-stream", tokens: true, stream: true},
	{ends: "/invoke", tokens: true},
	{ends: "/v2/chat", tokens: true, hold: holdSilent},
	{ends: "/v2/embed", tokens: true},
	{ends: "/v1/chat", tokens: true},
	{ends: "/v1/embed", tokens: true},
	{ends: "/rerank", tokens: true},
	{ends: "/audio/speech", loose: true},
	{ends: "/audio/transcriptions", loose: true},
	{ends: "/audio/translations", loose: true},
	{ends: "/images/edits", loose: true},
	{ends: "/images/variations", loose: true},
	{ends: "/moderations", loose: true},
	{ends: "/classifications", loose: true},
	{ends: "/ocr", loose: true},
	{ends: "/videos", loose: true},
	{ends: "/interactions", loose: true},
	{ends: "/runs", loose: true},
	{ends: "/realtime/calls", loose: true},
}

// formOf returns the form of a path, or nil if it is unknown.
func formOf(path string) *form {
	path = strings.TrimSuffix(path, "/")
	for i := range forms {
		if strings.HasSuffix(path, forms[i].ends) {
			return &forms[i]
		}
	}
	return nil
}

// Ask reads a call.
func (v *vendor) Ask(c *Call) ParsedRequest {
	var a ParsedRequest
	switch {
	case !v.models:
	case v.places.isAside(c.Path), c.Method == "HEAD", c.Method == "OPTIONS": // the latter only ask whether the server responds
		a.Free = true
	case c.Method == "POST", c.Method == "":
		v.askModel(c, &a)
	case strings.Contains(c.Path, "/batches"):
		a.Part = "batches"
	default:
		a.Free = true
	}
	if a.Free {
		a.Keyed = v.places.isCall(c.Path)
		return a
	}
	if v.part != nil && a.Part == "" {
		a.Part = v.part(c.Path, a.Model)
	}
	if v.cost != nil {
		a.Cost = v.cost(a.Model)
	}
	return a
}

func (v *vendor) askModel(c *Call, a *ParsedRequest) {
	body := c.Body[:min(len(c.Body), MaxCall)]
	read := askings.Get().(*askScan)
	defer askings.Put(read)
	in, s := &read.in, &read.scan
	*in = asking{}
	s.anew(in)
	s.write(body)
	text := in.textOf(body, c)
	f := formOf(c.Path)
	if a.Model = pathModel(c.Path); a.Model == "" {
		known := f != nil && !f.loose
		if known && f.part == "" || !known && mayName(c) {
			a.Unread, a.Beyond = read.search(c, !known)
		}
		a.Model = in.model
	}
	if f == nil {
		if strings.Contains(c.Path, "/batches/") { // cancels a batch
			a.Part, a.Unread = "batches", false
			return
		}
		a.Free = a.Model == "" && !a.Unread // providers meter by model
		return
	}
	a.Part, a.Tokens = f.part, f.tokens
	if !f.tokens {
		return
	}
	if a.Stream = f.stream || in.stream; a.Stream && (f.asked == "" || slices.Contains(strings.Split(c.Query, "&"), f.asked)) {
		a.Hold = f.hold
	}
	a.Reserved, a.Larger = v.reserved, v.larger
	a.Hidden = v.hides && f.hides && a.Stream && !in.usage
	a.MaxOutput = min(in.output*max(in.seats, 1), store.MaxAmount)
	a.Text = text
}

// mayName reports whether a call of unknown form may name a model: its body is JSON, and not a file.
func mayName(c *Call) bool {
	kind, _, _ := strings.Cut(strings.ToLower(fieldOf(c.Header, "content-type")), ";")
	return strings.HasSuffix(strings.TrimSpace(kind), "json") && !strings.HasSuffix(kind, "ndjson") && !strings.Contains(c.Path, "/upload/")
}

// search reads on until the model is found, because SDKs write it after the messages. It reports whether there may be a
// model that was not found, or a second one beyond what was read. A body of unknown form may be longer than what is
// searched.
func (read *askScan) search(c *Call, unknown bool) (unread, beyond bool) {
	in, s := &read.in, &read.scan
	seen := min(len(c.Body), MaxCall)
	for seen < len(c.Body) && in.model == "" {
		next := min(seen+len(read.piece), len(c.Body))
		s.write(c.Body[seen:next])
		seen = next
	}
	whole := c.Whole && seen == len(c.Body)
	for c.Rest != nil && in.model == "" && s.state != lost && seen < MaxNamed {
		n, err := c.Rest.Read(read.piece[:])
		s.write(read.piece[:n])
		seen += n
		if err != nil {
			whole = err == io.EOF
			break
		}
	}
	switch {
	case in.clash || s.state == lost:
		return true, false
	case in.model != "":
		return false, !whole
	case unknown && seen >= MaxNamed:
		return false, false
	}
	return !whole || s.state != afterwards, false
}

// ModelGuard finds out whether a body names more than one model. The zero value is not usable; call NewModelGuard.
type ModelGuard struct {
	in   asking
	scan *scanner
}

// NewModelGuard returns a guard for one body.
func NewModelGuard() *ModelGuard {
	g := &ModelGuard{}
	g.scan = newScanner(&g.in)
	return g
}

// Write reads the next piece of the decompressed body, from its beginning on.
func (g *ModelGuard) Write(p []byte) { g.scan.write(p) }

// Unread reports whether it is unknown which model counts: what was written names two, or is not JSON.
func (g *ModelGuard) Unread() bool { return g.in.clash || g.scan.state == lost }

// askScan reads the body of a call.
type askScan struct {
	scan  scanner
	in    asking
	piece [32 << 10]byte
}

// askings pools them, because they are large.
var askings = sync.Pool{New: func() any { return new(askScan) }}

// asking is what the body of a call asks for.
type asking struct {
	model         string
	clash         bool // it names two models, and parsers disagree on which one counts
	stream, usage bool
	output, seats int64
	blobs         int64 // bytes that are not text
	pictures      int64
}

func (in *asking) scalar(s *scanner) {
	if s.quoted && s.size >= blobFrom && blob(s.value()) {
		in.blobs += int64(s.size)
		in.pictures++
		return
	}
	switch {
	case s.objs == 1:
		if name := s.at(0); strings.EqualFold(name, "model") { // servers in some languages ignore case
			model := plainModel(s.text())
			in.clash = in.clash || in.model != "" && in.model != model
			in.model = model
		} else {
			in.field(s, name)
		}
	case s.objs != 2:
	case s.is(0, "stream_options"):
		in.usage = in.usage || s.is(1, "include_usage") && s.isTrue()
	case s.is(0, "generationConfig"), s.is(0, "generation_config"), s.is(0, "inferenceConfig"):
		in.field(s, s.at(1))
	}
}

func (in *asking) field(s *scanner, field string) {
	switch field {
	case "stream":
		in.stream = s.isTrue()
	case "max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens", "maxTokens", "max_tokens_to_sample":
		if n, ok := s.count(); ok {
			in.output = max(in.output, n)
		}
	case "n", "best_of", "candidateCount", "candidate_count":
		if n, ok := s.count(); ok {
			in.seats = max(in.seats, min(n, maxSeats))
		}
	}
}

func (*asking) closed(*scanner) {}
func (*asking) done()           {}

// textOf estimates how many bytes of the body are text. It assumes that unread bytes are like the rest.
func (in *asking) textOf(body []byte, c *Call) int64 {
	text := max(int64(len(body))-in.blobs, 0)
	if all := max(c.Size, int64(len(c.Body))); all > int64(len(body)) && len(body) > 0 {
		text = int64(float64(text) / float64(len(body)) * float64(all))
	}
	return min(text+in.pictures*blobText, store.MaxAmount)
}

// blob reports whether a long string is a picture or the like: it has only base64 characters. Text of that length
// contains a blank.
func blob(head []byte) bool {
	if i := strings.Index(string(head[:min(len(head), 128)]), ";base64,"); i >= 0 {
		head = head[i+len(";base64,"):]
	}
	for _, c := range head {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/', c == '=', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// plainModel returns s if it can be a model's name, and an empty string otherwise.
func plainModel(s string) string {
	if len(s) > maxModel || !printable(s) {
		return ""
	}
	return s
}

// pathPlaces are the texts before and after a model's name in a path.
var pathPlaces = [...]struct{ before, after string }{
	{"/models/", ":"},
	{"/tunedModels/", ":"},
	{"/deployments/", "/"},
	{"/model/", "/"},
}

// inPath finds the position of the model's name in a path.
func inPath(path string) (span, bool) {
	for _, p := range pathPlaces {
		_, rest, ok := strings.Cut(path, p.before)
		if !ok {
			continue
		}
		if name, _, ok := strings.Cut(rest, p.after); ok && name != "" {
			from := len(path) - len(rest)
			return span{from, from + len(name)}, true
		}
	}
	return span{}, false
}

func pathModel(path string) string {
	at, ok := inPath(path)
	if !ok {
		return ""
	}
	return plainModel(strings.ReplaceAll(path[at.from:at.to], "%3A", ":"))
}
