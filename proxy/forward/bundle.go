package forward

import (
	"bytes"
	"encoding/pem"

	"github.com/sluicehq/sluice/internal/roots"
)

// BundleVariables returns the environment variables that tell programs which certificates to trust.
func BundleVariables(getenv func(string) string) []string { return roots.Variables(getenv) }

// Bundle returns the certificates that one command should trust, in PEM: those of the authority, of the system, and of
// the files or directories that the environment names. missing lists the files of the environment that could not be
// read. If the system has no bundle, the roots built into this program replace it.
func Bundle(authority *Authority, getenv func(string) string) (text []byte, missing []error) {
	certs, missing := roots.Certificates(getenv)
	var b bytes.Buffer
	for _, der := range append([][]byte{authority.cert.Raw}, certs...) {
		_ = pem.Encode(&b, &pem.Block{Type: pemCertificate, Bytes: der}) // a buffer never fails
	}
	return b.Bytes(), missing
}
