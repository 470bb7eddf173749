// Package requestid names requests, so that an answer and a line of the log can be found to be about the same one.
package requestid

import (
	"math/rand/v2"
	"net/http"
	"strconv"
)

// Header is where a client finds the id, and may give one of its own.
const Header = "X-Request-Id"

// maxLen bounds an id of a client's.
const maxLen = 128

// Of returns the id of a request: the client's own if it is a safe one, else a new one.
func Of(r *http.Request) string {
	if given := r.Header[Header]; len(given) == 1 && Safe(given[0]) {
		return given[0]
	}
	return strconv.FormatUint(rand.Uint64(), 36)
}

// Set puts the id of a request into the header of its answer.
func Set(answer http.Header, r *http.Request) string {
	id := Of(r)
	answer[Header] = []string{id}
	return id
}

// Safe reports an id that can stand in a log, a header and JSON as it is.
func Safe(id string) bool {
	if id == "" || len(id) > maxLen {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-', c == '_', c == '.', c == '~', c == ':', c == '/', c == '+', c == '=', c == '@':
		default:
			return false
		}
	}
	return true
}
