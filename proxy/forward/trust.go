package forward

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// silently is how many connections a client may end without a request before it counts as one that refuses the
	// certificate. Node checks a certificate when the handshake is over, and tells the server nothing.
	silently = 2
	// soon is how soon such a connection ends. Later ones were kept in reserve.
	soon = 5 * time.Second
	// maxTrusts bounds the clients that are remembered.
	maxTrusts = 1000
)

// trust remembers which clients refuse the gate's certificates.
type trust struct {
	mu   sync.Mutex
	of   map[sender]*verdict
	told map[string]bool // hosts of which the log has a line
}

// sender is what is known of a client before it sends a request: programs of one command may differ.
type sender struct{ host, agent string }

// verdict is what a client made of the certificate for a host.
type verdict struct {
	accepted bool // a request came
	silent   int  // connections in a row that ended without one
	refused  bool
	asked    int // how often it was asked for credentials
}

// at returns the verdict of a client, or nil if there are too many. The caller holds the lock.
func (t *trust) at(host, agent string) *verdict {
	v := t.of[sender{host, agent}]
	if v == nil && len(t.of) < maxTrusts {
		if t.of == nil {
			t.of = map[sender]*verdict{}
		}
		v = &verdict{}
		t.of[sender{host, agent}] = v
	}
	return v
}

// refuses reports whether a client has refused the certificate for a host.
func (t *trust) refuses(host, agent string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.of[sender{host, agent}]
	return v != nil && v.refused
}

// asks reports whether a client without credentials is asked for them: some programs send them only then. One that has none
// is asked twice.
func (s *Server) asks(r *http.Request) bool {
	host, port, _ := net.SplitHostPort(r.Host)
	if r.Method != http.MethodConnect {
		return false
	}
	site := s.o.Origins().find(host, port)
	return site != nil && s.trust.ask(site.host, r.UserAgent())
}

func (t *trust) ask(host, agent string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.at(host, agent)
	if v == nil || !v.accepted && v.asked >= silently {
		return false
	}
	v.asked++
	return true
}

// accept records a request.
func (t *trust) accept(host, agent string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.at(host, agent); v != nil {
		v.accepted, v.silent = true, 0
	}
}

// refuse records a refusal. It reports whether the log does not have it yet.
func (t *trust) refuse(host, agent string) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if v := t.at(host, agent); v != nil {
		v.refused = true
	}
	return t.tell(host)
}

// tell reports whether a host is mentioned for the first time. The caller holds the lock.
func (t *trust) tell(host string) bool {
	if t.told[host] {
		return false
	}
	if t.told == nil {
		t.told = map[string]bool{}
	}
	t.told[host] = true
	return true
}

// silence records a connection that ended without a request and without a reason. It reports whether this makes a refusal
// that the log does not have yet.
func (t *trust) silence(host, agent string) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v := t.at(host, agent)
	if v == nil || v.accepted {
		return false
	}
	if v.silent++; v.silent < silently {
		return false
	}
	v.refused = true
	return t.tell(host)
}

// notTrusted handles a handshake that failed.
func (s *Server) notTrusted(c *conn, err error) {
	var op *net.OpError
	switch {
	case errors.As(err, &op) && op.Op == "remote error" && strings.Contains(op.Err.Error(), "certificate"):
		if s.trust.refuse(c.host, c.agent) {
			s.warnRefused(c.host, " ("+op.Err.Error()+")")
		}
	case errors.As(err, &op) && op.Op == "local error" && strings.HasSuffix(op.Err.Error(), "bad record MAC"):
		// OpenSSL, and with it curl and Python, sends its alert about a certificate in the clear where TLS 1.3 is encrypted.
		if s.trust.refuse(c.host, c.agent) {
			s.warnRefused(c.host, "")
		}
	case s.o.Yield && (errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET)):
		s.fellSilent(c)
	default:
		s.o.Log.Debug("a handshake failed", "host", c.host, "error", err)
	}
}

// changed notes whether a connection to a gated host is used by a request.
func (s *Server) changed(nc net.Conn, state http.ConnState) {
	c := connBelow(nc)
	if c == nil || c.shaken.IsZero() {
		return
	}
	switch state {
	case http.StateActive:
		if c.used.CompareAndSwap(false, true) {
			s.trust.accept(c.host, c.agent)
		}
	case http.StateClosed:
		if s.o.Yield && !c.used.Load() && time.Since(c.shaken) < soon {
			s.fellSilent(c)
		}
	}
}

// fellSilent handles a connection that a client ended without a word.
func (s *Server) fellSilent(c *conn) {
	if s.ctx.Err() == nil && s.trust.silence(c.host, c.agent) {
		s.warnRefused(c.host, "")
	}
}

// warnRefused logs that a client refuses the certificate for a host.
func (s *Server) warnRefused(host, how string) {
	then := "--tunnel " + host + " leaves this host out"
	if s.o.Yield {
		then = "its further connections to this host go past the gate"
	}
	s.o.Log.Warn(fmt.Sprintf("a client refuses the gate's certificate for %s%s: it does not read the CA bundle, or expects one certificate only; %s", host, how, then))
}
