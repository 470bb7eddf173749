package storeurl

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/loopback"
)

// Label returns a short name for the store at a URL that [Split] accepts: its kind and, for a store that many can reach
// in many places, a hash. URLs of the same store have the same label where that can be seen from the URL. Different
// databases and prefixes have different ones. Logins, certificates and timeouts make no difference.
//
// A file store needs no hash: what is labelled lies in the store's own directory. The label is safe to show and to use
// as part of a file name.
func Label(store string) string {
	scheme, rest, _ := strings.Cut(store, ":")
	family, mode, _ := strings.Cut(scheme, "+")
	rest = strings.TrimPrefix(rest, "//")
	switch family {
	case "http", "https":
		if mode == "unix" {
			return label("http", "unix", rest)
		}
		authority, _ := cutAt(rest, "/?#")
		port := "80"
		if family == "https" {
			port = "443"
		}
		return label("http", hostPort(withoutLogin(authority), port))
	case "redis", "rediss":
		return redisLabel(mode, rest)
	}
	return scheme
}

func redisLabel(mode, rest string) string {
	authority, rest := cutAt(rest, "/?")
	path, query := cutAt(rest, "?")
	database, prefix := "0", "sluice"
	var parts []string
	switch mode {
	case "unix":
		parts = append(parts, unescape(path))
	default:
		port := "6379"
		if mode == "sentinel" {
			port = "26379"
		}
		for host := range strings.SplitSeq(withoutLogin(authority), ",") {
			parts = append(parts, hostPort(host, port))
		}
		slices.Sort(parts) // their order makes no difference
		path = strings.TrimPrefix(path, "/")
		if mode == "sentinel" {
			master, after, _ := strings.Cut(path, "/")
			parts, path = append(parts, unescape(master)), after
		}
		if path != "" {
			database = path
		}
	}
	for pair := range strings.SplitSeq(strings.TrimPrefix(query, "?"), "&") {
		switch name, value, _ := strings.Cut(pair, "="); name {
		case "prefix":
			prefix = unescape(value)
		case "db":
			database = value
		}
	}
	return label("redis", append(parts, mode, strings.TrimLeft(database, "0"), prefix)...)
}

// label returns a kind with the hash of what tells stores of that kind apart.
func label(kind string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return kind + "-" + hex.EncodeToString(sum[:6])
}

func withoutLogin(authority string) string {
	return authority[strings.LastIndexByte(authority, '@')+1:]
}

// hostPort returns HOST:PORT. All names of this machine are one host.
func hostPort(s, port string) string {
	host := strings.Trim(s, "[]")
	if h, p, err := net.SplitHostPort(s); err == nil {
		host, port = h, p
	}
	if loopback.Host(host) {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(strings.ToLower(host), port)
}

// cutAt splits s before the first of the bytes in any.
func cutAt(s, any string) (before, from string) {
	if i := strings.IndexAny(s, any); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

func unescape(s string) string {
	if text, err := url.PathUnescape(s); err == nil {
		return text
	}
	return s
}
