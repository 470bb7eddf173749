package sluice

import "strings"

// Store returns the address of the store, without its passwords.
func (g *Gate) Store() string { return withoutPassword(g.url) }

const stars = "***" // replaces a password

// withoutPassword masks the passwords of an address: before the host, and in the query parameters. It parses the
// address by hand, because net/url does not accept several hosts.
func withoutPassword(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return address
	}
	authority, rest := cutAt(rest, "/?#")
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		if user, _, ok := strings.Cut(authority[:at], ":"); ok {
			authority = user + ":" + stars + authority[at:]
		}
	}
	path, query := cutAt(rest, "?")
	if query != "" {
		pairs := strings.Split(query[1:], "&")
		for i, pair := range pairs {
			if name, _, ok := strings.Cut(pair, "="); ok && strings.Contains(strings.ToLower(name), "password") {
				pairs[i] = name + "=" + stars
			}
		}
		query = "?" + strings.Join(pairs, "&")
	}
	return scheme + "://" + authority + path + query
}

// cutAt splits s before the first of the bytes in any.
func cutAt(s, any string) (before, from string) {
	if i := strings.IndexAny(s, any); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}
