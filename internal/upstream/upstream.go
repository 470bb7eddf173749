// Package upstream classifies errors of requests to a provider.
package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// The kinds of failure. They are labels of metrics, so their number is bounded.
const (
	DNS     = "dns"     // the name does not resolve
	Refused = "refused" // nothing listens at the address
	Connect = "connect" // no connection for another reason, such as no route
	TLS     = "tls"     // the TLS handshake failed, or the certificate is not valid
	Reset   = "reset"   // the connection broke before a response
	Timeout = "timeout" // no response in time
	Other   = "other"   // anything else, such as a response that is not HTTP
	Status  = "5xx"     // a response with a server error
)

// Kinds returns all kinds.
func Kinds() []string { return []string{DNS, Refused, Connect, TLS, Reset, Timeout, Other, Status} }

// OutOfFiles reports whether a request failed because this process or machine can open no more files, sockets among
// them. That says nothing of the provider.
func OutOfFiles(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || err != nil && has(err, "too many open files")
}

// Kind returns the kind of an error. It is empty for nil, for a request that its caller cancelled, and if this process
// can open no more files.
func Kind(err error) string {
	var (
		dns   *net.DNSError
		op    *net.OpError
		ne    net.Error
		alert tls.AlertError
	)
	switch {
	case err == nil, errors.Is(err, context.Canceled), OutOfFiles(err):
		return ""
	case errors.As(err, &dns):
		return DNS
	case errors.Is(err, syscall.ECONNREFUSED), has(err, "connection refused", "actively refused"):
		return Refused
	case isTLS(err), errors.As(err, &alert):
		return TLS
	case errors.As(err, &ne) && ne.Timeout(), errors.Is(err, context.DeadlineExceeded), errors.Is(err, syscall.ETIMEDOUT):
		return Timeout
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		has(err, "connection reset", "forcibly closed", "server closed idle connection", "broken pipe", "GOAWAY", "stream error", "client connection lost", "client connection force closed"):
		return Reset
	case errors.As(err, &op) && op.Op == "dial":
		return Connect
	}
	return Other
}

func isTLS(err error) bool {
	var (
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		unknown     x509.UnknownAuthorityError
		host        x509.HostnameError
		invalid     x509.CertificateInvalidError
	)
	return errors.As(err, &certificate) || errors.As(err, &record) || errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) ||
		has(err, "tls: ", "server gave HTTP response to HTTPS client", "x509: ")
}

func has(err error, parts ...string) bool {
	text := err.Error()
	for _, p := range parts {
		if strings.Contains(text, p) {
			return true
		}
	}
	return false
}

// Words describes an error without the request and without text of the response. It contains no keys, only names and
// addresses of hosts.
func Words(err error) string {
	var (
		dns *net.DNSError
		op  *net.OpError
	)
	errors.As(err, &op)
	at := func(what string) string {
		if op != nil && op.Addr != nil {
			return what + op.Addr.String()
		}
		return what + "the provider"
	}
	switch Kind(err) {
	case DNS:
		errors.As(err, &dns)
		return "the name " + dns.Name + " does not resolve: " + dns.Err
	case Refused:
		return at("connection refused by ")
	case Connect:
		return at("no connection to ") + ": " + op.Err.Error()
	case TLS:
		return tlsWords(err)
	case Reset:
		return at("the connection broke before an answer came from ")
	case Timeout:
		if op != nil && op.Op == "dial" {
			return at("no connection in time to ")
		}
		return "no answer in time: " + last(err)
	}
	return unquoted(last(err))
}

// unquoted returns the text before the first quote. What net/http quotes came from the other side, such as a header
// without a colon, and may hold a key.
func unquoted(text string) string {
	before, _, _ := strings.Cut(text, `"`)
	return strings.TrimRight(before, " :;[")
}

// last returns the innermost text. Wrappers such as *url.Error put the address of the request in front of it.
func last(err error) string {
	for {
		next := errors.Unwrap(err)
		if next == nil || next.Error() == "" || len(next.Error()) >= len(err.Error()) {
			break
		}
		err = next
	}
	text := err.Error()
	if len(text) > maxWords {
		text = text[:maxWords]
	}
	return strings.ToValidUTF8(text, "")
}

// maxWords bounds the text of an error, in bytes.
const maxWords = 160
