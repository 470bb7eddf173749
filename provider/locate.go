package provider

import (
	"slices"
	"strings"
)

// Locator is a dialect that knows below which prefix its provider keeps its calls, such as /v1. Clients disagree on whether
// a base URL contains it.
type Locator interface {
	// Locate returns the path at which an upstream has what a client sends to path. host and base are the host name and the
	// path of the upstream. Both paths are escaped. Locate adds the prefix where it is missing, and writes it once where it
	// is there twice. A path that the dialect does not know follows base as it is, and so does any if base is a slash.
	//
	// If the call is known and more than one place is possible, either lists the prefixes that it may have, and at is the
	// path as written.
	Locate(host, base, path string) (at string, either []string)
}

// places says where a provider keeps its calls.
type places struct {
	prefixes []string // what stands before a call; where there are several, the first is meant if the path has none
	several  bool     // none of the prefixes is meant more than another
	bare     bool     // calls are found without a prefix too
	calls    []string // first words of known calls, after the prefix
	asides   []string // beginnings of paths that are no calls, whatever is sent there
	// unprefixed are hosts that speak the dialect without a prefix.
	unprefixed []string
}

// JoinPath joins two escaped paths with one slash.
func JoinPath(a, b string) string {
	if (a == "" || a == "/") && strings.HasPrefix(b, "/") {
		return b
	}
	return strings.TrimSuffix(a, "/") + "/" + strings.TrimPrefix(b, "/")
}

// Locate implements [Locator].
func (v *vendor) Locate(host, base, path string) (at string, either []string) {
	return v.places.locate(host, base, path)
}

func (p *places) locate(host, base, path string) (at string, either []string) {
	at = JoinPath(base, path)
	if len(p.prefixes) == 0 || base == "/" || strings.Contains(path, "//") || slices.Contains(p.unprefixed, host) {
		return at, nil
	}
	base = strings.TrimSuffix(base, "/")
	prefix, rest, mixed := p.split(path)
	end := p.endOf(base)
	begun := prefix != "" && base != "" && strings.HasPrefix(prefix, base+"/") // the upstream's path is the beginning of the prefix
	repeats := begun || prefix != "" && end != "" && endsAlike(prefix, end)
	switch {
	case !repeats && !p.knows(rest):
		return at, nil
	case mixed:
		return at, p.prefixes
	case begun:
		return prefix + rest, nil
	case base == "" && prefix == "":
		return p.first(at, rest)
	case base == "":
		return p.whole(prefix) + rest, nil
	case end == "": // a gateway's own path
		return at, nil
	case prefix != "" && !repeats:
		return at, []string{end, prefix}
	}
	return base + rest, nil
}

// first returns the place of a call without a prefix at the root of an upstream.
func (p *places) first(at, rest string) (string, []string) {
	switch {
	case p.bare:
		return at, nil
	case p.several:
		return at, p.prefixes
	}
	return p.prefixes[0] + rest, nil
}

// isAside reports whether nothing at a path is a call.
func (p *places) isAside(path string) bool {
	return slices.ContainsFunc(p.asides, func(begin string) bool { return under(path, begin) })
}

// isCall reports whether a path is that of a known call, with or without its prefix.
func (p *places) isCall(path string) bool {
	_, rest, _ := p.split(path)
	return p.knows(rest) && !p.isAside(path)
}

// split cuts all prefixes off a path. An end of a prefix counts as the prefix. mixed reports that they differ.
func (p *places) split(path string) (prefix, rest string, mixed bool) {
	for rest = path; ; {
		next := ""
		for tail := range p.tails() {
			if len(tail) > len(next) && under(rest, tail) {
				next = tail
			}
		}
		if next == "" {
			return prefix, rest, mixed
		}
		mixed = mixed || prefix != "" && !endsAlike(prefix, next)
		if len(next) > len(prefix) {
			prefix = next
		}
		rest = rest[len(next):]
	}
}

// endOf returns the longest prefix, or end of one, that ends the path of an upstream. It is empty if there is none.
func (p *places) endOf(base string) (end string) {
	for tail := range p.tails() {
		if len(tail) > len(end) && strings.HasSuffix(base, tail) {
			end = tail
		}
	}
	return end
}

// tails yields the prefixes and their ends: /openai/v1 and /v1.
func (p *places) tails() func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, whole := range p.prefixes {
			for i := range len(whole) {
				if whole[i] == '/' && !yield(whole[i:]) {
					return
				}
			}
		}
	}
}

// whole returns the prefix that ends with tail.
func (p *places) whole(tail string) string {
	if slices.Contains(p.prefixes, tail) {
		return tail
	}
	i := slices.IndexFunc(p.prefixes, func(whole string) bool { return strings.HasSuffix(whole, tail) })
	return p.prefixes[i]
}

// knows reports whether a path without its prefix begins with the word of a known call.
func (p *places) knows(rest string) bool {
	return slices.ContainsFunc(p.calls, func(word string) bool {
		return len(rest) > len(word) && rest[1:len(word)+1] == word && (len(rest) == len(word)+1 || rest[len(word)+1] == '/')
	})
}

// under reports whether a path is at or below a prefix.
func under(path, prefix string) bool {
	return strings.HasPrefix(path, prefix) && (len(path) == len(prefix) || path[len(prefix)] == '/')
}

func endsAlike(a, b string) bool { return strings.HasSuffix(a, b) || strings.HasSuffix(b, a) }
