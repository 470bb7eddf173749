package roots

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// systemBundles lists the files in which systems keep their trusted certificates, most common first.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Alpine, Arch
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora, RHEL
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // newer Fedora
	"/etc/ssl/cert.pem",                                 // macOS, Alpine, OpenBSD
	"/usr/local/share/certs/ca-root-nss.crt",            // FreeBSD
}

// maxFile bounds the size of a file. A system's bundle has a few hundred kilobytes.
const maxFile = 16 << 20

// Certificates returns the certificates that the environment names and those of the system, each once, in DER. If the
// system has no file of them, the roots built into this program replace it. missing lists what the environment names
// and could not be read.
func Certificates(getenv func(string) string) (all [][]byte, missing []error) {
	known := seen{}
	add := func(certs [][]byte) {
		for _, der := range certs {
			if sum := sha256.Sum256(der); !known[sum] {
				known[sum] = true
				all = append(all, der)
			}
		}
	}
	for _, p := range places(getenv) {
		certs, err := read(p.path)
		if err != nil {
			missing = append(missing, fmt.Errorf("%s: %w", p.variable, err))
		}
		add(certs)
	}
	if certs, ok := systemFile(); ok {
		add(certs)
		return all, missing
	}
	for root := range bundle.Roots() {
		if root.Constraint == nil { // a file cannot express partial trust
			add([][]byte{root.Certificate})
		}
	}
	return all, missing
}

// seen holds the sums of certificates: many are in several files.
type seen map[[sha256.Size]byte]bool

// systemFile returns the certificates of the system's file, and whether there is one.
func systemFile() ([][]byte, bool) {
	for _, path := range systemBundles {
		if certs, err := read(path); err == nil {
			return certs, true
		}
	}
	return nil, false
}

// Read returns the certificates in a file, or in the files of a directory. All of them have to be valid, and there has
// to be one.
func Read(path string) ([]*x509.Certificate, error) {
	certs, err := read(path)
	if err != nil {
		return nil, err
	}
	all := make([]*x509.Certificate, len(certs))
	for i, der := range certs {
		if all[i], err = x509.ParseCertificate(der); err != nil {
			return nil, &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("certificate %d of %d is not valid: %w", i+1, len(certs), err)}
		}
	}
	if len(all) == 0 {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errNone}
	}
	return all, nil
}

var errNone = errors.New("it holds no certificate in PEM")

// read returns the certificates in a file, or in the files of a directory, in DER. It returns nothing else, because a
// file may hold a key. Only a directory may hold none.
func read(path string) ([][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return readFile(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 {
			if to, err := os.Readlink(filepath.Join(path, e.Name())); err == nil && filepath.Base(to) == to {
				continue // OpenSSL's name for another file in the directory
			}
		}
		certs, _ := readFile(filepath.Join(path, e.Name())) // a directory may also hold other files
		all = append(all, certs...)
	}
	return all, nil
}

func readFile(path string) ([][]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	unfit := func(why error) error { return &fs.PathError{Op: "read", Path: path, Err: why} }
	switch {
	case !info.Mode().IsRegular(): // opening a pipe may block forever
		return nil, unfit(errors.New("it is not a plain file"))
	case info.Size() > maxFile:
		return nil, unfit(fmt.Errorf("it has more than %d bytes", maxFile))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxFile))
	if err != nil {
		return nil, err
	}
	var certs [][]byte
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			certs = append(certs, block.Bytes)
		}
	}
	if len(certs) == 0 {
		return nil, unfit(errNone)
	}
	return certs, nil
}
