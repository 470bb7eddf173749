package upstream

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"unicode"
)

// Bounds on what is shown of a host and of a certificate, in bytes. Stores keep 256 bytes of a reason.
const (
	maxHost = 60
	maxName = 56
)

// atHost is an error of TLS with the host that it is about.
type atHost struct {
	error
	host string
}

func (e *atHost) Unwrap() error { return e.error }

// At returns an error with the host that the request was for, so that [Words] can name it. It changes only errors of TLS
// without a host.
func At(err error, host string) error {
	if err == nil || !isTLS(err) {
		return err
	}
	if _, known := errors.AsType[*atHost](err); known {
		return err
	}
	return &atHost{err, host}
}

// Untrusted reports whether this machine does not know the authority that issued the certificate of the other side.
func Untrusted(err error) bool {
	var unknown x509.UnknownAuthorityError
	return errors.As(err, &unknown)
}

// TrustHint says how to make the gate trust an authority.
const TrustHint = "if it is yours, name its certificate in upstream_ca of the configuration, or start the gate with it in SSL_CERT_FILE, NODE_EXTRA_CA_CERTS, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, " +
	"SSL_CERT_DIR, AWS_CA_BUNDLE or DENO_CERT"

// tlsWords describes an error of TLS. Names in certificates come from the other side, and are bounded.
func tlsWords(err error) string {
	op, _ := errors.AsType[*net.OpError](err)
	proxied := op != nil && op.Op == "proxyconnect" // says net/http
	where := "TLS failed: "
	if proxied {
		where = "TLS to the proxy failed: "
	}
	if at, ok := errors.AsType[*atHost](err); ok {
		err = at.error
		where = "TLS to " + printable(at.host, maxHost) + ": "
		if proxied {
			where = "TLS to the proxy on the way to " + printable(at.host, maxHost) + ": "
		}
	}
	if words := distrust(err); words != "" {
		return where + words
	}
	return where + printable(last(err), maxWords)
}

// distrust describes an authority that is not known, or returns "".
func distrust(err error) string {
	var unknown x509.UnknownAuthorityError
	if !errors.As(err, &unknown) {
		return ""
	}
	var chain []*x509.Certificate
	if failed, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		chain = failed.UnverifiedCertificates
	} else if unknown.Cert != nil {
		chain = []*x509.Certificate{unknown.Cert}
	}
	if len(chain) == 0 {
		return "this machine does not trust the authority that issued the certificate"
	}
	top := highest(chain)
	words := "the certificate was issued by " + issuerOf(top) + ", which this machine does not trust"
	if top == chain[0] && isSelfIssued(top) {
		words = "the certificate of " + issuerOf(top) + " is self-signed, and this machine does not trust it"
	}
	if strings.Contains(unknown.Error(), "candidate authority certificate") {
		words += "; another one of that name does not fit"
	}
	return words
}

// highest returns the certificate whose issuer is not among those that the other side showed. The first one is the other
// side's own.
func highest(shown []*x509.Certificate) *x509.Certificate {
	top := shown[0]
	for range shown { // names may form a circle
		if isSelfIssued(top) {
			return top
		}
		next := top
		for _, c := range shown {
			if c != top && bytes.Equal(c.RawSubject, top.RawIssuer) {
				next = c
			}
		}
		if next == top {
			return top
		}
		top = next
	}
	return top
}

func isSelfIssued(c *x509.Certificate) bool { return bytes.Equal(c.RawIssuer, c.RawSubject) }

// issuerOf returns the issuer's name in quotes.
func issuerOf(c *x509.Certificate) string {
	name := c.Issuer.CommonName
	for _, list := range [][]string{c.Issuer.Organization, c.Issuer.OrganizationalUnit} {
		if name == "" && len(list) > 0 {
			name = list[0]
		}
	}
	if name = printable(strings.ReplaceAll(name, `"`, "'"), maxName); name == "" {
		return "an authority without a name"
	}
	return `"` + name + `"`
}

// printable returns at most the given number of bytes of text, without what could affect a terminal.
func printable(text string, most int) string {
	text = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) { // nor marks that turn the direction of text around
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	if len(text) <= most {
		return strings.TrimSpace(text)
	}
	return strings.TrimSpace(strings.ToValidUTF8(text[:most-3], "")) + "..."
}
