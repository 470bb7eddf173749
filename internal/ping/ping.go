// Package ping checks the way to a provider, step by step, with the time that each step takes: name, connection, TLS, and a call that
// costs nothing where the provider has one.
package ping

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/netip"
	"net/url"
	"time"
)

// The names of the steps.
const (
	DNS     = "dns"
	Connect = "connect"
	TLS     = "tls"
	Call    = "call"
)

// Within bounds each step.
const Within = 5 * time.Second

// How a step ended.
const (
	OK      = "ok"
	Failed  = "failed"
	Skipped = "skipped"
)

// Step is one step of the way.
type Step struct {
	Name   string
	State  string        // ok, failed or skipped
	Took   time.Duration // 0 if it was skipped
	Detail string        // what was found, or why it was skipped
	Err    error         // why it failed
	Status int           // of a call: the provider's answer, 0 if there was none
}

// Target is what is to be reached.
type Target struct {
	URL *url.URL
	// Call is sent when everything else has worked. Nil: nothing is.
	Call *http.Request
	// Without says why there is no call.
	Without string
	// Config is how TLS is spoken. Nil means with the authorities of the system.
	Config *tls.Config
}

// Check goes the way up to the first step that fails.
func (t *Target) Check(ctx context.Context) []Step {
	hop, proxied, err := t.hop()
	if err != nil {
		return []Step{{Name: DNS, State: Failed, Err: err}}
	}
	addresses, dns := resolve(ctx, hop.Hostname())
	if proxied {
		dns.Detail += " (proxy " + hop.Hostname() + ")"
	}
	steps := []Step{dns}
	if dns.State == Failed {
		return steps
	}
	conn, connect := dial(ctx, addresses, port(hop))
	if steps = append(steps, connect); connect.State == Failed {
		return steps
	}
	defer func() { _ = conn.Close() }() // whatever was asked has been answered
	if t.Call != nil {
		return append(steps, t.send(ctx, conn)...)
	}
	switch {
	case t.URL.Scheme != "https":
		steps = append(steps, Step{Name: TLS, State: Skipped, Detail: "the address is plain http"})
	case proxied:
		steps = append(steps, Step{Name: TLS, State: Skipped, Detail: "there is a proxy on the way, and no call to send"})
	default:
		steps = append(steps, t.handshake(ctx, conn))
	}
	if steps[len(steps)-1].State == Failed {
		return steps
	}
	return append(steps, Step{Name: Call, State: Skipped, Detail: t.Without})
}

// hop is where connections go: the provider, or the proxy of the environment.
func (t *Target) hop() (hop *url.URL, proxied bool, err error) {
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: t.URL})
	if err != nil {
		return nil, false, errors.New("the variable with the address of the proxy (HTTPS_PROXY or HTTP_PROXY) holds no address")
	}
	if proxy != nil {
		return proxy, true, nil
	}
	return t.URL, false, nil
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	case u.Scheme == "socks5", u.Scheme == "socks5h":
		return "1080"
	}
	return "80"
}

func resolve(ctx context.Context, host string) ([]netip.Addr, Step) {
	if addr, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{addr}, Step{Name: DNS, State: Skipped, Detail: host + " is an address"}
	}
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	began := time.Now()
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	s := Step{Name: DNS, State: OK, Took: time.Since(began)}
	if err != nil || len(found) == 0 {
		s.State, s.Err = Failed, plain(err, "no address of "+host+" was found")
		return nil, s
	}
	s.Detail = found[0].Unmap().String()
	if more := len(found) - 1; more > 0 {
		s.Detail += fmt.Sprintf(" and %d more", more)
	}
	return found, s
}

// dial connects to the first address that answers.
func dial(ctx context.Context, addresses []netip.Addr, port string) (net.Conn, Step) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	var failed error
	for i, a := range addresses {
		one, done := context.WithTimeout(ctx, Within/time.Duration(min(len(addresses)-i, 2)))
		conn, err := (&net.Dialer{}).DialContext(one, "tcp", net.JoinHostPort(a.Unmap().String(), port))
		done()
		if err == nil {
			return conn, Step{Name: Connect, State: OK, Took: time.Since(began), Detail: conn.RemoteAddr().String()}
		}
		if failed == nil {
			failed = err
		}
	}
	return nil, Step{Name: Connect, State: Failed, Took: time.Since(began), Err: plain(failed, "nothing answers")}
}

func (t *Target) config() *tls.Config {
	if t.Config != nil {
		return t.Config.Clone()
	}
	return &tls.Config{MinVersion: tls.VersionTLS12}
}

// handshake speaks TLS and nothing else.
func (t *Target) handshake(ctx context.Context, conn net.Conn) Step {
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	config := t.config()
	config.ServerName = t.URL.Hostname()
	began := time.Now()
	c := tls.Client(conn, config)
	err := c.HandshakeContext(ctx)
	return secured(time.Since(began), c.ConnectionState(), err)
}

func secured(took time.Duration, state tls.ConnectionState, err error) Step {
	s := Step{Name: TLS, State: OK, Took: took}
	if err != nil {
		s.State, s.Err = Failed, plain(err, "")
		return s
	}
	s.Detail = tls.VersionName(state.Version)
	if len(state.PeerCertificates) > 0 {
		s.Detail += ", certificate until " + state.PeerCertificates[0].NotAfter.UTC().Format(time.DateOnly)
	}
	return s
}

// send sends the call over a connection, and tells what came of TLS and of the call.
func (t *Target) send(ctx context.Context, conn net.Conn) []Step {
	ctx, cancel := context.WithTimeout(ctx, 2*Within)
	defer cancel()
	handshake := Step{Name: TLS, State: Skipped, Detail: "the address is plain http"}
	var shaking, sending time.Time
	sending = time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { shaking = time.Now() },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			handshake = secured(time.Since(shaking), state, err)
			sending = time.Now()
		},
	})
	used := false
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, TLSClientConfig: t.config(), ResponseHeaderTimeout: Within, MaxResponseHeaderBytes: 1 << 20,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if used {
				return nil, errors.New("the connection was closed")
			}
			used = true
			return conn, nil
		},
	}
	resp, err := transport.RoundTrip(t.Call.WithContext(ctx)) // not a client: a redirect must not take the key elsewhere
	call := Step{Name: Call, State: OK, Took: time.Since(sending)}
	if err != nil {
		if t.URL.Scheme == "https" && handshake.State == Skipped { // it did not come that far
			return []Step{{Name: TLS, State: Failed, Took: call.Took, Err: plain(err, "")}}
		}
		if handshake.State == Failed {
			return []Step{handshake}
		}
		call.State, call.Err = Failed, plain(err, "")
		return []Step{handshake, call}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // what it says does not matter
	_ = resp.Body.Close()
	call.Status = resp.StatusCode
	call.Detail = fmt.Sprintf("%s %s: %d", t.Call.Method, t.Call.URL.EscapedPath(), resp.StatusCode)
	return []Step{handshake, call}
}

// plain is an error without addresses in it.
func plain(err error, otherwise string) error {
	var op *net.OpError
	var dns *net.DNSError
	var timeout net.Error
	switch {
	case err == nil:
		return errors.New(otherwise)
	case errors.As(err, &dns) && dns.IsNotFound:
		return errors.New("there is no host " + dns.Name)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("no answer within %v", Within)
	case errors.As(err, &op):
		return op.Err
	}
	return err
}
