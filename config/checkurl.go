package config

import (
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// unixPrefix begins the address of a Unix socket.
const unixPrefix = "unix:"

var schemes = []string{"mem", "file", "redis", "rediss", "redis+cluster", "redis+sentinel", "http", "https"}

// store checks the store's URL. Messages do not show it: it may hold a password.
func (c *checker) store() {
	s := c.file.Store
	scheme, rest, ok := strings.Cut(s, ":")
	switch {
	case !ok || !slices.Contains(schemes, scheme):
		c.fail("store", "it has to begin with one of %s:", strings.Join(schemes, ":, "))
	case scheme == "mem" && rest != "":
		c.fail("store", "nothing follows mem:, the memory of this process")
	case scheme == "file" && (strings.HasPrefix(rest, "//") || strings.ContainsRune(rest, 0)):
		c.fail("store", "after file: comes a directory, as in file:/var/lib/sluice").Hint("without one it is the user's state directory")
	case scheme != "mem" && scheme != "file":
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "" {
			c.fail("store", "this is not a URL such as %s", example(scheme))
		}
	}
}

func example(scheme string) string {
	if strings.HasPrefix(scheme, "http") {
		return scheme + "://localhost:7979"
	}
	return scheme + "://localhost:6379"
}

// url checks an address that requests go to. Messages do not show it.
func (c *checker) url(path, s string, query bool) {
	if s == "" && !c.doc.Has(path) {
		return
	}
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		c.fail(path, "this is not a URL such as https://api.example.com")
	case u.User != nil:
		c.secret(path, "there is a password or user name in it").Hint("keys pass through from callers, or come from inject")
	case !query && (u.RawQuery != "" || u.ForceQuery) || u.Fragment != "":
		c.fail(path, "what follows ? or # cannot be part of it").Hint("requests bring their own")
	}
}

// listen checks where the daemon listens.
func (c *checker) listen() {
	s := c.file.Listen
	if path, ok := strings.CutPrefix(s, unixPrefix); ok {
		if path == "" || len(path) > 100 {
			c.fail("listen", "after unix: comes the path of a socket, at most 100 bytes long")
		}
		return
	}
	at := strings.LastIndexByte(s, ':')
	if at < 0 {
		c.fail("listen", "%s has no port", c.shown("listen", s)).Hint("an address is HOST:PORT as in 127.0.0.1:7979, or unix:PATH")
		return
	}
	host, port := s[:at], s[at+1:]
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strings.HasPrefix(port, "+") || n > 65535 {
		c.fail("listen", "%s: the port is a number from 0 to 65535", c.shown("listen", s))
	}
	bracketed := strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]")
	if bracketed {
		host = host[1 : len(host)-1]
	}
	_, err := netip.ParseAddr(host)
	if v6 := strings.Contains(host, ":"); v6 != bracketed || v6 && err != nil || host != "" && !v6 && !nameRE.MatchString(host) {
		c.fail("listen", "%s: the host is a name or an address, in [ ] if it has colons", c.shown("listen", s))
	}
}
