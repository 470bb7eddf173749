package provider

import (
	"io"

	"github.com/sluicehq/sluice"
)

// Bounds on what is read of a request body before it is sent, in bytes.
const (
	MaxCall  = 4 << 20  // examined
	MaxNamed = 64 << 20 // searched for the model, if it is not in the first MaxCall
)

// Call is the part of a request that dialects examine before it is sent.
type Call struct {
	Method string
	Path   string // as the provider gets it, without the query
	Query  string
	// Header may have names in any case. An http.Header can be assigned to it.
	Header map[string][]string
	// Body is the decompressed body, or its first bytes. Whole is set if it is complete. Dialects examine at most
	// MaxCall of it, but search all of it for the model.
	Body  []byte
	Whole bool
	// Rest reads what follows Body. Dialects read it only to find the model. Nil means that there is no more to read.
	Rest io.Reader
	// Size is the length of the body, or -1 if it is unknown.
	Size int64
}

// ParsedRequest is what a call asks for.
type ParsedRequest struct {
	// Model is the model that the call names, or empty if it names none.
	Model string
	// Unread is set if the call may name a model that could not be read, so that it is unknown which limits apply. The
	// body is incomplete, not JSON, nested too deeply, or names two models.
	Unread bool
	// Beyond is set if the body names a model and goes on beyond what was read. Another model there may be the one that
	// counts: a [ModelGuard] finds it while the body is sent.
	Beyond bool
	// Part is what the provider limits separately, such as a class of models or a part of the API. Put it into
	// [sluice.Request.Model]. Empty means nothing narrower than the resource.
	Part string
	// Cost is the certain cost of the call, in addition to the one request itself.
	Cost []sluice.Amount
	// Tokens is set if the response costs tokens, and money.
	Tokens bool
	// Text is roughly how many bytes of the body become input tokens.
	Text int64
	// MaxOutput is the call's own bound on output tokens, or 0 if it states none.
	MaxOutput int64
	// Stream is set if the response is to be streamed.
	Stream bool
	// Hold says how the stream is held. It is nil if the stream does not use server-sent events, or is unknown.
	Hold *Hold
	// Reserved is set if the provider charges the most that the call may use when it arrives, instead of what it
	// really uses.
	Reserved bool
	// Larger is set if the provider reserves the larger of the input and MaxOutput, and not their sum. It estimates the
	// input from the length of the text.
	Larger bool
	// Hidden is set if a streamed response reports no usage unless asked. [Speaker.AskUsage] asks for it.
	Hidden bool
	// Free is set if the provider does not meter the call: settings, telemetry, login, lists. It takes no turn, and it is
	// no send.
	Free bool
	// Keyed is set if a free call takes the same API keys as other calls, such as a list of models.
	Keyed bool
}

// Usage is what a call really used. Each token is counted in one field only.
type Usage struct {
	Model      string // as the response names it, or empty
	Input      int64  // tokens neither read from a cache nor written to one
	CacheRead  int64
	CacheWrite int64 // kept for minutes
	CacheLong  int64 // kept for an hour or more
	Output     int64 // including reasoning
	Searches   int64 // searches that the provider bills in place of tokens, as for a rerank
	Micros     int64 // cost according to the provider, in millionths of a dollar; 0: not stated
	// Known is set once the response has stated usage, Final once it will state no more.
	Known, Final bool
	// Seen counts the bytes of text in the pieces of a stream, as encoded there. It is the only measure of output if
	// a response ends before it states its usage.
	Seen int64
}

// UsageReader reads the usage of a call while its response passes through. Write takes the decompressed body in
// pieces of any length. A reader uses little memory, whatever the provider sends.
type UsageReader interface {
	Write(p []byte)
	// Usage returns the usage stated so far.
	Usage() Usage
	// Failed says what an error means that comes after the response has begun well. Its verdict is VerdictNone if
	// there was no error.
	Failed() Observation
}

// Speaker is a dialect that also reads requests, so that callers need not describe them.
type Speaker interface {
	Dialect
	// Address returns the provider's base URL, or empty if every user has a different one.
	Address() string
	// Ask reads a call.
	Ask(c *Call) ParsedRequest
	// Key returns the API key of a call, or empty if it has none. Use it only to compute fingerprints.
	Key(header map[string][]string) string
	// Usage returns a reader for the response to a call, given the response's content type. It returns nil if there
	// is nothing to read.
	Usage(asked *ParsedRequest, contentType string) UsageReader
	// Spent returns what usage takes from limits, in the units of the preset. It also converts estimates.
	Spent(u *Usage) []sluice.Amount
	// Refuse returns a refusal in the provider's own format, so that its clients understand it.
	Refuse(status int, message string) (contentType string, body []byte)
	// Rename returns the path and body of a call with another model. For an incomplete body it returns the same
	// part, which may be longer. It returns false if it cannot rename. It does not change the call.
	Rename(c *Call, model string) (path string, body []byte, ok bool)
	// AskUsage changes the body of a call with Hidden set, so that its response states usage. It returns an
	// incomplete body unchanged.
	AskUsage(body []byte) []byte
	// OnlyUsage reports whether a piece of a stream (the data of one event) contains only the usage that AskUsage
	// asked for. Do not pass it to a client that did not ask.
	OnlyUsage(data []byte) bool
}
