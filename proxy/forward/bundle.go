package forward

import (
	"bytes"
	"crypto/sha256"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// bundleVariables lists environment variables that name files of trusted certificates.
var bundleVariables = []string{
	"SSL_CERT_FILE",       // OpenSSL, Go, Python
	"REQUESTS_CA_BUNDLE",  // requests, httpx, pip
	"CURL_CA_BUNDLE",      // curl, requests
	"NODE_EXTRA_CA_CERTS", // Node; the only one that adds to the trusted certificates instead of replacing them
	"GIT_SSL_CAINFO",
	"AWS_CA_BUNDLE", // boto3, aws
	"DENO_CERT",
	"CARGO_HTTP_CAINFO",
}

// furtherVariables are read by fewer programs. They are changed only if they are set, because those programs would then
// not trust the authority.
var furtherVariables = []string{
	"PIP_CERT", "NIX_SSL_CERT_FILE", "HTTPLIB2_CA_CERTS", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH", "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE", "BUNDLE_SSL_CA_CERT", "npm_config_cafile",
}

// BundleVariables returns the environment variables that tell programs which certificates to trust.
func BundleVariables(getenv func(string) string) []string {
	return append(slices.Clone(bundleVariables), slices.DeleteFunc(slices.Clone(furtherVariables), func(name string) bool { return getenv(name) == "" })...)
}

// systemBundles lists the files in which systems keep their trusted certificates, most common first.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // newer Fedora
	"/etc/ssl/cert.pem",                                 // macOS, Alpine, OpenBSD
	"/usr/local/share/certs/ca-root-nss.crt",            // FreeBSD
}

// maxBundle bounds how much is read of one file. A system's bundle has a few hundred kilobytes.
const maxBundle = 16 << 20

// Bundle returns the certificates that one command should trust, in PEM: those of the authority, of the system, and of
// the files or directories that the environment names. missing lists the files of the environment that could not be
// read. If the system has no bundle, the roots built into this program replace it.
func Bundle(authority *Authority, getenv func(string) string) (text []byte, missing []error) {
	b := &certificates{seen: map[[sha256.Size]byte]bool{}}
	b.add(authority.cert.Raw)
	for _, name := range BundleVariables(getenv) {
		if path := getenv(name); path != "" {
			if err := b.path(path); err != nil {
				missing = append(missing, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	for _, path := range systemBundles {
		if err := b.path(path); err == nil {
			return b.text.Bytes(), missing
		}
	}
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot express partial trust
			b.add(root.Certificate)
		}
	}
	return b.text.Bytes(), missing
}

// certificates collects certificates without duplicates.
type certificates struct {
	text bytes.Buffer
	seen map[[sha256.Size]byte]bool
}

func (c *certificates) add(der []byte) {
	if sum := sha256.Sum256(der); !c.seen[sum] {
		c.seen[sum] = true
		_ = pem.Encode(&c.text, &pem.Block{Type: pemCertificate, Bytes: der}) // a buffer never fails
	}
}

// path adds the certificates of a file, or of the files in a directory. It copies nothing else, because a file may hold
// a key.
func (c *certificates) path(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return c.file(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if full := filepath.Join(path, e.Name()); !isDir(full) {
			_ = c.file(full) // a directory may also hold other files
		}
	}
	return nil
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err != nil || !info.Mode().IsRegular()
}

func (c *certificates) file(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // opening a pipe may block forever
		return &fs.PathError{Op: "read", Path: path, Err: errors.New("it is not a plain file")}
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxBundle))
	if err != nil {
		return err
	}
	found := false
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == pemCertificate {
			c.add(block.Bytes)
			found = true
		}
	}
	if !found {
		return &fs.PathError{Op: "read", Path: path, Err: errors.New("it holds no certificate in PEM")}
	}
	return nil
}
