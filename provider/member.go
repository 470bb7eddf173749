package provider

import (
	"bytes"
	"encoding/json"
)

// unescape reads what stands between the quotes of a JSON string. What is malformed is returned as
// it stands there.
func unescape(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw
	}
	var s string
	quoted := append(append([]byte{'"'}, raw...), '"')
	if json.Unmarshal(quoted, &s) != nil {
		return raw
	}
	return []byte(s)
}

// text is a value that is a string, unescaped; empty if it is none or longer than is kept.
func (s *scanner) text() string {
	if !s.quoted || s.size > maxHead {
		return ""
	}
	if !s.long {
		return string(s.value())
	}
	return string(unescape(s.value()))
}

// count is a value that is a number of tokens or the like.
func (s *scanner) count() (int64, bool) {
	if s.quoted || s.size > longestTime {
		return 0, false
	}
	return parseAmount(string(s.value()))
}

// isTrue reports the value true.
func (s *scanner) isTrue() bool { return !s.quoted && string(s.value()) == "true" }

// place is where a member's value stands in a body.
type place struct{ from, to int }

// members finds the values of a name in the outermost object of a body, which may be cut off. There is
// more than one if the name is repeated: which of them counts, readers do not agree on.
func members(body []byte, want string) []place {
	var found []place
	i := blank(body, 0)
	if i == len(body) || body[i] != '{' {
		return nil
	}
	for i++; ; i++ {
		i = blank(body, i)
		end := skip(body, i)
		if end < 0 || body[i] != '"' {
			return found
		}
		key := unescape(body[i+1 : end-1])
		if i = blank(body, end); i == len(body) || body[i] != ':' {
			return found
		}
		from := blank(body, i+1)
		to := skip(body, from)
		if to < 0 {
			return found
		}
		if string(key) == want {
			found = append(found, place{from, to})
		}
		if i = blank(body, to); i == len(body) || body[i] != ',' {
			return found
		}
	}
}

// blank passes over blanks.
func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skip returns where the value that begins at i ends, -1 if it does not.
func skip(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch c := b[i]; c {
		case '"':
			if i = skipString(b, i); i < 0 {
				return -1
			}
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth <= 0 {
				if depth < 0 {
					return -1
				}
				return i + 1
			}
		default:
			if depth == 0 {
				return skipAtom(b, i)
			}
		}
		i++
	}
	return -1
}

func skipString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

func skipAtom(b []byte, i int) int {
	from := i
	for i < len(b) {
		switch c := b[i]; {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c == '.', c == '-', c == '+', c == 'E':
			i++
			continue
		}
		if i == from {
			return -1
		}
		return i
	}
	return -1 // it may go on
}

// replace returns a body with other text at some places, which are in order. The body stays as it is.
func replace(body []byte, at []place, with []byte) []byte {
	out := make([]byte, 0, len(body)+len(at)*len(with))
	last := 0
	for _, p := range at {
		out = append(append(out, body[last:p.from]...), with...)
		last = p.to
	}
	return append(out, body[last:]...)
}
