package config

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sluicehq/sluice/internal/storeurl"
)

// unixPrefix begins the address of a Unix socket.
const unixPrefix = "unix:"

// store checks the form of the store's URL; the store itself checks the URL's parameters. Messages do not show the URL
// because it may hold a password.
func (c *checker) store() {
	s := c.file.Store
	scheme, rest, err := storeurl.Split(s)
	switch {
	case err != nil:
		c.fail("store", "%s", err).Hint("use file:PATH, redis://HOST:6379 or http://HOST:7979")
	case scheme == "mem" || scheme == "file":
	case scheme == "http+unix":
		if !strings.HasPrefix(strings.TrimPrefix(rest, "//"), "/") {
			c.fail("store", "after http+unix: comes the path of a socket, as in http+unix:/run/sluice.sock")
		}
	case strings.HasPrefix(scheme, "http"):
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Hostname() == "" || u.Opaque != "" {
			c.fail("store", "this is not a URL such as %s://localhost:7979", scheme)
		}
	default:
		c.redis(scheme, rest)
	}
}

// redisExamples holds an example of an address for each kind of Redis URL.
var redisExamples = map[string]string{
	"redis+cluster": "://one:6379,two:6379", "redis+sentinel": "://one:26379,two:26379/MASTER", "redis+unix": ":///run/redis.sock",
}

// redis checks the form of a Redis URL. It splits the URL by hand because net/url does not accept several hosts.
func (c *checker) redis(scheme, rest string) {
	kind := strings.Replace(scheme, "rediss", "redis", 1)
	usual := "a URL is such as " + scheme + cmp.Or(redisExamples[kind], "://localhost:6379")
	bad := func(message, hint string) {
		note := c.fail("store", "%s", message)
		if strings.Contains(rest, "@") {
			note = note.Hide() // any part of it may be the password
		}
		note.Hint(hint)
	}
	after, ok := strings.CutPrefix(rest, "//")
	address, query, _ := strings.Cut(after, "?")
	authority, path, _ := strings.Cut(address, "/")
	if !ok {
		bad("after "+scheme+": come two slashes and the host", usual)
		return
	}
	if strings.Contains(path+query, "@") {
		bad("there is an @ after the host", "inside a user or a password write %2F for /, %3F for ?, %23 for #")
		return
	}
	hosts := strings.Split(authority[strings.LastIndexByte(authority, '@')+1:], ",")
	switch {
	case kind == "redis+unix" && (hosts[0] != "" || path == ""):
		bad("three slashes and the path of a socket follow "+scheme+":", usual)
	case kind == "redis+unix":
	case slices.ContainsFunc(hosts, func(h string) bool { return h == "" || h[0] == ':' }):
		bad("there is no host in it, or an empty one", usual)
	case len(hosts) > 1 && kind == "redis":
		bad("it names several hosts", "that is for redis+cluster:// and redis+sentinel://")
	case kind == "redis+sentinel" && strings.Trim(path, "/") == "":
		bad("it does not say which master the sentinels watch", usual)
	}
}

// url checks an address that requests go to. Messages do not show the address.
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

// tls checks that a certificate has a key and the other way round. It does not open the files, which may be on another
// machine: the daemon reads them.
func (c *checker) tls() {
	t := c.file.TLS
	for _, f := range []struct{ path, text, other, what string }{
		{"tls.cert", t.Cert, t.Key, "certificate"}, {"tls.key", t.Key, t.Cert, "key"},
	} {
		switch {
		case strings.Contains(f.text, pemBegins):
			c.secret(f.path, "this is the "+f.what+" itself").Hint("write it into a file that only the daemon can read, and the file's path here")
		case strings.ContainsRune(f.text, 0):
			c.fail(f.path, "this cannot be the path of a file")
		case f.text == "" && (f.other != "" || c.doc.Has(f.path)):
			c.fail(f.path, "is needed: the file with the %s, in PEM", f.what)
		}
	}
}

// pemBegins is the text that certificates and keys in PEM begin with.
const pemBegins = "-----BEGIN"

// listen checks the address that the daemon listens on.
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
	if v6 := strings.Contains(host, ":"); v6 != bracketed || v6 && err != nil || host != "" && !v6 && !IsName(host) {
		c.fail("listen", "%s: the host is a name or an address, in [ ] if it has colons", c.shown("listen", s))
	}
}
