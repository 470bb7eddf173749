package deadletter

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Request is an HTTP request that was given up. Nothing in it lets anybody in: see [NewRequest].
type Request struct {
	Method string `json:"method"`
	// Path is the path behind the upstream's address, with its query, as the client wrote it.
	Path   string      `json:"path"`
	Header http.Header `json:"headers"`
	// Left are the names of headers and query parameters that were not kept, because they may hold secrets.
	Left []string `json:"left_out,omitempty"`
	Body Text     `json:"body,omitempty"`
	// Lost says why the body is not there; empty: it is all there. Such a request cannot be sent again.
	Lost    string   `json:"body_lost,omitempty"`
	Answers []Answer `json:"answers"` // to its sends, the latest
}

// Answer is what came of one send. It holds nothing of the provider's text.
type Answer struct {
	Time    time.Time `json:"time"`
	Status  int       `json:"status,omitempty"` // 0: none came
	Verdict string    `json:"verdict,omitempty"`
	Error   string    `json:"error,omitempty"` // why none came
}

// MaxAnswers is how many answers of one request are kept; the latest are.
const MaxAnswers = 64

// secretNames are parts of the names of headers and parameters that may hold credentials.
var secretNames = []string{
	"auth", "key", "token", "secret", "cookie", "passw", "credential", "signature", "session", "jwt", "bearer", "cert", "assertion", "x-amz-security", "sig",
}

// aboutOneSend are headers that belong to one send, and not to the request.
var aboutOneSend = []string{
	"Content-Length", "Connection", "Te", "Transfer-Encoding", "Upgrade", "Trailer", "Via", "Forwarded", "Traceparent", "Tracestate", "X-Stainless-Retry-Count", "X-Request-Id",
}

func isSecret(name string) bool {
	name = strings.ToLower(name)
	if name == "idempotency-key" || name == "x-idempotency-key" {
		return false
	}
	return slices.ContainsFunc(secretNames, func(part string) bool { return strings.Contains(name, part) })
}

// leastSecret is how long a secret is at least; what is shorter occurs by chance.
const leastSecret = 8

// NewRequest is the request of an entry, without what may be secret: headers and query parameters by their names, and others whose
// value looks like a key. secrets are names of further headers that are. A body is left out if one of those values is in it, or if
// it has more than most bytes; whole tells that body is all of it.
func NewRequest(method, path string, h http.Header, body []byte, whole bool, most int64, secrets ...string) *Request {
	r := &Request{Method: method, Header: http.Header{}, Answers: []Answer{}}
	var values []string
	for name, list := range h {
		switch {
		case slices.Contains(aboutOneSend, name) || strings.HasPrefix(name, "X-Sluice-") || strings.HasPrefix(name, "X-Forwarded-"):
		case isSecret(name) || slices.ContainsFunc(secrets, func(s string) bool { return strings.EqualFold(s, name) }) || slices.ContainsFunc(list, LooksSecret):
			r.Left = append(r.Left, name)
			for _, v := range list {
				values = append(values, v, v[strings.LastIndexByte(v, ' ')+1:]) // "Bearer KEY"
			}
		default:
			r.Header[name] = list
		}
	}
	before, query, has := strings.Cut(path, "?")
	if has {
		var kept []string
		for part := range strings.SplitSeq(query, "&") {
			name, value, _ := strings.Cut(part, "=")
			plain, err := url.QueryUnescape(value)
			if isSecret(name) || err != nil || LooksSecret(plain) {
				r.Left = append(r.Left, "?"+name)
				values = append(values, value, plain)
				continue
			}
			kept = append(kept, part)
		}
		if query = strings.Join(kept, "&"); query != "" {
			query = "?" + query
		}
	}
	slices.Sort(r.Left)
	r.Path = before + query
	values = slices.DeleteFunc(values, func(v string) bool { return len(v) < leastSecret })
	holds := func(text []byte) bool {
		return slices.ContainsFunc(values, func(v string) bool { return bytes.Contains(text, []byte(v)) })
	}
	switch {
	case holds([]byte(r.Path)) || LooksSecret(r.Path):
		r.Path, r.Lost = "", "its path holds a secret"
	case !whole || int64(len(body)) > most:
		r.Lost = "it is longer than dead_letters.max_body"
	case holds(body):
		r.Lost = "it holds the secret of a header"
	default:
		r.Body = Text(body)
	}
	return r
}

// LooksSecret reports a text that has the form of a key of a provider's, or that introduces one.
func LooksSecret(s string) bool {
	for _, prefix := range []string{"Bearer ", "Basic ", "Digest ", "Token "} {
		if len(s) > len(prefix) && strings.EqualFold(s[:len(prefix)], prefix) {
			return true
		}
	}
	for _, mark := range []string{"sk-", "sk_", "rk_", "ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "AIza", "ya29.", "gsk_", "xai-", "xoxb-", "xoxp-", "hf_", "AKIA", "eyJ", "whsec_", "sluice_"} {
		for at := strings.Index(s, mark); at >= 0; {
			if (at == 0 || !isWord(s[at-1])) && run(s[at:]) >= 16 {
				return true
			}
			next := strings.Index(s[at+1:], mark)
			if next < 0 {
				break
			}
			at += 1 + next
		}
	}
	return false
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// run is how long a key may be that begins a text.
func run(s string) int {
	n := 0
	for n < len(s) && (isWord(s[n]) || strings.IndexByte("_-.", s[n]) >= 0) {
		n++
	}
	return n
}
