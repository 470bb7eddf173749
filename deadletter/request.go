package deadletter

import (
	"bytes"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Request is an HTTP request that was given up. It holds no credentials: see [NewRequest].
type Request struct {
	Method string `json:"method"`
	// Path is the path after the upstream's address, with its query, as the client wrote it.
	Path   string      `json:"path"`
	Header http.Header `json:"headers"`
	// Left lists headers and query parameters that were left out because they may hold secrets.
	Left []string `json:"left_out,omitempty"`
	Body Text     `json:"body,omitempty"`
	// Lost says why the body is missing; empty: it is complete. A request without its body cannot be sent again.
	Lost    string   `json:"body_lost,omitempty"`
	Answers []Answer `json:"answers"` // to its sends, the latest MaxAnswers
}

// Answer is the outcome of one send. It holds no text from the provider.
type Answer struct {
	Time    time.Time `json:"time"`
	Status  int       `json:"status,omitempty"` // 0: no response
	Verdict string    `json:"verdict,omitempty"`
	Error   string    `json:"error,omitempty"` // why there was no response
}

// MaxAnswers bounds the answers kept for one request. The latest are kept.
const MaxAnswers = 64

// secretNames are substrings of the names of headers and parameters that may hold credentials.
var secretNames = []string{
	"auth", "key", "token", "secret", "cookie", "passw", "credential", "signature", "session", "jwt", "bearer", "cert", "assertion", "x-amz-security", "sig",
}

// aboutOneSend lists headers that belong to one send, not to the request.
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

// leastSecret is the minimum length of a secret. Shorter values occur in bodies by chance.
const leastSecret = 8

// NewRequest returns the request of an entry without its secrets. It leaves out headers and query parameters with a
// telling name or a value that looks like a key, headers that hold an address or a parameter with a secret, and the
// headers named in secrets. The body is left out if it contains
// one of those values, or has more than most bytes. whole is false if body is only the beginning.
func NewRequest(method, path string, h http.Header, body []byte, whole bool, most int64, secrets ...string) *Request {
	r := &Request{Method: method, Header: http.Header{}, Answers: []Answer{}}
	var values []string
	for name, list := range h {
		switch {
		case slices.Contains(aboutOneSend, name) || strings.HasPrefix(name, "X-Sluice-") || strings.HasPrefix(name, "X-Forwarded-"):
		case isSecret(name) || slices.ContainsFunc(secrets, func(s string) bool { return strings.EqualFold(s, name) }) || slices.ContainsFunc(list, LooksSecret) || slices.ContainsFunc(list, holdsSecret):
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
			meant, err := url.QueryUnescape(name)
			plain, err2 := url.QueryUnescape(value)
			if err != nil || err2 != nil || isSecret(meant) || LooksSecret(meant) || LooksSecret(plain) {
				if err != nil || LooksSecret(meant) {
					meant = "(a parameter)" // its name may be the secret
				}
				r.Left = append(r.Left, "?"+meant)
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
	meant := unescaped(r.Path)
	switch {
	case holds([]byte(r.Path)) || LooksSecret(r.Path) || holds([]byte(meant)) || LooksSecret(meant):
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

// holdsSecret reports whether the value of a header contains a parameter with a telling name, as Referer and Baggage may,
// or an address with a password.
func holdsSecret(value string) bool {
	if _, rest, ok := strings.Cut(value, "://"); ok {
		host, _, _ := strings.Cut(rest, "/")
		if strings.Contains(host, "@") {
			return true
		}
	}
	for part := range strings.FieldsFuncSeq(value, func(c rune) bool { return strings.ContainsRune("?&;, #", c) }) {
		if name, v, ok := strings.Cut(part, "="); ok && v != "" && (isSecret(unescaped(name)) || LooksSecret(unescaped(v))) {
			return true
		}
	}
	return false
}

// unescaped returns a part of an address with what its percent signs stand for. Percent signs that stand for nothing stay, so
// that they disguise nothing.
func unescaped(part string) string {
	var b strings.Builder
	for i := 0; i < len(part); i++ {
		if part[i] == '%' && i+2 < len(part) {
			if plain, err := url.PathUnescape(part[i : i+3]); err == nil {
				b.WriteString(plain)
				i += 2
				continue
			}
		}
		b.WriteByte(part[i])
	}
	return b.String()
}

// LooksSecret reports whether a text contains something like a provider's API key, or begins like an Authorization
// header.
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

// run returns the length of the key-like characters at the start of a text.
func run(s string) int {
	n := 0
	for n < len(s) && (isWord(s[n]) || strings.IndexByte("_-.", s[n]) >= 0) {
		n++
	}
	return n
}
