package forward

import (
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/net/http/httpproxy"
)

// Environment variables that name proxies, in the order in which they are read. Each exists in lower case too.
const (
	envHTTPS = "HTTPS_PROXY"
	envHTTP  = "HTTP_PROXY"
	envAll   = "ALL_PROXY"
	envNo    = "NO_PROXY"
)

// ProxyVariables returns the environment variables that name a proxy, in upper and lower case.
func ProxyVariables() []string {
	return []string{envHTTPS, envHTTP, envAll, strings.ToLower(envHTTPS), strings.ToLower(envHTTP), strings.ToLower(envAll)}
}

// EncryptedProxyVariables returns those that name a proxy for HTTPS alone.
func EncryptedProxyVariables() []string { return []string{envHTTPS, strings.ToLower(envHTTPS)} }

// HasPlainProxy reports whether the environment names a proxy for plain HTTP.
func HasPlainProxy(getenv func(string) string) bool { return first(getenv, envHTTP, envAll) != "" }

// NoProxyOf returns the hosts that the environment lists to reach without a proxy.
func NoProxyOf(getenv func(string) string) string { return first(getenv, envNo) }

// first returns the first variable that is set, in upper or lower case.
func first(getenv func(string) string, names ...string) string {
	for _, name := range names {
		for _, n := range []string{name, strings.ToLower(name)} {
			if v := getenv(n); v != "" {
				return v
			}
		}
	}
	return ""
}

// NoProxyVariables returns the environment variables that list hosts to reach without a proxy.
func NoProxyVariables() []string { return []string{envNo, strings.ToLower(envNo)} }

// FromEnvironment returns the proxy that the environment names for a URL, as net/http does, and uses ALL_PROXY if
// nothing else is set. It ignores proxies at an address in not: a proxy must not be its own proxy.
func FromEnvironment(getenv func(string) string, not ...string) func(*url.URL) (*url.URL, error) {
	c := httpproxy.Config{HTTPSProxy: first(getenv, envHTTPS, envAll), HTTPProxy: first(getenv, envHTTP, envAll), NoProxy: first(getenv, envNo)}
	choose := c.ProxyFunc()
	return func(u *url.URL) (*url.URL, error) {
		p, err := choose(u)
		if err != nil || p == nil || slices.Contains(not, p.Host) {
			return nil, err
		}
		return p, nil
	}
}

// Usable reports whether the proxy that the environment names for a URL, if any, is of a kind that tunnels can go through.
func Usable(through func(*url.URL) (*url.URL, error), u *url.URL) bool {
	p, err := through(u)
	return err == nil && (p == nil || slices.Contains([]string{"http", "https", "socks5", "socks5h"}, p.Scheme))
}

// NoProxy returns the entries of a NO_PROXY that exempt none of the gated addresses, which are hosts with ports.
func NoProxy(list string, gated []string) string {
	var keep []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if entry != "" && !slices.ContainsFunc(gated, func(address string) bool { return exempts(entry, address) }) {
			keep = append(keep, entry)
		}
	}
	return strings.Join(keep, ",")
}

// exempts reports whether any program might read a NO_PROXY entry so that it matches an address. Programs differ: for
// some, example.com includes its subdomains.
func exempts(entry, address string) bool {
	host, port, err := net.SplitHostPort(address)
	if err != nil || entry == "*" {
		return true
	}
	entry = strings.ToLower(entry)
	if prefix, err := netip.ParsePrefix(entry); err == nil {
		addr, err := netip.ParseAddr(host)
		return err == nil && prefix.Contains(addr.Unmap())
	}
	if h, p, err := net.SplitHostPort(entry); err == nil {
		if p != port {
			return false
		}
		entry = h
	}
	entry = strings.TrimLeft(strings.Trim(entry, "[]"), "*.")
	return host == entry || strings.HasSuffix(host, "."+entry)
}
