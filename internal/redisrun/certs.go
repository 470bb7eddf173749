package redisrun

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Certs are PEM files: a certificate authority, and the certificates it signed for a server and for its clients.
type Certs struct {
	CA                    string
	Cert, Key             string // the server's
	ClientCert, ClientKey string
}

// WriteCerts creates certificates for servers on the loopback address, valid for a day, and writes them to a
// directory.
func WriteCerts(dir string) (Certs, error) {
	at := func(name string) string { return filepath.Join(dir, name) }
	c := Certs{
		CA:         at("ca.crt"),
		Cert:       at("server.crt"),
		Key:        at("server.key"),
		ClientCert: at("client.crt"),
		ClientKey:  at("client.key"),
	}
	authority := template(1, "redisrun authority")
	authority.IsCA, authority.BasicConstraintsValid = true, true
	authority.KeyUsage = x509.KeyUsageCertSign
	signer, err := write(c.CA, at("ca.key"), authority, nil, nil)
	if err != nil {
		return Certs{}, err
	}
	server := template(2, "redisrun server")
	server.DNSNames = []string{"localhost"}
	server.IPAddresses = []net.IP{net.ParseIP(loopback)}
	server.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if _, err := write(c.Cert, c.Key, server, authority, signer); err != nil {
		return Certs{}, err
	}
	client := template(3, "redisrun client")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if _, err := write(c.ClientCert, c.ClientKey, client, authority, signer); err != nil {
		return Certs{}, err
	}
	return c, nil
}

func template(serial int64, name string) *x509.Certificate {
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

// write creates a key, signs its certificate and writes both. Without a parent the certificate is self-signed.
func write(certFile, keyFile string, cert, parent *x509.Certificate, signer *ecdsa.PrivateKey) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	if parent == nil {
		parent, signer = cert, key
	}
	signed, err := x509.CreateCertificate(rand.Reader, cert, parent, &key.PublicKey, signer)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	for _, file := range []struct {
		path, kind string
		bytes      []byte
	}{{certFile, "CERTIFICATE", signed}, {keyFile, "PRIVATE KEY", secret}} {
		block := pem.EncodeToMemory(&pem.Block{Type: file.kind, Bytes: file.bytes})
		if err := os.WriteFile(file.path, block, 0o600); err != nil {
			return nil, err
		}
	}
	return key, nil
}
