// Package roots reads the certificates that are trusted: those of the system, those that environment variables of many
// programs name, and those of a configuration.
package roots

import (
	"cmp"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"runtime"
	"sync"
)

// Roots are the certificates that the gate trusts at providers and at proxies on the way.
type Roots struct{ pool func() *x509.CertPool }

// New returns the certificates of the system, of the files and directories that the environment names, and own. They
// are read when they are first needed. A variable of other programs may replace the system's certificates for those;
// here each one only adds. warn is called for what the environment names and cannot be read; nil means no call.
func New(own []*x509.Certificate, getenv func(string) string, warn func(error)) *Roots {
	return &Roots{sync.OnceValue(func() *x509.CertPool {
		found := places(getenv)
		if len(own) == 0 && len(found) == 0 {
			return nil
		}
		known := seen{}
		pool := system(getenv, known)
		for _, cert := range own {
			pool.AddCert(cert)
		}
		for _, p := range found {
			if err := addPath(pool, known, p.path); err != nil && warn != nil {
				warn(fmt.Errorf("%s: %w", p.variable, err))
			}
		}
		return pool
	})}
}

// Pool returns the certificates; nil means those of the system. The caller must not change it.
func (r *Roots) Pool() *x509.CertPool {
	if r == nil {
		return nil
	}
	return r.pool()
}

// Config returns a configuration for clients that trust the certificates.
func (r *Roots) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: r.Pool()}
}

// system returns a new pool with the certificates of the system, or else with those built into this program.
func system(getenv func(string) string, known seen) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	switch {
	case runtime.GOOS == "darwin", runtime.GOOS == "ios", runtime.GOOS == "windows": // these ask the system at every verification
		return pool
	case err == nil && getenv("SSL_CERT_FILE") == "" && getenv(dirVariable) == "":
		return pool
	}
	if certs, ok := systemFile(); ok { // Go reads the files of these variables instead of the system's
		_ = addAll(pool, known, certs) // there is nothing better
		return pool
	}
	addBuiltin(pool)
	return pool
}

// addPath adds the certificates of a file or directory.
func addPath(pool *x509.CertPool, known seen, path string) error {
	certs, err := read(path)
	if err != nil {
		return err
	}
	if err := addAll(pool, known, certs); err != nil {
		return fmt.Errorf("read %s: no certificate in it is valid: %w", path, err)
	}
	return nil
}

// addAll adds certificates unless they are known, and leaves out those that are not valid. The error is about the first of
// these if no other is valid.
func addAll(pool *x509.CertPool, known seen, certs [][]byte) error {
	var wrong error
	valid := false
	for _, der := range certs {
		sum := sha256.Sum256(der)
		if known[sum] {
			valid = true
			continue
		}
		cert, err := x509.ParseCertificate(der)
		if err != nil {
			wrong = cmp.Or(wrong, err)
			continue
		}
		pool.AddCert(cert)
		known[sum], valid = true, true
	}
	if valid {
		return nil
	}
	return wrong
}
