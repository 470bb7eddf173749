package provider

import "github.com/sluicehq/sluice"

// MaxCall is how much of a request's body is looked at before it is sent.
const MaxCall = 4 << 20

// Call is a request, as far as it is looked at before it is sent.
type Call struct {
	Method string
	Path   string // as the provider gets it, without the query
	Query  string
	// Header may have names in any case. An http.Header can be assigned to it.
	Header map[string][]string
	// Body is the body, decompressed, or its first bytes; Whole tells which. Dialects look at no more
	// than MaxCall of it.
	Body  []byte
	Whole bool
	// Size is how long the body is, -1 if that is not known.
	Size int64
}

// Asked is what a call asks for.
type ParsedRequest struct {
	// Model is the model as the call names it, empty if it names none.
	Model string
	// Part is what the provider limits apart: a class of models, a part of the API. It belongs into
	// [sluice.Request.Model]. Empty: nothing narrower than the resource.
	Part string
	// Cost is what the call takes for certain, besides the one request that it is.
	Cost []sluice.Amount
	// Tokens tells that the call is one whose answer costs tokens, and money.
	Tokens bool
	// Text is about how many bytes of the body become input tokens.
	Text int64
	// MaxOutput is the call's own bound on output tokens, 0 if it states none.
	MaxOutput int64
	// Stream tells that the answer is to come in pieces.
	Stream bool
	// Reserved tells that the provider charges the most that the call may use when it comes, and not
	// what it really uses.
	Reserved bool
	// Hidden tells that a streamed answer will not say what it has used unless it is asked to:
	// [Speaker.AskUsage] does.
	Hidden bool
	// Free tells that the provider counts the call against no limit.
	Free bool
}

// Usage is what a call has really used. Of tokens none is in two of the fields.
type Usage struct {
	Model      string // as the answer names it, empty if it does not
	Input      int64  // tokens that were neither read from a cache nor written to one
	CacheRead  int64
	CacheWrite int64 // for minutes
	CacheLong  int64 // for an hour or more
	Output     int64 // with what was thought
	Micros     int64 // what the provider says that it costs, in millionths of a dollar; 0: it does not say
	// Known tells that the answer has said anything of it, Final that nothing more is to come.
	Known, Final bool
	// Seen is how many bytes of text have passed in pieces of a stream, as they were written there. Of
	// an answer that ends before it says what it has used, nothing else tells of its output.
	Seen int64
}

// UsageReader reads what a call has used while its answer passes by: the body as the client gets it,
// decompressed, in pieces of any length. It holds little, whatever the provider sends.
type UsageReader interface {
	Write(p []byte)
	// Usage is what was said so far.
	Usage() Usage
	// Failed is what an error within an answer that began well means: its verdict, or VerdictNone.
	Failed() Observation
}

// Speaker is a dialect that reads requests too, so that nothing need be said about them.
type Speaker interface {
	Dialect
	// Address is where the provider is, empty if every user has another.
	Address() string
	// Ask reads a call.
	Ask(c *Call) ParsedRequest
	// Key returns the API key of a call, empty if it has none. It must go no further than to where
	// fingerprints are made.
	Key(header map[string][]string) string
	// Usage returns a reader for the answer to a call, given the answer's content type; nil if there is
	// nothing to read.
	Usage(asked *ParsedRequest, contentType string) UsageReader
	// Spent is what usage takes of limits, in the units of the preset; also what an estimate will take.
	Spent(u *Usage) []sluice.Amount
	// Refuse is a refusal in the provider's own words, so that its clients understand it.
	Refuse(status int, message string) (contentType string, body []byte)
	// Rename returns a call's body, and its path, with another model. Of a body that is not whole it is the
	// same part, which may have become longer. It reports false where it cannot. The call stays as it is.
	Rename(c *Call, model string) (path string, body []byte, ok bool)
	// AskUsage returns the body of a call with Hidden set, so that its answer says what it has used. What is
	// not whole is returned as it is.
	AskUsage(body []byte) []byte
	// OnlyUsage reports that a piece of a stream (the data of one event) says nothing but what AskUsage
	// asked for, so that a client that did not ask need not see it.
	OnlyUsage(data []byte) bool
}
