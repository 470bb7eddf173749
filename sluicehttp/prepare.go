package sluicehttp

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/url"
	gopath "path"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/inside"
	"github.com/sluicehq/sluice/internal/wire"
	"github.com/sluicehq/sluice/provider"
)

// maxReplay is how much of a body is held only for retries, in bytes.
const maxReplay = 256 << 10

// prepare parses the request and computes what to ask the gate for. It charges nothing.
func (f *flight) prepare() error {
	r, t := f.origin, f.t
	f.payload.src = r.Body
	f.caller, f.line, f.away = t.caller(r), wire.Of(f.ctx), wire.AwayOf(f.ctx)
	f.told = Exchange{
		Resource: t.Resource, Agent: f.caller.Agent, Class: f.caller.Class, User: f.caller.User, Tool: f.caller.Tool, Retry: f.caller.Retry,
		RequestID: f.caller.RequestID,
	}
	switch {
	case t.Gate == nil:
		return errNoGate
	case upgrades(r) && !f.line.Opens():
		return ErrUpgrade
	}
	f.header, f.observe = r.Header, inside.Of(t.Gate).Observes(t.Resource)
	if t.Trace != nil {
		f.begin()
	}
	if !f.observe { // nothing waits in mode observe
		f.payload.room = t.Bodies
		f.payload.highest = t.Bodies != nil && inside.Of(t.Gate).Highest(f.caller.Agent, f.caller.Class)
	}
	if f.keeps() {
		f.payload.kept = t.Letters.most()
	}
	if err := f.payload.take(r, f.most()); err != nil {
		return f.full(err)
	}
	if t.speaker != nil {
		if err := f.read(); err != nil {
			return err
		}
		if f.caller.Parsed != nil {
			f.caller.Parsed(&f.asked)
		}
	} else if t.coster != nil {
		f.asked.Cost, f.asked.Part = t.coster.Cost(r.Method, r.URL.Path), t.coster.Part(r.URL.Path)
	}
	if len(f.header[headerRetry]) > 0 {
		f.setHeader(headerRetry, "")
	}
	f.ask = sluice.Request{
		Resource: t.Resource, Agent: f.caller.Agent, Class: f.caller.Class, User: f.caller.User, Tool: f.caller.Tool,
		Model: f.asked.Part, Retry: f.caller.Retry, Emergency: f.caller.Emergency, Holds: f.holds(),
	}
	if f.ask.Model == "" {
		f.ask.Model = f.asked.Model
	}
	f.told.Model, f.told.Free = f.asked.Model, f.isAside()
	if f.told.Model == "" {
		f.told.Model = f.asked.Part
	}
	if err := f.label(); err != nil {
		return err
	}
	f.reckon()
	return nil
}

// begin starts the trace of the exchange.
func (f *flight) begin() {
	header := maps.Clone(f.origin.Header)
	if header == nil {
		header = http.Header{}
	}
	f.traced, f.told.Began = f.t.Trace(f.origin, header), f.start
	if !f.observe { // mode observe sends a request unchanged
		f.header, f.copied = header, true
	}
}

// label sets the label of the request's API key, if the gate tells keys apart. The key itself goes no further.
func (f *flight) label() (err error) {
	t := f.t
	if f.line.Sends() { // uses the key of its connection
		f.ask.Key = f.line.Key
		return nil
	}
	if f.away != nil { // the client says whose key it sends
		f.ask.Key = f.away.Key
		return nil
	}
	if len(t.Keys) > 0 {
		return f.chooseFrom()
	}
	if t.speaker == nil || t.Fingerprint == nil && !inside.Of(t.Gate).TellsKeys(t.Resource) {
		return nil
	}
	key := t.speaker.Key(f.origin.Header)
	if key == "" && t.dialect.Name() == "gemini" { // the only provider that takes the key in the query
		key = f.origin.URL.Query().Get("key")
	}
	switch {
	case key == "":
	case t.Fingerprint != nil:
		f.ask.Key = t.Fingerprint(key)
	default:
		f.ask.Key, err = t.Gate.KeyLabel(f.ctx, key)
	}
	return err
}

// most returns how many bytes of the body to read before sending.
func (f *flight) most() int64 {
	kept := int64(0)
	if f.keeps() {
		kept = f.t.Letters.most()
	}
	switch {
	case f.t.speaker != nil:
		return max(provider.MaxCall, kept)
	case kept > 0:
		return max(maxReplay, kept)
	case f.origin.GetBody == nil && f.mayRetry():
		return maxReplay
	}
	return 0
}

// mayRetry reports whether the request may be sent again if it fails.
func (f *flight) mayRetry() bool {
	return f.t.Retry.Attempts != 1 && !f.caller.Retry && !f.observe && !f.isAside() && !f.away.Once()
}

// isAside reports whether the provider does not meter the call. It is sent once, and what comes back says nothing about
// limits, keys or the state of the provider's calls.
func (f *flight) isAside() bool { return f.asked.Free && !f.line.Opens() }

// upgrades reports whether a request asks to change the protocol of its connection.
func upgrades(r *http.Request) bool {
	return len(r.Header["Upgrade"]) > 0 || r.Method == http.MethodConnect
}

