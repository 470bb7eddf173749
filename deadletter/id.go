package deadletter

import (
	"math/rand/v2"
	"strings"
	"time"
)

// alphabet has no letter that looks like a digit or another letter. It is in byte order, so that ids sort by time.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

const (
	timeLen = 9 // milliseconds since 1970, enough for a thousand years
	idLen   = timeLen + 3
)

// newID returns a new id for the given time. Later ids sort after earlier ones.
func newID(now time.Time) string {
	var id [idLen]byte
	n := uint64(max(now.UnixMilli(), 0))
	for i := timeLen - 1; i >= 0; i-- {
		id[i] = alphabet[n%32]
		n /= 32
	}
	for i := timeLen; i < idLen; i++ {
		id[i] = alphabet[rand.IntN(32)]
	}
	return string(id[:])
}

// timeOf returns when an id was made.
func timeOf(id string) time.Time {
	var ms int64
	for i := range timeLen {
		ms = ms*32 + int64(strings.IndexByte(alphabet, id[i]))
	}
	return time.UnixMilli(ms).UTC()
}

// isID reports whether s is an id. This check protects foreign files in the directory, and keeps user input from naming
// files elsewhere.
func isID(s string) bool { return len(s) == idLen && isPrefix(s) }

func isPrefix(s string) bool {
	return s != "" && len(s) <= idLen && strings.Trim(s, alphabet) == ""
}
