package proctest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"os"
)

// TrustBundle makes this program's HTTP client trust the certificates in the file that SSL_CERT_FILE names, as programs that
// use OpenSSL do. On Linux Go does so by itself. On macOS and Windows it asks the system.
func TrustBundle() error {
	file := os.Getenv("SSL_CERT_FILE")
	if file == "" {
		return nil
	}
	pem, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	http.DefaultTransport.(*http.Transport).TLSClientConfig = &tls.Config{RootCAs: pool}
	return nil
}