// read lets the dialect parse the call, and changes the call where necessary.
func (f *flight) read() error {
	if f.line != nil && f.line.Asked != nil {
		f.asked = *f.line.Asked
		f.asked.Free = f.asked.Free || f.line.Opens() && !f.t.places // without a concurrency limit it takes nothing
		return nil
	}
	r := f.origin
	body, whole, packed := f.payload.held, f.payload.whole || f.payload.none, false
	size := r.ContentLength
	if size == 0 && !f.payload.none || size < 0 {
		size = -1
	}
	if whole {
		size = int64(len(body))
	}
	if len(body) > 0 && gzipped(r.Header) {
		var all bool
		body, all = unzip(body, provider.MaxCall)
		if packed, whole, size = true, whole && all, -1; whole {
			size = int64(len(body))
		}
	}
	f.call = provider.Call{
		Method: r.Method, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header, Body: body, Whole: whole, Size: size,
	}
	if err := f.readOn(packed); err != nil {
		return err
	}
	body, whole = f.call.Body, f.call.Whole
	if len(f.t.Keys) > 1 && whole && len(body) > 0 {
		f.talk = talkOf(body)
	}
	if f.observe || f.away != nil {
		f.call.Body = nil
		return nil // sent unchanged
	}
	if err := f.route(packed); err != nil {
		return err
	}
	if f.asked.Hidden && f.call.Whole && !f.payload.none {
		f.hidden = true
		if err := f.instead(f.t.speaker.AskUsage(f.call.Body), packed); err != nil {
			return err
		}
	}
	if f.asked.Tokens {
		f.readable()
	}
	f.call.Body = nil // may be a copy, and is no longer needed
	return nil
}

// readOn parses the call. If the model is not in the part of the body that is held, it reads more.
func (f *flight) readOn(packed bool) error {
	switch {
	case f.call.Whole || f.observe:
	case packed:
		f.call.Rest = &unzipped{src: io.MultiReader(bytes.NewReader(f.payload.held), &f.payload), skip: int64(len(f.call.Body))}
	default:
		f.call.Rest = &f.payload
	}
	f.asked = f.askAs(plainly(&f.call))
	f.call.Rest = nil
	switch encoding := encodingOf(f.origin.Header); {
	case f.payload.err != nil && !f.observe:
		return f.full(f.payload.err)
	case f.asked.Unread && !f.asked.Free && !f.observe && (encoding == "" || encoding == "gzip"):
		return ErrModel
	}
	if p := &f.payload; f.asked.Beyond && !f.observe {
		if p.packed = packed; p.whole && p.namesTwo() {
			return ErrModel
		}
		p.named = !p.whole
	}
	if !packed && f.payload.whole {
		f.call.Body, f.call.Whole, f.call.Size = f.payload.held, true, int64(len(f.payload.held))
	} else if !packed {
		f.call.Body = f.payload.held
	}
	return nil
}

// route lets Route choose another model.
func (f *flight) route(packed bool) error {
	if f.t.Route == nil || f.asked.Free {
		return nil
	}
	model, err := f.t.Route(f.ctx, f.caller, &f.asked)
	if err != nil {
		return err
	}
	if model == "" || model == f.asked.Model {
		return nil
	}
	if packed && !f.call.Whole {
		return ErrRoute // the rest would still be compressed
	}
	path, body, ok := f.t.speaker.Rename(&f.call, model)
	if !ok {
		return ErrRoute
	}
	f.routed = true
	if path != "" && path != f.call.Path {
		f.call.Path, f.path = path, path
	}
	if !f.payload.none {
		if err := f.instead(body, packed); err != nil {
			return err
		}
	}
	f.asked = f.askAs(plainly(&f.call))
	return nil
}

// askAs parses the call with the given path and method, which are normalised as the provider will understand them.
func (f *flight) askAs(path, method string) provider.ParsedRequest {
	was := f.call
	f.call.Path, f.call.Method = path, method
	asked := f.t.speaker.Ask(&f.call)
	f.call.Path, f.call.Method = was.Path, was.Method
	return asked
}

// plainly returns the normalised path and method of a call: without escapes, empty segments and dots, as servers see
// them.
func plainly(c *provider.Call) (path, method string) {
	path, method = c.Path, c.Method
	if strings.ContainsAny(path, "%.") || strings.Contains(path, "//") {
		if plain, err := url.PathUnescape(path); err == nil {
			path = plain
		}
		path = gopath.Clean("/" + path)
	}
	return path, strings.ToUpper(method)
}

// instead replaces the client's body. A compressed body becomes a plain one.
func (f *flight) instead(body []byte, packed bool) error {
	was := int64(len(f.payload.held))
	if err := f.payload.replace(body); err != nil {
		return f.full(err)
	}
	if longer := int64(len(body) - len(f.call.Body)); f.call.Size >= 0 {
		f.call.Size += longer
	}
	f.grown += int64(len(body)) - was
	f.call.Body = body
	if packed && !f.plain {
		f.plain = true
		f.setHeader("Content-Encoding", "")
	}
	return nil
}

// readable asks for a response whose usage can be read: gzip if the client accepts it, otherwise plain text. A response
// that is to be filtered must be plain.
func (f *flight) readable() {
	accepts, ok := f.header["Accept-Encoding"]
	list := strings.ToLower(strings.Join(accepts, ","))
	switch {
	case !ok || list == "identity" || list == "gzip" && !f.hidden:
	case takesGzip(list) && !f.hidden:
		f.setHeader("Accept-Encoding", "gzip")
	default:
		f.setHeader("Accept-Encoding", "identity")
	}
}

// takesGzip reports whether a client accepts gzip.
func takesGzip(list string) bool {
	for part := range strings.SplitSeq(list, ",") {
		name, q, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		if name == "gzip" {
			return strings.Trim(strings.TrimPrefix(q, "q="), "0.") != "" || q == ""
		}
	}
	return false
}

// setHeader sets a header in a copy of the request's header, or removes it if value is empty.
func (f *flight) setHeader(name, value string) {
	if !f.copied {
		f.header, f.copied = maps.Clone(f.header), true
	}
	if value == "" {
		delete(f.header, name)
		return
	}
	f.header[name] = []string{value}
}
