package main

import (
	"log/slog"
	"net"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
)

// tlsFlags holds the flags of serve for TLS.
type tlsFlags struct {
	cert, key string
	given     bool
}

func (f *tlsFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.cert, "tls-cert", "", "PEM `FILE` with a certificate: HOST:PORT speaks TLS; reloaded when it changes")
	cmd.Flags().StringVar(&f.key, "tls-key", "", "PEM `FILE` with the certificate's key")
}

// check refuses one flag without the other. Two empty flags turn TLS off, whatever is configured.
func (f *tlsFlags) check(cmd *cobra.Command) error {
	f.given = cmd.Flags().Changed("tls-cert") || cmd.Flags().Changed("tls-key")
	if (f.cert == "") == (f.key == "") {
		return nil
	}
	missing, what := "--tls-key", "key"
	if f.cert == "" {
		missing, what = "--tls-cert", "certificate"
	}
	return &failure{code: exitUsage, message: missing + " is missing", hint: "name the files of both, certificate and key: " + missing + " is the one with the " + what}
}

// load reads the certificate that the flags or the configuration name; nil if neither does.
func (f *tlsFlags) load(file *config.File, log *slog.Logger) (*daemon.Certificate, error) {
	cert, key := f.cert, f.key
	if !f.given {
		cert, key = file.TLS.Cert, file.TLS.Key
	}
	if cert == "" {
		return nil, nil
	}
	c, err := daemon.LoadCertificate(cert, key, log)
	if err != nil {
		return nil, &failure{code: exitConfig, message: err.Error(), hint: "--tls-cert and --tls-key, or tls: in the configuration, name files in PEM that belong together"}
	}
	if at, expired := c.Expired(); expired {
		log.Warn("the certificate "+cert+" has expired: clients will refuse it; a new one is taken as soon as it is there", "expired", at.UTC())
	}
	return c, nil
}

// warnInTheClear warns about listeners without encryption that other machines can reach.
func warnInTheClear(listeners []net.Listener, log *slog.Logger) {
	for _, l := range listeners {
		if daemon.InTheClear(l) {
			log.Warn(l.Addr().String() + " can be reached from other machines and is not encrypted: tokens and keys can be read on the way; " +
				"use --tls-cert and --tls-key, unless something in front of it speaks TLS")
		}
	}
}
