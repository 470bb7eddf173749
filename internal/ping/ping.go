// Package ping checks the connection to a provider step by step and measures each step: DNS, connection, TLS, and a
// call that costs nothing, if the provider has one.
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

	"github.com/sluicehq/sluice/internal/upstream"
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

// The results of a step.
const (
	OK      = "ok"
	Failed  = "failed"
	Skipped = "skipped"
)

// Step is the result of one step.
type Step struct {
	Name   string
	State  string        // ok, failed or skipped
	Took   time.Duration // 0 if it was skipped
	Detail string        // what was found, or why it was skipped
	Err    error         // why it failed
	Status int           // status of the provider's response to a call; 0 if there was none
}

// Target is the provider to reach.
type Target struct {
	URL *url.URL
	// Call is sent if all other steps have worked. Nil means no call.
	Call *http.Request
	// Without says why there is no call.
	Without string
	// Config is the TLS configuration. Nil means the system's authorities.
	Config *tls.Config
}

// Check runs the steps up to the first that fails.
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
	defer func() { _ = conn.Close() }() // the check is over
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

// hop returns where to connect: the provider, or the proxy from the environment.
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

// dial connects to the first address that responds.
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

// handshake only performs a TLS handshake.
func (t *Target) handshake(ctx context.Context, conn net.Conn) Step {
	ctx, cancel := context.WithTimeout(ctx, Within)
	defer cancel()
	config := t.config()
	config.ServerName = t.URL.Hostname()
	began := time.Now()
	c := tls.Client(conn, config)
	err := c.HandshakeContext(ctx)
	return t.secured(time.Since(began), c.ConnectionState(), err)
}

func (t *Target) secured(took time.Duration, state tls.ConnectionState, err error) Step {
	s := Step{Name: TLS, State: OK, Took: took}
	if err != nil {
		s.State, s.Err = Failed, t.insecure(err)
		return s
	}
	s.Detail = tls.VersionName(state.Version)
	if len(state.PeerCertificates) > 0 {
		s.Detail += ", certificate until " + state.PeerCertificates[0].NotAfter.UTC().Format(time.DateOnly)
	}
	return s
}

// send sends the call over a connection, and returns the steps for TLS and the call.
func (t *Target) send(ctx context.Context, conn net.Conn) []Step {
	ctx, cancel := context.WithTimeout(ctx, 2*Within)
	defer cancel()
	handshake := Step{Name: TLS, State: Skipped, Detail: "the address is plain http"}
	var shaking, sending time.Time
	sending = time.Now()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		TLSHandshakeStart: func() { shaking = time.Now() },
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			handshake = t.secured(time.Since(shaking), state, err)
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
	resp, err := transport.RoundTrip(t.Call.WithContext(ctx)) // not a client: a redirect must not send the key elsewhere
	call := Step{Name: Call, State: OK, Took: time.Since(sending)}
	if err != nil {
		if t.URL.Scheme == "https" && handshake.State == Skipped { // the handshake did not begin
			return []Step{{Name: TLS, State: Failed, Took: call.Took, Err: t.insecure(err)}}
		}
		if handshake.State == Failed {
			handshake.Err = t.insecure(err) // the transport knows whether it is about the proxy
			return []Step{handshake}
		}
		call.State, call.Err = Failed, plain(err, "")
		return []Step{handshake, call}
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // the content does not matter
	_ = resp.Body.Close()
	call.Status = resp.StatusCode
	call.Detail = fmt.Sprintf("%s %s: %d", t.Call.Method, t.Call.URL.EscapedPath(), resp.StatusCode)
	return []Step{handshake, call}
}

// described is an error in other words.
type described struct {
	error
	words string
}

func (e *described) Error() string { return e.words }
func (e *described) Unwrap() error { return e.error }

// insecure returns the error of a handshake. It says whose certificate is not trusted.
func (t *Target) insecure(err error) error {
	if upstream.Kind(err) != upstream.TLS {
		return plain(err, "")
	}
	return &described{err, upstream.Words(upstream.At(err, t.URL.Host))}
}

// plain returns an error without addresses.
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
