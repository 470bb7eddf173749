package main

import (
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"sync"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/roots"
	"github.com/sluicehq/sluice/sluicehttp"
)

// outlet is how requests leave for providers.
type outlet struct {
	roots     *roots.Roots
	through   func(*url.URL) (*url.URL, error) // the proxy to use; nil means that of the environment, by Go's rules
	transport func() *http.Transport           // reads the certificates
}

// newOutlet returns the outlet of a configuration. The error is a [*config.ParseError], about upstream_ca. Certificates that the
// environment names and that cannot be read are left out, with a warning unless log is nil.
func newOutlet(f *config.File, log *slog.Logger, through func(*url.URL) (*url.URL, error)) (*outlet, error) {
	own, err := f.UpstreamCerts()
	if err != nil {
		return nil, err
	}
	var warn func(error)
	if log != nil {
		warn = func(err error) { log.Warn("certificates are left out: " + err.Error()) }
	}
	o := &outlet{roots: roots.New(own, os.Getenv, warn), through: through}
	o.transport = sync.OnceValue(func() *http.Transport {
		t := sluicehttp.Tuned()
		t.TLSClientConfig = o.roots.Config()
		if through != nil {
			t.Proxy = func(r *http.Request) (*url.URL, error) { return through(r.URL) }
		}
		return t
	})
	return o, nil
}

// follow returns the outlet of another configuration. It is the same if the same certificates are trusted, so that
// connections are kept.
func (o *outlet) follow(f *config.File, log *slog.Logger) (*outlet, error) {
	next, err := newOutlet(f, log, o.through)
	if err != nil || next.roots.Pool().Equal(o.roots.Pool()) {
		return o, err
	}
	return next, nil
}
