package grpcserve

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
)

// maxAuthorities bounds the size of a file of authorities.
const maxAuthorities = 1 << 20

// ClientCA returns a config with which a server verifies its clients: they must show a certificate signed by one of the
// authorities in a PEM file. The file is read again for each connection. If it is then invalid, the previous
// authorities stay in use and the error goes to log, which may be nil. Open connections stay open.
func ClientCA(config *tls.Config, file string, log *slog.Logger) (*tls.Config, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	a := &authorities{file: file, log: log, base: config}
	if err := a.read(); err != nil {
		return nil, err
	}
	config = a.config.Clone() // also right for servers that do not call a.get
	config.GetConfigForClient = a.get
	return config, nil
}

// authorities holds the authorities of a file.
type authorities struct {
	file string
	log  *slog.Logger
	base *tls.Config

	mu      sync.Mutex
	text    []byte // the content of the file
	config  *tls.Config
	trouble string // the last error reported about the file
}

// get returns the config for a handshake.
func (a *authorities) get(*tls.ClientHelloInfo) (*tls.Config, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.config
	err := a.read()
	switch {
	case err != nil && err.Error() != a.trouble:
		a.trouble = err.Error()
		a.log.Error("the authorities of clients could not be read again; those before still count", "error", err)
	case err == nil:
		a.trouble = ""
		if a.config != before {
			a.log.Info("the authorities of clients were read again", "file", a.file)
		}
	}
	return a.config, nil
}

// read reads the file, and uses it if it has changed and is valid.
func (a *authorities) read() error {
	text, err := readBounded(a.file)
	if err != nil {
		return fmt.Errorf("the authority of clients cannot be read: %w", err)
	}
	if a.config != nil && bytes.Equal(text, a.text) {
		return nil
	}
	pool, err := parseAuthorities(text)
	if err != nil {
		return fmt.Errorf("the authority of clients %s %w", a.file, err)
	}
	config := a.base.Clone()
	config.ClientAuth, config.ClientCAs = tls.RequireAndVerifyClientCert, pool
	config.SessionTicketsDisabled = true // check returning clients again
	a.text, a.config = text, config
	return nil
}

// parseAuthorities accepts only certificates: a key in this file is a mistake that should show.
func parseAuthorities(text []byte) (*x509.CertPool, error) {
	pool, n := x509.NewCertPool(), 0
	for rest := text; ; n++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a %s: certificates alone belong there", strings.ToValidUTF8(block.Type[:min(len(block.Type), 80)], ""))
		}
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("holds a certificate that cannot be read: %w", err)
		}
		pool.AddCert(cert)
	}
	if n == 0 {
		return nil, errors.New("holds no certificate: it must be a file in PEM, which begins with -----BEGIN CERTIFICATE-----")
	}
	return pool, nil
}

func readBounded(path string) ([]byte, error) {
	// Check before opening: opening a pipe would wait for a writer.
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxAuthorities+1))
	if err == nil && len(text) > maxAuthorities {
		err = fmt.Errorf("%s has more than %d bytes", path, maxAuthorities)
	}
	return text, err
}
