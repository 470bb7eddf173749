package forward

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// leafLife is how long a certificate for one host is valid. A new one is made after half of it.
	leafLife = 7 * 24 * time.Hour
	// backdated is how far a client's clock may be behind.
	backdated = 24 * time.Hour
	// maxLeaves bounds the cache. Only gated hosts get certificates, so it is rarely reached.
	maxLeaves = 1024
)

// ErrNotCovered means that the name constraints of an authority do not allow a host.
var ErrNotCovered = errors.New("the certificate authority does not cover this host")

// Authority issues certificates for gated hosts. Its own certificate has name constraints: clients that trust it accept
// it only for the hosts it was made for and their subdomains. It is safe for concurrent use.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	leaf *ecdsa.PrivateKey // shared by all leaves: it never leaves this process

	mu     sync.Mutex
	leaves map[string]*tls.Certificate
}

// NewAuthority makes an authority for hosts, which are names or IP addresses. Its key exists only in memory.
func NewAuthority(name string, hosts []string, life time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-backdated), NotAfter: now.Add(life),
		KeyUsage: x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true, MaxPathLenZero: true,
	}
	constrain(template, hosts)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return newAuthority(cert, key)
}

func newAuthority(cert *x509.Certificate, key *ecdsa.PrivateKey) (*Authority, error) {
	leaf, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	return &Authority{cert: cert, key: key, leaf: leaf, leaves: map[string]*tls.Certificate{}}, nil
}

// constrain allows only hosts. Both kinds of names, DNS and IP, get a constraint, because a kind without one would be
// unrestricted.
func constrain(template *x509.Certificate, hosts []string) {
	template.PermittedDNSDomainsCritical = true
	for _, host := range hosts {
		addr, err := netip.ParseAddr(host)
		if err != nil {
			template.PermittedDNSDomains = append(template.PermittedDNSDomains, strings.ToLower(host))
			continue
		}
		ip := net.IP(addr.Unmap().AsSlice())
		template.PermittedIPRanges = append(template.PermittedIPRanges, &net.IPNet{IP: ip, Mask: net.CIDRMask(8*len(ip), 8*len(ip))})
	}
	slices.Sort(template.PermittedDNSDomains)
	template.PermittedDNSDomains = slices.Compact(template.PermittedDNSDomains)
	if len(template.PermittedDNSDomains) == 0 {
		template.PermittedDNSDomains = []string{"none.invalid"}
	}
	if len(template.PermittedIPRanges) == 0 {
		template.ExcludedIPRanges = []*net.IPNet{{IP: net.IPv4zero.To4(), Mask: net.CIDRMask(0, 32)}, {IP: net.IPv6zero, Mask: net.CIDRMask(0, 128)}}
	}
}

func serial() *big.Int {
	n := make([]byte, 16)
	_, _ = rand.Read(n) // never fails
	n[0] &= 0x7f
	return new(big.Int).SetBytes(n)
}

// Certificate returns the authority's certificate in PEM.
func (a *Authority) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: pemCertificate, Bytes: a.cert.Raw})
}

// Fingerprint returns the SHA-256 of the authority's certificate in hexadecimal.
func (a *Authority) Fingerprint() string {
	sum := sha256.Sum256(a.cert.Raw)
	return hex.EncodeToString(sum[:])
}

// Valid returns when the authority's validity begins and ends.
func (a *Authority) Valid() (from, until time.Time) { return a.cert.NotBefore, a.cert.NotAfter }

// Name returns the common name of the authority.
func (a *Authority) Name() string { return a.cert.Subject.CommonName }

// Hosts returns the hosts that the authority covers, sorted.
func (a *Authority) Hosts() []string {
	hosts := slices.DeleteFunc(slices.Clone(a.cert.PermittedDNSDomains), func(h string) bool { return strings.HasSuffix(h, ".invalid") })
	for _, r := range a.cert.PermittedIPRanges {
		hosts = append(hosts, r.IP.String())
	}
	slices.Sort(hosts)
	return hosts
}

// Covers reports whether clients accept certificates of this authority for a host.
func (a *Authority) Covers(host string) bool {
	if addr, err := netip.ParseAddr(host); err == nil {
		return slices.ContainsFunc(a.cert.PermittedIPRanges, func(r *net.IPNet) bool { return r.Contains(net.IP(addr.Unmap().AsSlice())) })
	}
	host = strings.ToLower(host)
	return slices.ContainsFunc(a.cert.PermittedDNSDomains, func(d string) bool { return host == d || strings.HasSuffix(host, "."+d) })
}

// Leaf returns a certificate for a host, cached or new. The error is ErrNotCovered if the authority does not cover the
// host.
func (a *Authority) Leaf(host string) (*tls.Certificate, error) {
	host = strings.ToLower(host)
	if !a.Covers(host) {
		return nil, fmt.Errorf("%s: %w", host, ErrNotCovered)
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	if c := a.leaves[host]; c != nil && now.Before(c.Leaf.NotAfter.Add(-leafLife/2)) {
		return c, nil
	}
	template := &x509.Certificate{
		SerialNumber: serial(), Subject: pkix.Name{Organization: []string{a.Name()}}, NotBefore: now.Add(-backdated), NotAfter: now.Add(leafLife),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if addr, err := netip.ParseAddr(host); err == nil {
		template.IPAddresses = []net.IP{addr.Unmap().AsSlice()}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, a.leaf.Public(), a.key)
	if err != nil {
		return nil, err
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	for old := range a.leaves { // drop any one: it is made again when needed
		if len(a.leaves) < maxLeaves {
			break
		}
		delete(a.leaves, old)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.leaf, Leaf: leaf}
	a.leaves[host] = c
	return c, nil
}

// Types of PEM blocks.
const (
	pemCertificate = "CERTIFICATE"
	pemKey         = "PRIVATE KEY"
)

// marshal returns certificate and key in PEM.
func (a *Authority) marshal() ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(a.key)
	if err != nil {
		return nil, err
	}
	return append(a.Certificate(), pem.EncodeToMemory(&pem.Block{Type: pemKey, Bytes: der})...), nil
}

// parseAuthority reads the output of marshal.
func parseAuthority(text []byte) (*Authority, error) {
	var cert *x509.Certificate
	var key *ecdsa.PrivateKey
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		switch block.Type {
		case pemCertificate:
			c, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				return nil, err
			}
			cert = c
		case pemKey:
			k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
			if err != nil {
				return nil, errors.New("its key cannot be read") // the error must not show the key
			}
			key, _ = k.(*ecdsa.PrivateKey)
		}
	}
	switch {
	case cert == nil || key == nil:
		return nil, errors.New("it does not hold a certificate and its key")
	case !cert.IsCA:
		return nil, errors.New("its certificate is not that of an authority")
	}
	public, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok || !public.Equal(key.Public()) {
		return nil, errors.New("its certificate and its key do not belong together")
	}
	if !bytes.Equal(cert.RawIssuer, cert.RawSubject) {
		return nil, errors.New("its certificate is not a root")
	}
	return newAuthority(cert, key)
}
