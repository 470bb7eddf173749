package provider

import "strings"

// item is one item of a structured field (RFC 9651), parsed leniently. It belongs to a list, such as
// "default";r=50;t=30 or 100;w=60, or to a dictionary, such as limit=100.
type item struct {
	key    string // in a dictionary
	value  string // without quotes
	quoted bool
	params []param
}

type param struct{ key, value string }

// param finds a parameter.
func (m *item) param(key string) (string, bool) {
	for _, p := range m.params {
		if p.key == key {
			return p.value, true
		}
	}
	return "", false
}

// parseList reads the items of a list or a dictionary, and counts the malformed ones.
func parseList(s string) (items []item, bad int) {
	if strings.TrimSpace(s) == "" {
		return nil, 0
	}
	for _, part := range split(s, ',') {
		m, ok := parseItem(part)
		if !ok {
			bad++
			continue
		}
		items = append(items, m)
	}
	return items, bad
}

func parseItem(s string) (m item, ok bool) {
	parts := split(s, ';')
	head := strings.TrimSpace(parts[0])
	if !strings.HasPrefix(head, `"`) {
		if key, value, is := strings.Cut(head, "="); is {
			m.key, head = strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value)
		}
	}
	if m.value, m.quoted, ok = bare(head); !ok {
		return m, false
	}
	for _, p := range parts[1:] {
		key, value, _ := strings.Cut(p, "=")
		value, _, ok = bare(strings.TrimSpace(value))
		if key = strings.ToLower(strings.TrimSpace(key)); key == "" || !ok {
			continue // keep the other parameters
		}
		m.params = append(m.params, param{key, value})
	}
	return m, true
}

// bare reads a quoted string, or an item without quotes.
func bare(s string) (value string, quoted, ok bool) {
	if !strings.HasPrefix(s, `"`) {
		return s, false, s != "" && printable(s) && !strings.Contains(s, `"`)
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return b.String(), true, i == len(s)-1
		case c == '\\':
			if i++; i == len(s) || s[i] != '"' && s[i] != '\\' {
				return "", true, false
			}
			b.WriteByte(s[i])
		case c < ' ' || c > '~':
			return "", true, false
		default:
			b.WriteByte(c)
		}
	}
	return "", true, false
}

// split cuts s at a separator that is not within quotes.
func split(s string, sep byte) []string {
	var parts []string
	start, within := 0, false
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && within:
			i++
		case s[i] == '"':
			within = !within
		case s[i] == sep && !within:
			parts = append(parts, s[start:i])
			start = i + 1
		}
	}
	return append(parts, s[start:])
}

// printable reports whether s is printable ASCII, which is all that a field may hold.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
