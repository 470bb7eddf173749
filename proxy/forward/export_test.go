package forward

import (
	"crypto/rand"
	"crypto/x509"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/sluicehq/sluice/proxy"
)

// Forge verifies a certificate for a host that an authority was not made for.
func Forge(a *Authority, host string) error {
	template := &x509.Certificate{SerialNumber: serial(), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	if addr, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{addr.AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.leaf.Public(), a.key)
	if err != nil {
		return err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	_, err = leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host})
	return err
}

// LookNow makes the next call check the file.
func LookNow(f *File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.looked = time.Time{}
}

// Find routes HOST:PORT/PATH.
func Find(o *Origins, at string) (in proxy.Intercepted) {
	address, path, _ := strings.Cut(at, "/")
	host, port, _ := net.SplitHostPort(address)
	if s := o.find(host, port); s != nil {
		in = s.route("/" + path)
	}
	return in
}

// Allowed reports whether a client of another machine may name a host.
func Allowed(host string) bool { return nameAllowed(host) == nil }
