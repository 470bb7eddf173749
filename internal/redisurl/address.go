// Package redisurl parses the URLs of Redis servers, clusters and sentinels.
package redisurl

import (
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Mode is how Redis is deployed.
type Mode uint8

// The three deployments.
const (
	Single   Mode = iota // one server
	Cluster              // a Redis Cluster; the hosts are some of its nodes
	Sentinel             // a master with replicas; the hosts are its sentinels
)

func (m Mode) String() string {
	switch m {
	case Cluster:
		return "cluster"
	case Sentinel:
		return "sentinel"
	default:
		return "single"
	}
}

// The defaults of an [Address].
const (
	DefaultPrefix  = "sluice"
	DefaultTimeout = 2 * time.Second
)

// Address says how to reach Redis. [Parse] makes it. It is safe to log: its passwords are in no field that fmt prints.
type Address struct {
	Mode  Mode
	Hosts []string // host:port, with IPv6 in brackets; the path of a socket for redis+unix
	User  string
	DB    int
	// Prefix begins the name of every key and every channel: PREFIX:...
	Prefix string
	// Timeout is how long connecting may take, and how long a connection may owe a reply before it counts as dead.
	Timeout time.Duration

	Master       string // name of the master that the sentinels watch
	SentinelUser string // for logging in to the sentinels

	TLS        bool
	Cert, Key  string // files with the client's certificate and its key
	CA         string // file with the authorities that may have signed the server's certificate
	ServerName string // name that the server's certificate must have; "": that of the host
	Insecure   bool   // accept any certificate, for tests

	unix             bool
	password         secret
	sentinelPassword secret
}

// secret is a text that must not be printed. It is a pointer, because fmt prints a pointer inside a struct as a number even
// where it cannot call String.
type secret struct{ text *string }

func newSecret(s string) secret {
	if s == "" {
		return secret{}
	}
	return secret{&s}
}

func (s secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

const stars = "***"

func (s secret) String() string {
	if s.text == nil {
		return ""
	}
	return stars
}

// Unix reports whether the address is that of a socket.
func (a Address) Unix() bool { return a.unix }

// Password returns the password, or "".
func (a Address) Password() string { return a.password.reveal() }

// SentinelPassword returns the password for the sentinels, or "".
func (a Address) SentinelPassword() string { return a.sentinelPassword.reveal() }

// Redact replaces the passwords of a in a text. found reports whether there were any.
func (a Address) Redact(text string) (redacted string, found bool) {
	for _, s := range []secret{a.password, a.sentinelPassword} {
		if s.text != nil && strings.Contains(text, *s.text) {
			text, found = strings.ReplaceAll(text, *s.text, stars), true
		}
	}
	return text, found
}

// String returns the URL with *** for each password. It leaves out defaults.
func (a Address) String() string {
	var b strings.Builder
	b.WriteString("redis")
	if a.TLS {
		b.WriteByte('s')
	}
	switch {
	case a.unix:
		b.WriteString("+unix")
	case a.Mode != Single:
		b.WriteString("+" + a.Mode.String())
	}
	b.WriteString("://")
	if a.User != "" || a.password.text != nil {
		b.WriteString(escape(a.User))
		if a.password.text != nil {
			b.WriteString(":" + stars)
		}
		b.WriteByte('@')
	}
	if a.unix {
		b.WriteString(escapePath(a.Hosts[0]))
	} else {
		b.WriteString(strings.ReplaceAll(strings.Join(a.Hosts, ","), "%", "%25"))
	}
	if a.Mode == Sentinel {
		b.WriteString("/" + escape(a.Master))
	}
	if a.DB != 0 && !a.unix {
		b.WriteString("/" + strconv.Itoa(a.DB))
	}
	a.writeQuery(&b)
	return b.String()
}

func (a Address) writeQuery(b *strings.Builder) {
	mark := byte('?')
	put := func(name, value string) {
		if value == "" {
			return
		}
		b.WriteByte(mark)
		mark = '&'
		b.WriteString(name + "=" + value)
	}
	if a.unix && a.DB != 0 {
		put("db", strconv.Itoa(a.DB))
	}
	if a.Prefix != DefaultPrefix {
		put("prefix", escapePath(a.Prefix))
	}
	if a.Timeout != DefaultTimeout {
		put("timeout", a.Timeout.String())
	}
	put("sentinel_user", escape(a.SentinelUser))
	put("sentinel_password", a.sentinelPassword.String())
	put("cert", escapePath(a.Cert))
	put("key", escapePath(a.Key))
	put("ca", escapePath(a.CA))
	put("servername", escape(a.ServerName))
	if a.Insecure {
		put("insecure", "true")
	}
}

// GoString keeps %#v from printing the fields.
func (a Address) GoString() string { return "redisurl.Address{" + a.String() + "}" }

// escape escapes everything that separates the parts of a URL. url.PathUnescape undoes it.
func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

// escapePath is escape without slashes and colons, which are easier to read as they are.
func escapePath(s string) string {
	return strings.NewReplacer("%2F", "/", "%3A", ":").Replace(escape(s))
}
