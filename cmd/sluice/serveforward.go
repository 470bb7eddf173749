package main

import (
	"crypto/x509"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/proxy/forward"
)

// authorityName is the name of serve's authority in the clients' lists of trusted authorities.
const authorityName = "sluice gate"

// forwardFlags holds the flags of serve for its forward proxy, and the proxy itself.
type forwardFlags struct {
	address string
	interceptFlags

	listener net.Listener // nil if there is none
	file     *forward.File
	server   *forward.Server
}

func (f *forwardFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.address, "forward-listen", "", "`ADDRESS` of a forward proxy for programs without a base-URL setting: HOST:PORT or unix:PATH")
	f.interceptFlags.add(cmd)
}

func (f *forwardFlags) check(cmd *cobra.Command) error {
	if f.address == "" && cmd.Flags().Changed("forward-listen") {
		return &failure{code: exitUsage, message: "--forward-listen is empty", hint: "give an address such as 127.0.0.1:7980, or leave the flag out"}
	}
	return f.need(cmd, "forward-listen", f.address != "")
}

// through returns the proxy on the way to providers. That is not the forward proxy itself, which the environment may
// name. Nil means the default.
func (f *forwardFlags) through() func(*url.URL) (*url.URL, error) {
	if f.address == "" && os.Getenv(envForward) == "" {
		return nil
	}
	return proxyOf(gateUser, f.address)
}

// open listens, and puts the forward proxy in front of the daemon.
func (f *forwardFlags) open(cmd *cobra.Command, s *session, d *daemon.Daemon, cert *daemon.Certificate) error {
	if f.address == "" {
		return nil
	}
	if _, err := f.without(d.Origins()); err != nil {
		return err
	}
	if s.dir == "" {
		return noStateDir()
	}
	var err error
	if f.file, err = forward.OpenFile(s.dir, authorityName, d.Origins().Hosts()); err != nil {
		return authorityFailure(err)
	}
	if f.listener, err = daemon.Listen(cmd.Context(), f.address, len(s.file.Tokens) > 0); err != nil {
		failed := listenFailure(err)
		failed.hint = strings.ReplaceAll(failed.hint, "--listen", "--forward-listen")
		return failed
	}
	if cert != nil {
		f.listener = cert.SecureHTTP1(f.listener)
	}
	warnInTheClear([]net.Listener{f.listener}, s.notes)
	f.server = forward.New(forward.Options{
		Handler: d, Authority: f.file.Authority, Admit: d.Admit, OnlyGated: f.onlyGated, Log: s.notes,
		Origins: func() *forward.Origins {
			all := d.Origins() // a reload may have changed them
			if len(f.tunnel) == 0 {
				return all
			}
			left, _ := all.Without(f.tunnel)
			return left
		},
		Proxy: proxyOf(gateUser, f.address, f.listener.Addr().String()), Roots: func() *x509.CertPool { return s.outlet.Load().roots.Pool() },
	})
	if bare := f.notCovered(d.Origins()); len(bare) > 0 {
		s.notes.Warn("the certificate authority does not cover " + strings.Join(bare, ", ") + ": their clients are refused; sluice ca rotate makes one that does")
	}
	d.With(f.server, f.listener)
	return nil
}

// notCovered returns the gated hosts that the authority was not made for.
func (f *forwardFlags) notCovered(o *forward.Origins) []string {
	a := f.file.Authority()
	return slices.DeleteFunc(o.Hosts(), a.Covers)
}

// close closes what the daemon has not closed, because it may never have run.
func (f *forwardFlags) close() {
	if f.server != nil {
		_ = f.server.Close()
		_ = f.listener.Close()
	}
}

// url returns the address of the forward proxy, or "" if there is none.
func (f *forwardFlags) url() string {
	if f.listener == nil {
		return ""
	}
	return daemon.URL(f.listener)
}

// fingerprint returns the fingerprint of the authority, or "" if there is none.
func (f *forwardFlags) fingerprint() string {
	if f.file == nil {
		return ""
	}
	return f.file.Authority().Fingerprint()
}
