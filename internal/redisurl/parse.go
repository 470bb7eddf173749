package redisurl

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Bounds on the parts of a URL.
const (
	maxURL    = 8 << 10
	maxHosts  = 64
	maxDB     = 1 << 16
	maxPrefix = 64
)

// Parse parses the URL of a Redis:
//
//	redis://[user[:password]@]host[:port][/db]
//	redis+cluster://[user[:password]@]host[:port],host[:port],...
//	redis+sentinel://[user[:password]@]sentinel[:port],sentinel[:port],.../MASTER[/db]
//	redis+unix://[user[:password]@]/path/of/socket[?db=1]
//
// With rediss instead of redis the connection uses TLS (not to a socket). The parameters set fields of [Address]: prefix
// and timeout; with TLS cert, key, ca, servername and insecure; with sentinels sentinel_user and sentinel_password.
// Characters that separate the parts of a URL are written as %XX inside a part. A + stands for itself.
//
// Parse does not use net/url, whose errors quote the whole URL with its password. Its own errors quote nothing that may be
// part of a password.
func Parse(raw string) (Address, error) {
	a, err := parse(raw)
	if err != nil {
		return Address{}, fmt.Errorf("redis URL: %w", err)
	}
	return a, nil
}

func parse(raw string) (Address, error) {
	a := Address{Prefix: DefaultPrefix, Timeout: DefaultTimeout}
	if len(raw) > maxURL {
		return a, fmt.Errorf("it is longer than %d bytes", maxURL)
	}
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return a, errors.New("expected redis://host:port or another of " + schemes())
	}
	if err := a.scheme(scheme); err != nil {
		return a, err
	}
	authority, rest := cutAt(rest, "/?#")
	path, rest := cutAt(rest, "?#")
	query, fragment := cutAt(rest, "#")
	if strings.Contains(path+query+fragment, "@") {
		return a, errors.New("there is an @ after the host: inside a user or a password write %2F for /, %3F for ?, %23 for #, and after the host %40 for @")
	}
	if fragment != "" {
		return a, errors.New("nothing may follow a #; write %23 for one that belongs to a name or a password")
	}
	hosts := authority
	if i := strings.LastIndexByte(authority, '@'); i >= 0 {
		hosts = authority[i+1:]
		if err := a.login(authority[:i]); err != nil {
			return a, err
		}
	}
	if err := a.where(hosts, path); err != nil {
		return a, err
	}
	if err := a.parameters(strings.TrimPrefix(query, "?")); err != nil {
		return a, err
	}
	return a, nil
}

// cutAt splits s before the first of the bytes in any.
func cutAt(s, any string) (before, from string) {
	if i := strings.IndexAny(s, any); i >= 0 {
		return s[:i], s[i:]
	}
	return s, ""
}

var known = []struct {
	name string
	mode Mode
	tls  bool
	unix bool
}{
	{name: "redis"},
	{name: "rediss", tls: true},
	{name: "redis+cluster", mode: Cluster},
	{name: "rediss+cluster", mode: Cluster, tls: true},
	{name: "redis+sentinel", mode: Sentinel},
	{name: "rediss+sentinel", mode: Sentinel, tls: true},
	{name: "redis+unix", unix: true},
}

// Schemes returns the schemes of the URLs that [Parse] reads.
func Schemes() []string {
	var names []string
	for _, k := range known {
		names = append(names, k.name)
	}
	return names
}

func schemes() string { return strings.Join(Schemes(), "://, ") + "://" }

func (a *Address) scheme(name string) error {
	for _, k := range known {
		if strings.EqualFold(k.name, name) {
			a.Mode, a.TLS, a.unix = k.mode, k.tls, k.unix
			return nil
		}
	}
	return errors.New("unknown scheme: expected one of " + schemes())
}

func (a *Address) login(s string) error {
	user, password, _ := strings.Cut(s, ":")
	var err error
	if a.User, err = url.PathUnescape(user); err != nil {
		return errors.New("user: a % has to be followed by two hexadecimal digits; write %25 for the sign itself")
	}
	if password, err = url.PathUnescape(password); err != nil {
		return errors.New("password: a % has to be followed by two hexadecimal digits; write %25 for the sign itself")
	}
	a.password = newSecret(password)
	return nil
}

