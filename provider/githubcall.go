package provider

import (
	"strings"

	"github.com/sluicehq/sluice"
)

// Address returns the URL of github.com. An Enterprise server has its own.
func (GitHub) Address() string { return "https://api.github.com" }

// Ask reads a call. The body says whether a GraphQL call is a mutation.
func (g GitHub) Ask(c *Call) ParsedRequest {
	a := ParsedRequest{Part: g.Part(c.Path), Cost: g.Cost(c.Method, c.Path)}
	if a.Part == partGraphQL && mutates(c.Body[:min(len(c.Body), MaxCall)]) {
		for i := range a.Cost {
			if a.Cost[i].Unit == unitGraphQLPoints {
				a.Cost[i].N = 5
			}
		}
	}
	return a
}

// mutates reports whether a GraphQL call has a mutation among its operations. Any of them may be the one that runs.
func mutates(body []byte) bool {
	for _, p := range values(body, "query") {
		if body[p.from] == '"' && hasMutation(string(unescape(body[p.from+1:p.to-1]))) {
			return true
		}
	}
	return false
}

// hasMutation looks for the word outside braces, brackets, strings and comments.
func hasMutation(query string) bool {
	depth := 0
	for i := 0; i < len(query); i++ {
		switch c := query[i]; {
		case c == '#':
			n := strings.IndexByte(query[i:], '\n')
			if n < 0 {
				return false
			}
			i += n
		case c == '"':
			if i = graphQLString(query, i); i < 0 {
				return false
			}
		case c == '{' || c == '(' || c == '[':
			depth++
		case c == '}' || c == ')' || c == ']':
			depth--
		case depth == 0 && strings.HasPrefix(query[i:], "mutation"):
			before := i == 0 || !wordByte(query[i-1])
			after := i+len("mutation") == len(query) || !wordByte(query[i+len("mutation")])
			if before && after {
				return true
			}
		}
	}
	return false
}

func wordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// graphQLString returns the position of the last quote of a string or block string, or -1 if there is none.
func graphQLString(query string, i int) int {
	if rest, ok := strings.CutPrefix(query[i:], `"""`); ok {
		n := strings.Index(rest, `"""`)
		if n < 0 {
			return -1
		}
		return i + 3 + n + 2
	}
	for i++; i < len(query); i++ {
		switch query[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// Key returns the token of a call.
func (GitHub) Key(header map[string][]string) string {
	return credentials(fieldOf(header, "authorization"))
}

// Usage returns a reader that finds GraphQL refusals in a response that began well. Bodies do not state usage.
func (GitHub) Usage(asked *ParsedRequest, contentType string) UsageReader {
	if asked.Part != partGraphQL {
		return nil
	}
	if kind := mediaType(contentType); kind != "" && !isJSON(kind) {
		return nil
	}
	return &graphQLReader{}
}

// graphQLReader keeps the beginning of a response and parses it on demand.
type graphQLReader struct{ head []byte }

func (g *graphQLReader) Write(p []byte) {
	if room := MaxBody - len(g.head); room > 0 {
		g.head = append(g.head, p[:min(len(p), room)]...)
	}
}

func (*graphQLReader) Usage() Usage { return Usage{} }

// Failed says what an error means. The headers have stated the reset of a primary limit already.
func (g *graphQLReader) Failed() Observation {
	var o Observation
	primary := newLimit(partGraphQL)
	primary.Resource = partGraphQL
	switch refusedGraphQL(g.head, &primary) {
	case byPrimary:
		o.exhausted(&primary, &reader{})
	case bySecondary:
		o.secondary(&reader{})
	}
	return o
}

// Spent returns nothing: the cost of a call is known in advance.
func (GitHub) Spent(*Usage) []sluice.Amount { return nil }

// githubError is the format of GitHub's errors.
var githubError = refusalForm{
	content: "application/json; charset=utf-8",
	body:    `{"message":$message,"documentation_url":"https://docs.github.com/rest","status":"$status"}`,
}

// Refuse returns a refusal in GitHub's format.
func (GitHub) Refuse(status int, message string) (contentType string, body []byte) {
	return githubError.write(status, message)
}

// Rename reports false: there are no models.
func (GitHub) Rename(*Call, string) (path string, body []byte, ok bool) { return "", nil, false }

// AskUsage returns the body as it is.
func (GitHub) AskUsage(body []byte) []byte { return body }

// OnlyUsage reports false.
func (GitHub) OnlyUsage([]byte) bool { return false }
