package provider

import (
	"bytes"
	"encoding/json"
)

// unescape decodes the text between the quotes of a JSON string. It returns malformed text unchanged.
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

// text returns the value if it is a string, unescaped. It returns an empty string otherwise, or if it is too long.
func (s *scanner) text() string {
	if !s.quoted || s.size > maxHead {
		return ""
	}
	if !s.long {
		return string(s.value())
	}
	return string(unescape(s.value()))
}

// count returns the value if it is a count, such as a number of tokens.
func (s *scanner) count() (int64, bool) {
	if s.quoted || s.size > longestTime {
		return 0, false
	}
	return parseAmount(string(s.value()))
}

// isTrue reports whether the value is true.
func (s *scanner) isTrue() bool { return !s.quoted && string(s.value()) == "true" }

// span is the position of a value in a body.
type span struct{ from, to int }

// values finds the values of a name in the outermost object of a body, which may be incomplete. A repeated name has
// several values, and parsers disagree on which one counts.
func values(body []byte, want string) []span {
	var found []span
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
			found = append(found, span{from, to})
		}
		if i = blank(body, to); i == len(body) || body[i] != ',' {
			return found
		}
	}
}

// blank skips white space.
func blank(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\r' || b[i] == '\t') {
		i++
	}
	return i
}

// skip returns the end of the value that begins at i, or -1 if it is incomplete.
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
	return -1 // it may continue
}

// replace returns a copy of body with other text at some positions, which must be in order.
func replace(body []byte, at []span, with []byte) []byte {
	out := make([]byte, 0, len(body)+len(at)*len(with))
	last := 0
	for _, p := range at {
		out = append(append(out, body[last:p.from]...), with...)
		last = p.to
	}
	return append(out, body[last:]...)
}