// where parses the hosts and the path.
func (a *Address) where(hosts, path string) error {
	if a.unix {
		if hosts != "" {
			return errors.New("path: expected three slashes before the path of the socket, such as redis+unix:///run/redis.sock")
		}
		socket, err := url.PathUnescape(path)
		if err != nil || len(socket) < 2 || strings.HasSuffix(socket, "/") || strings.ContainsRune(socket, 0) {
			return errors.New("path: expected that of a socket, such as redis+unix:///run/redis.sock")
		}
		a.Hosts = []string{socket}
		return nil
	}
	if hosts == "" {
		return errors.New("host: it is missing; expected such as redis://localhost:6379")
	}
	port := "6379"
	if a.Mode == Sentinel {
		port = "26379"
	}
	names := strings.Split(hosts, ",")
	switch {
	case len(names) > 1 && a.Mode == Single:
		return errors.New("host: expected one; several are for redis+cluster:// and redis+sentinel://")
	case len(names) > maxHosts:
		return fmt.Errorf("host: expected at most %d", maxHosts)
	}
	for _, name := range names {
		host, err := parseHost(name, port)
		if err != nil {
			return err
		}
		a.Hosts = append(a.Hosts, host)
	}
	return a.path(path)
}

// parseHost parses host[:port].
func parseHost(s, port string) (string, error) {
	host := s
	switch i := strings.LastIndexByte(s, ':'); {
	case strings.HasPrefix(s, "["):
		end := strings.IndexByte(s, ']')
		if end < 0 {
			return "", errors.New("host: expected a ] after the IPv6 address")
		}
		host = s[1:end]
		if zone, err := url.PathUnescape(host); err == nil {
			host = zone // [fe80::1%25eth0] as in a URL; [fe80::1%eth0] is accepted too
		}
		if rest := s[end+1:]; rest != "" {
			if rest[0] != ':' {
				return "", errors.New("host: expected a colon and a port after the ] of an IPv6 address")
			}
			port = rest[1:]
		}
		ip, err := netip.ParseAddr(host)
		if err != nil || !ip.Is6() || strings.ContainsFunc(ip.Zone(), notInHost) {
			return "", errors.New("host: what is in brackets is not an IPv6 address")
		}
	case strings.Count(s, ":") > 1:
		return "", errors.New("host: expected host:port; an IPv6 address has to be in brackets, such as [::1]:6379")
	case i >= 0:
		host, port = s[:i], s[i+1:]
	}
	if host == "" {
		return "", errors.New("host: there is an empty one; expected such as localhost:6379")
	}
	if s[0] != '[' && strings.ContainsFunc(host, notInHost) {
		return "", errors.New("host: expected a name of letters, digits, dots and dashes, or an IP address")
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || port[0] == '+' {
		return "", errors.New("port: expected a number from 1 to 65535 (a password stands before an @: redis://user:PASSWORD@host)")
	}
	return net.JoinHostPort(host, strconv.FormatUint(n, 10)), nil
}

func notInHost(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune(".-_", r)
}

// path parses /db, or /MASTER/db with sentinels.
func (a *Address) path(s string) error {
	s = strings.TrimPrefix(s, "/")
	if a.Mode == Sentinel {
		name, db, _ := strings.Cut(s, "/")
		master, err := url.PathUnescape(name)
		if err != nil || master == "" || len(master) > 256 || strings.ContainsFunc(master, notInName) {
			return errors.New("master: expected the name that the sentinels watch, such as redis+sentinel://host/mymaster, of letters, digits and . - _")
		}
		a.Master, s = master, db
	}
	if s == "" {
		return nil
	}
	return a.database(s)
}

func notInName(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(".-_", r)
}

func (a *Address) database(s string) error {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n > maxDB || s[0] == '+' {
		return fmt.Errorf("database: expected a number from 0 to %d", maxDB)
	}
	if n != 0 && a.Mode == Cluster {
		return errors.New("database: a cluster has only 0; to keep users apart give each a prefix=")
	}
	a.DB = int(n)
	return nil
}

// notInPrefix excludes braces, which are hash tags, and characters with a meaning in ACL patterns.
func notInPrefix(r rune) bool { return notInName(r) && !strings.ContainsRune(":/+@", r) }

func names(ps []parameter) string {
	var all []string
	for _, p := range ps {
		all = append(all, p.name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
