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

// Set puts the id of a request into the header of its answer: the client's own if it is a safe one, else a new one.
func Set(answer http.Header, r *http.Request) string {
	id := ""
	if given := r.Header[Header]; len(given) == 1 && safe(given[0]) {
		id = given[0]
	} else {
		id = strconv.FormatUint(rand.Uint64(), 36)
	}
	answer[Header] = []string{id}
	return id
}

// safe reports an id that can stand in a log, a header and JSON as it is.
func safe(id string) bool {
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
