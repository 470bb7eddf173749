package forward

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	socks "golang.org/x/net/proxy"

	"github.com/sluicehq/sluice/internal/upstream"
)

var (
	// errPrivate is the error for an address that a client on another machine may not reach through the gate.
	errPrivate = errors.New("this address is not open to clients of other machines")
	// errProxy is the error for the proxy between the gate and a host.
	errProxy = errors.New("the proxy of the environment")
)

// keepAlive is the TCP keep-alive interval, which detects hosts that are gone.
const keepAlive = 30 * time.Second

// dialer connects directly. For clients on other machines it allows only public addresses: others could reach services
// that listen only for this machine.
func dialer(near bool) *net.Dialer {
	d := &net.Dialer{KeepAlive: keepAlive}
	if !near {
		d.Control = func(_, address string, _ syscall.RawConn) error { // sees the address that is really dialed
			ap, err := netip.ParseAddrPort(address)
			if err != nil || !isPublic(ap.Addr()) {
				return errPrivate
			}
			return nil
		}
	}
	return d
}

// notPublic lists ranges that lead to this machine or a network around it, in addition to those that netip knows.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("2001::/32"), netip.MustParsePrefix("fec0::/10"),
}

// isPublic reports whether an address is on the public internet.
func isPublic(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if !addr.IsGlobalUnicast() || addr.IsPrivate() || addr.IsLoopback() || addr.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range notPublic {
		if p.Contains(addr) {
			return false
		}
	}
	return true
}

// nameAllowed refuses host names that are plainly not public, for a client on another machine. If another proxy
// resolves names, this is the only possible check.
func nameAllowed(host string) error {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if addr, err := netip.ParseAddr(host); err == nil {
		if !isPublic(addr) {
			return errPrivate
		}
		return nil
	}
	last := host[strings.LastIndexByte(host, '.')+1:]
	numeric := last != "" && strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x") // some programs read 127.1 as an address
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || strings.HasSuffix(host, ".internal") || strings.HasSuffix(host, ".local") || numeric {
		return errPrivate
	}
	return nil
}

// dial connects to a host that is not gated: directly, or through the proxy of the environment.
func (s *Server) dial(ctx context.Context, host, port string, client Client) (net.Conn, error) {
	address := net.JoinHostPort(host, port)
	if !client.Near {
		if err := nameAllowed(host); err != nil {
			return nil, err
		}
	}
	choose := s.o.Proxy
	if client.Anonymous {
		choose = s.withoutPassword
	}
	through, err := choose(&url.URL{Scheme: "https", Host: address})
	if err != nil {
		return nil, fmt.Errorf("%w cannot be read", errProxy) // the value may hold a password
	}
	if through == nil {
		return dialer(client.Near).DialContext(ctx, "tcp", address)
	}
	c, err := s.dialThrough(ctx, through, address)
	if err != nil {
		return nil, fmt.Errorf("%w, %s: %w", errProxy, through.Host, err)
	}
	return c, nil
}

// withoutPassword returns the proxy for a URL without its user: the credentials are the command's, and not everybody's.
func (s *Server) withoutPassword(u *url.URL) (*url.URL, error) {
	p, err := s.o.Proxy(u)
	if err != nil || p == nil || p.User == nil {
		return p, err
	}
	bare := *p
	bare.User = nil
	return &bare, nil
}

// dialThrough connects to a host through a proxy.
func (s *Server) dialThrough(ctx context.Context, through *url.URL, address string) (net.Conn, error) {
	at := through.Host
	if through.Port() == "" {
		at = net.JoinHostPort(through.Hostname(), map[string]string{"https": "443", "socks5": "1080", "socks5h": "1080"}[through.Scheme])
		if through.Scheme == "http" {
			at = net.JoinHostPort(through.Hostname(), "80")
		}
	}
	direct := dialer(true)
	switch through.Scheme {
	case "socks5", "socks5h":
		var auth *socks.Auth
		if u := through.User; u != nil {
			auth = &socks.Auth{User: u.Username()}
			auth.Password, _ = u.Password()
		}
		d, err := socks.SOCKS5("tcp", at, auth, direct)
		if err != nil {
			return nil, err
		}
		return d.(socks.ContextDialer).DialContext(ctx, "tcp", address)
	case "http", "https":
		c, err := direct.DialContext(ctx, "tcp", at)
		if err != nil {
			return nil, err
		}
		if through.Scheme == "https" {
			t := tls.Client(c, &tls.Config{ServerName: through.Hostname(), MinVersion: tls.VersionTLS12, RootCAs: s.o.Roots()})
			if err := t.HandshakeContext(ctx); err != nil {
				_ = c.Close()
				return nil, upstream.At(err, through.Host)
			}
			c = t
		}
		return ask(ctx, c, through, address)
	}
	return nil, fmt.Errorf("its scheme %q is not known", through.Scheme)
}

// ask asks a proxy for a tunnel to address.
func ask(ctx context.Context, c net.Conn, through *url.URL, address string) (net.Conn, error) {
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	fail := func(err error) (net.Conn, error) {
		stop()
		_ = c.Close()
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return nil, err
	}
	q := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: http.Header{}}
	if u := through.User; u != nil {
		password, _ := u.Password()
		q.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	if err := q.Write(c); err != nil {
		return fail(err)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, q)
	if err != nil {
		return fail(err)
	}
	if resp.StatusCode != http.StatusOK {
		return fail(fmt.Errorf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))) // its own text may hold anything
	}
	if !stop() {
		return fail(context.DeadlineExceeded)
	}
	return &conn{Conn: c, in: in}, nil
}
