package roots

import (
	"bytes"
	"crypto/x509"
	"io"
	"os"
	"runtime"
	"strings"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// goBundles lists the files in which Go looks for the certificates of a Linux system. The first that can be read counts.
var goBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt",
	"/etc/ssl/ca-bundle.pem",
	"/etc/pki/tls/cacert.pem",
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
	"/etc/ssl/cert.pem",
}

// Fallback makes Go trust the certificates built into this program if the system has none, as in an image from scratch. Call it once, before the
// first connection with TLS. Importing golang.org/x/crypto/x509roots/fallback does the same, but parses them in every process.
func Fallback(getenv func(string) string) {
	if runtime.GOOS == "linux" && hasBundle(getenv, goBundles) {
		return
	}
	pool := x509.NewCertPool()
	addBuiltin(pool)
	x509.SetFallbackRoots(pool)
}

// hasBundle reports whether Go will certainly find certificates in a file of the system, so that it needs no others.
func hasBundle(getenv func(string) string, files []string) bool {
	if strings.Contains(getenv("GODEBUG"), "x509usefallbackroots") {
		return false
	}
	if file := getenv("SSL_CERT_FILE"); file != "" {
		files = []string{file}
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err == nil && !info.Mode().IsRegular() {
			return false // a pipe can be read only once, and that is up to Go
		}
		if head, err := headOf(file); err == nil {
			return bytes.Contains(head, []byte("-----BEGIN CERTIFICATE-----\n"))
		}
	}
	return false
}

// headOf returns the beginning of a file, which has its first certificate.
func headOf(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	return io.ReadAll(io.LimitReader(f, 16<<10))
}

// addBuiltin adds the certificates built into this program.
func addBuiltin(pool *x509.CertPool) {
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		switch {
		case err != nil:
		case root.Constraint == nil:
			pool.AddCert(cert)
		default:
			pool.AddCertWithConstraint(cert, root.Constraint)
		}
	}
}
