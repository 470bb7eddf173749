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
	// lookEvery is how often, at most, handshakes look whether the files of a certificate have changed.
	lookEvery = 5 * time.Second
	// maxPEM bounds the files: chains are a few kilobytes.
	maxPEM = 1 << 20
)

// Certificate is a certificate and its key, from files that are read again when they change: renewed certificates need no restart.
type Certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	shown atomic.Pointer[tls.Certificate]
	next  atomic.Int64 // when to look again, in nanoseconds since begun
	begun time.Time

	mu        sync.Mutex // of those who look: one at a time
	cert, key []byte     // what the files held
	trouble   string     // what was last said about them
}

// LoadCertificate reads a certificate, with those between it and the root, and its key, both in PEM. What is wrong with the files
// later is told to log, which may be nil: what was read before stays.
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

// Expired is when the certificate ended, if it has.
func (c *Certificate) Expired() (at time.Time, expired bool) {
	leaf := c.shown.Load().Leaf
	if leaf == nil {
		return time.Time{}, false
	}
	return leaf.NotAfter, time.Now().After(leaf.NotAfter)
}

// Config is for servers: TLS 1.2 and later, HTTP/2 and HTTP/1.1.
func (c *Certificate) Config() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}, GetCertificate: c.get}
}

// get is the certificate for a handshake.
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

// lookAgain takes what the files hold now. Files that are being replaced may not fit each other for a moment: then it stays
// as it was, and the next look tells. It says the same trouble once.
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

// read reads both files, and takes them if they are others than before and fit. No error shows what is in them.
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
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a pipe would be waited for
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

// secured is a listener whose connections are encrypted.
type secured struct{ net.Listener }

// Secure makes the connections of a listener encrypted ones. Those of a Unix socket stay plain: they do not leave the machine.
func (c *Certificate) Secure(l net.Listener) net.Listener {
	if l.Addr().Network() == "unix" {
		return l
	}
	return secured{tls.NewListener(l, c.Config())}
}

// SecureHTTP1 is Secure for a server that speaks HTTP/1.1 alone.
func (c *Certificate) SecureHTTP1(l net.Listener) net.Listener {
	if l.Addr().Network() == "unix" {
		return l
	}
	config := c.Config()
	config.NextProtos = []string{"http/1.1"}
	return secured{tls.NewListener(l, config)}
}

// URL is where clients reach a listener: http://HOST:PORT, https://HOST:PORT, or unix:PATH.
func URL(l net.Listener) string {
	if l.Addr().Network() == "unix" {
		return "unix:" + l.Addr().String()
	}
	if _, ok := l.(secured); ok {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// InTheClear reports that other machines can reach a listener, and read what its clients send: tokens, and keys.
func InTheClear(l net.Listener) bool {
	addr, ok := l.Addr().(*net.TCPAddr)
	_, encrypted := l.(secured)
	return ok && !encrypted && !addr.IP.IsLoopback()
}
