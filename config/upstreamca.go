package config

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/sluicehq/sluice/internal/roots"
)

const upstreamCA = "upstream_ca"

// upstreamCA checks that the path is one. It does not open the file: most commands do not need it.
func (c *checker) upstreamCA() {
	path := c.file.UpstreamCA
	switch {
	case strings.Contains(path, pemBegins):
		c.secret(upstreamCA, "this is the certificate itself").Hint("write it into a file, and the file's path here")
	case strings.ContainsRune(path, 0):
		c.fail(upstreamCA, "this cannot be the path of a file")
	case path == "" && c.doc.Has(upstreamCA):
		c.fail(upstreamCA, "is the path of a file or directory of certificates, in PEM")
	}
}

// UpstreamCerts reads the certificates that upstream_ca names. There are none if the field is not set. The error is a
// [*ParseError], and shows no value of a variable.
func (f *File) UpstreamCerts() ([]*x509.Certificate, error) {
	if f.UpstreamCA == "" {
		return nil, nil
	}
	certs, err := roots.Read(f.UpstreamCA)
	if err == nil {
		return certs, nil
	}
	wrong := ParseError{File: title, Field: upstreamCA}
	if f.ca != nil {
		wrong = *f.ca
	}
	shown := f.UpstreamCA
	if s, ok := f.sources[upstreamCA]; ok && s.text == f.UpstreamCA {
		shown = s.written
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		err = at.Err // without the path, which may come from a variable
	}
	wrong.Message = fmt.Sprintf("%.80q cannot be read: %s", shown, err)
	wrong.Hint = "name a file with certificates in PEM, or a directory of such files"
	return nil, &wrong
}
