package daemon

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// lookEvery is how often, at most, a handshake checks whether the certificate's files have changed.
	lookEvery = 5 * time.Second
	// maxPEM bounds the size of the files: chains are a few kilobytes.
	maxPEM = 1 << 20
)

// Certificate is a certificate and its key. It reads their files again when they change, so that renewed certificates
// need no restart.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	shown atomic.Pointer[tls.Certificate]
	next  atomic.Int64 // when to check the files again, in nanoseconds since begun
	begun time.Time

	mu        sync.Mutex // held during a check: one at a time
	cert, key []byte     // the contents of the files
	trouble   string     // the last error reported about them
}

// LoadCertificate reads a certificate with its intermediate certificates, and its key, both in PEM. Later errors in the
// files go to log, which may be nil; then the previous certificate stays in use.
func LoadCertificate(certFile, keyFile string, log *slog.Logger) (*Certificate, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Certificate{certFile: certFile, keyFile: keyFile, log: log, begun: time.Now()}
	if err := c.read(); err != nil {
		return nil, err
	}
	c.next.Store(int64(lookEvery))
	return c, nil
}

// Expired reports whether the certificate has expired, and when it did.
func (c *Certificate) Expired() (at time.Time, expired bool) {
	leaf := c.shown.Load().Leaf
	if leaf == nil {
		return time.Time{}, false
	}
	return leaf.NotAfter, time.Now().After(leaf.NotAfter)
}

// Config returns the configuration for servers: TLS 1.2 and later, HTTP/2 and HTTP/1.1.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: c.get}
}

// get returns the certificate for a handshake.
func (c *Certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	since := int64(time.Since(c.begun))
	if since >= c.next.Load() && c.mu.TryLock() {
		if since >= c.next.Load() {
			c.next.Store(since + int64(lookEvery))
			c.lookAgain()
		}
		c.mu.Unlock()
	}
	return c.shown.Load(), nil
}

// lookAgain loads the files again. While they are being replaced they may not match each other; then the previous
// certificate stays, and the next check tries again. It logs the same error only once.
func (c *Certificate) lookAgain() {
	before := c.shown.Load()
	err := c.read()
	switch {
	case err != nil && err.Error() != c.trouble:
		c.trouble = err.Error()
		c.log.Error("the certificate could not be read again; the one before is still shown", "error", err)
	case err == nil:
		c.trouble = ""
		if c.shown.Load() != before {
			c.log.Info("the certificate was read again", "file", c.certFile)
		}
	}
}

// read reads both files, and uses them if they have changed and match. Errors never show the contents.
func (c *Certificate) read() error {
	cert, err := readPEM("certificate", c.certFile)
	if err != nil {
		return err
	}
	key, err := readPEM("key", c.keyFile)
	if err != nil {
		return err
	}
	if c.shown.Load() != nil && bytes.Equal(cert, c.cert) && bytes.Equal(key, c.key) {
		return nil
	}
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return fmt.Errorf("tls: certificate %s and key %s: %s", c.certFile, c.keyFile, strings.TrimPrefix(err.Error(), "tls: "))
	}
	c.cert, c.key = cert, key
	c.shown.Store(&pair)
	return nil
}

func readPEM(what, path string) ([]byte, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // reading a pipe would block
		return nil, fmt.Errorf("tls: the %s %s cannot be read: it is no regular file", what, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("tls: the %s cannot be read: %w", what, err)
	}
	defer func() { _ = f.Close() }() // it was only read
	text, err := io.ReadAll(io.LimitReader(f, maxPEM+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("tls: the %s %s cannot be read: %w", what, path, err)
	case len(text) > maxPEM:
		return nil, fmt.Errorf("tls: the %s %s has more than %d bytes", what, path, maxPEM)
	}
	return text, nil
}

// secured marks a listener whose connections are encrypted.
type secured struct{ net.Listener }

// Secure wraps a listener with TLS. Unix sockets stay plain, because they do not leave the machine.
func (c *Certificate) Secure(l net.Listener) net.Listener {
	if l.Addr().Network() == "unix" {
		return l
	}
	return secured{tls.NewListener(l, c.Config())}
}

// SecureHTTP1 is Secure for a server that speaks only HTTP/1.1.
func (c *Certificate) SecureHTTP1(l net.Listener) net.Listener {
	if l.Addr().Network() == "unix" {
		return l
	}
	config := c.Config()
	config.NextProtos = []string{"http/1.1"}
	return secured{tls.NewListener(l, config)}
}

// URL returns the address at which clients reach a listener: http://HOST:PORT, https://HOST:PORT, or unix:PATH.
func URL(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	if _, ok := l.(secured); ok {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// InTheClear reports whether other machines can reach a listener without encryption, so that tokens and keys could be
// read on the way.
func InTheClear(l net.Listener) bool {
	addr, ok := l.Addr().(*net.TCPAddr)
	_, encrypted := l.(secured)
	return ok && !encrypted && !addr.IP.IsLoopback()
}
