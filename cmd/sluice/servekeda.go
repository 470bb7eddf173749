package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/scaler"
)

// defaultKEDA is where KEDA finds the scaler if nobody says.
const defaultKEDA = "127.0.0.1:6000"

// kedaFlags are those of serve that are about KEDA.
type kedaFlags struct {
	listen        string
	cert, key, ca string
	insecure      bool // anybody who can connect may ask
}

func (f *kedaFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.listen, "keda-listen", "", "`ADDRESS` of KEDA's external scaler; without a value "+defaultKEDA)
	cmd.Flags().Lookup("keda-listen").NoOptDefVal = defaultKEDA
	cmd.Flags().StringVar(&f.cert, "keda-tls-cert", "", "PEM `FILE` with the scaler's certificate; reloaded when it changes")
	cmd.Flags().StringVar(&f.key, "keda-tls-key", "", "PEM `FILE` with the key of the scaler's certificate")
	cmd.Flags().StringVar(&f.ca, "keda-tls-ca", "", "PEM `FILE` with the authority that signs KEDA's certificate; required for other machines")
	cmd.Flags().BoolVar(&f.insecure, "keda-insecure", false, "let other machines use the scaler without a certificate, on a trusted network")
}

// take finds the address after --keda-listen and a blank, which the flag leaves because its value may be left out.
func (f *kedaFlags) take(cmd *cobra.Command, args []string) []string {
	if len(args) == 1 && cmd.Flags().Changed("keda-listen") && f.listen == defaultKEDA {
		f.listen, args = args[0], nil
	}
	return args
}

// check refuses flags that miss others, and an address that anybody could ask.
func (f *kedaFlags) check() error {
	given := ""
	for _, flag := range []struct{ name, value string }{{"--keda-tls-cert", f.cert}, {"--keda-tls-key", f.key}, {"--keda-tls-ca", f.ca}} {
		if flag.value != "" {
			given = flag.name
			break
		}
	}
	miss := func(flag, hint string) error {
		return &failure{code: exitUsage, message: given + " needs " + flag, hint: hint}
	}
	switch {
	case f.listen == "" && given != "":
		return miss("--keda-listen", "without that there is no scaler; its address may be left out: "+defaultKEDA)
	case given != "" && f.cert == "":
		return miss("--keda-tls-cert", "it is the file with the scaler's own certificate")
	case given != "" && f.key == "":
		return miss("--keda-tls-key", "it is the file with the key of the scaler's certificate")
	case f.insecure && f.listen == "":
		return &failure{code: exitUsage, message: "--keda-insecure needs --keda-listen", hint: "without that there is no scaler; its address may be left out: " + defaultKEDA}
	case f.insecure && f.ca != "":
		return &failure{code: exitUsage, message: "--keda-insecure and --keda-tls-ca contradict each other", hint: "leave one out: with an authority every client needs a certificate"}
	case f.listen != "" && f.ca == "" && wide(f.listen) && !f.insecure:
		missing := "--keda-tls-ca is missing"
		if f.cert == "" {
			missing = "--keda-tls-cert, --keda-tls-key and --keda-tls-ca are missing"
		}
		return &failure{code: exitUsage, message: fmt.Sprintf("--keda-listen: %q can be reached from other machines, and %s: anybody could ask what is left of quotas", f.listen, missing),
			hint: "give them (docs/keda.md), listen on 127.0.0.1, or allow it with --keda-insecure on a network that you trust"}
	}
	return nil
}

// wide tells whether others than this machine can reach an address. What is no address is told when it is listened on.
func wide(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil || strings.HasPrefix(address, "unix:") || strings.EqualFold(host, "localhost") {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err != nil || !addr.IsLoopback()
}

// config is how the scaler speaks TLS; nil if it speaks plain text.
func (f *kedaFlags) config(log *slog.Logger) (config *tls.Config, err error) {
	if f.cert == "" {
		return nil, nil
	}
	hint := "--keda-tls-cert and --keda-tls-key name files in PEM that belong together"
	cert, err := daemon.LoadCertificate(f.cert, f.key, log)
	if err == nil {
		config = cert.Config()
		if at, expired := cert.Expired(); expired {
			log.Warn("the certificate "+f.cert+" has expired: KEDA will refuse it; a new one is taken as soon as it is there", "expired", at.UTC())
		}
		if f.ca != "" {
			hint = "--keda-tls-ca names a file in PEM with the certificate that KEDA's own is signed by"
			config, err = scaler.ClientCA(config, f.ca, log)
		}
	}
	if err != nil {
		return nil, &failure{code: exitConfig, message: "--keda-tls: " + strings.TrimPrefix(err.Error(), "tls: "), hint: hint}
	}
	return config, nil
}

// scale serves KEDA, if that is wanted, until it is told to end.
func (s *session) scale(ctx context.Context, f kedaFlags) (end func(), err error) {
	if f.listen == "" {
		return func() {}, nil
	}
	log := s.notes // a trigger that goes to zero or comes back is worth a line
	config, err := f.config(log)
	if err != nil {
		return nil, err
	}
	s.scaler = scaler.New(scaler.Options{Log: log})
	if err := s.rescale(s.file, s.gate); err != nil {
		return nil, err
	}
	l, err := daemon.Listen(ctx, f.listen, true)
	if err != nil {
		return nil, &failure{code: exitUnavailable, message: "--keda-" + err.Error(), hint: "--keda-listen=HOST:PORT names another address; port 0 takes any that is free"}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- s.scaler.Serve(ctx, l, config) }()
	log.Info("KEDA's scaler is on " + l.Addr().String() + f.speaks())
	if f.insecure && wide(f.listen) {
		log.Warn("whoever reaches the scaler can ask what is left of quotas (--keda-insecure)")
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			log.Warn("the scaler has ended: " + err.Error())
		}
	}, nil
}

// rescale makes the scaler, if there is one, speak of a configuration and the gate that was opened with it.
func (s *session) rescale(f *config.File, gate *sluice.Gate) error {
	if s.scaler == nil {
		return nil
	}
	c, err := f.GateConfig(time.Now())
	if err != nil {
		return configFailure(err)
	}
	var classes []string
	for _, class := range f.Classes {
		classes = append(classes, class.Name)
	}
	s.scaler.Follow(gate, classes, c.Resources, f.Named()...)
	return nil
}

// speaks says who is let in.
func (f *kedaFlags) speaks() string {
	switch {
	case f.ca != "":
		return ", with TLS, for clients with a certificate"
	case f.cert != "":
		return ", with TLS"
	}
	return ""
}
