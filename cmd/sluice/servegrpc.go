package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/internal/grpcserve"
	"github.com/sluicehq/sluice/internal/loopback"
)

// grpcFlags holds the flags of serve for a gRPC service to other programs: KEDA's scaler or Envoy's rate limits.
type grpcFlags struct {
	name    string // prefix of the flags
	whose   string // the program that calls
	service string // name of the service
	home    string // its default address
	danger  string // what any caller could do
	page    string // page of the documentation

	listen        string
	cert, key, ca string
	insecure      bool // every client that can connect may call
}

func (f *grpcFlags) flag(name string) string { return "--" + f.name + "-" + name }

func (f *grpcFlags) add(cmd *cobra.Command, bare bareFlags) {
	flags := cmd.Flags()
	flags.Var(&listenFlag{grpcFlags: f, of: flags, bare: bare}, f.name+"-listen", "`ADDRESS` of "+f.whose+" "+f.service+"; without a value "+f.home)
	flags.Lookup(f.name + "-listen").NoOptDefVal = f.home
	flags.StringVar(&f.cert, f.name+"-tls-cert", "", "PEM `FILE` with the certificate of the "+f.service+"; reloaded when it changes")
	flags.StringVar(&f.key, f.name+"-tls-key", "", "PEM `FILE` with the key of that certificate")
	flags.StringVar(&f.ca, f.name+"-tls-ca", "", "PEM `FILE` with the authority that signs "+f.whose+" certificate; required for other machines")
	flags.BoolVar(&f.insecure, f.name+"-insecure", false, "let other machines use the "+f.service+" without a certificate, on a trusted network")
}

// listenFlag is the flag for an address that may be left out. The parser then leaves an address after a space as an
// argument.
type listenFlag struct {
	*grpcFlags
	of   *pflag.FlagSet
	bare bareFlags
}

// Set implements pflag.Value.
func (l *listenFlag) Set(text string) error {
	if l.listen = text; text == l.home {
		l.bare[l.of.NArg()] = l.grpcFlags
	}
	return nil
}

func (l *listenFlag) String() string {
	if l.grpcFlags == nil { // of pflag, which asks for the zero value
		return ""
	}
	return l.listen
}

// Type implements pflag.Value.
func (*listenFlag) Type() string { return "string" }

// bareFlags are the flags without a value, by the number of arguments before them.
type bareFlags map[int]*grpcFlags

// take gives each argument that follows such a flag to it, and returns the others.
func (b bareFlags) take(args []string) (rest []string) {
	for i, a := range args {
		if f := b[i]; f != nil {
			f.listen = a
		} else {
			rest = append(rest, a)
		}
	}
	return rest
}

// check refuses incomplete flags, and an address that any client could reach.
func (f *grpcFlags) check() error {
	given := ""
	for _, flag := range []struct{ name, value string }{{"tls-cert", f.cert}, {"tls-key", f.key}, {"tls-ca", f.ca}} {
		if flag.value != "" {
			given = f.flag(flag.name)
			break
		}
	}
	miss := func(flag, hint string) error {
		return &failure{code: exitUsage, message: given + " needs " + f.flag(flag), hint: hint}
	}
	none := "without that there is no " + f.service + "; its address may be left out: " + f.home
	switch {
	case f.listen == "" && given != "":
		return miss("listen", none)
	case given != "" && f.cert == "":
		return miss("tls-cert", "it is the file with the certificate of the "+f.service)
	case given != "" && f.key == "":
		return miss("tls-key", "it is the file with the key of the certificate of the "+f.service)
	case f.insecure && f.listen == "":
		return &failure{code: exitUsage, message: f.flag("insecure") + " needs " + f.flag("listen"), hint: none}
	case f.insecure && f.ca != "":
		return &failure{code: exitUsage, message: f.flag("insecure") + " and " + f.flag("tls-ca") + " contradict each other", hint: "leave one out: with an authority every client needs a certificate"}
	case f.listen != "" && f.ca == "" && wide(f.listen) && !f.insecure:
		missing := f.flag("tls-ca") + " is missing"
		if f.cert == "" {
			missing = f.flag("tls-cert") + ", " + f.flag("tls-key") + " and " + f.flag("tls-ca") + " are missing"
		}
		return &failure{code: exitUsage, message: fmt.Sprintf("%s: %q can be reached from other machines, and %s: every client could %s", f.flag("listen"), f.listen, missing, f.danger),
			hint: "give them (" + f.page + "), listen on 127.0.0.1, or allow it with " + f.flag("insecure") + " on a network that you trust"}
	}
	return nil
}

// wide reports whether other machines can reach an address. Invalid addresses are reported when listening.
func wide(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return err == nil && !strings.HasPrefix(address, "unix:") && !loopback.Host(host)
}

// config returns the TLS configuration of the service; nil means plain text.
func (f *grpcFlags) config(log *slog.Logger) (config *tls.Config, err error) {
	if f.cert == "" {
		return nil, nil
	}
	hint := f.flag("tls-cert") + " and " + f.flag("tls-key") + " name files in PEM that belong together"
	cert, err := daemon.LoadCertificate(f.cert, f.key, log)
	if err == nil {
		config = cert.Config()
		if at, expired := cert.Expired(); expired {
			log.Warn("the certificate "+f.cert+" has expired: clients will refuse it; a new one is taken as soon as it is there", "expired", at.UTC())
		}
		if f.ca != "" {
			hint = f.flag("tls-ca") + " names a file in PEM with the certificate that " + f.whose + " own is signed by"
			config, err = grpcserve.ClientCA(config, f.ca, log)
		}
	}
	if err != nil {
		return nil, &failure{code: exitConfig, message: "--" + f.name + "-tls: " + strings.TrimPrefix(err.Error(), "tls: "), hint: hint}
	}
	return config, nil
}

// serve listens and starts the service. end stops it.
func (f *grpcFlags) serve(ctx context.Context, log *slog.Logger, config *tls.Config, serve func(context.Context, net.Listener, *tls.Config) error) (end func(), err error) {
	l, err := daemon.Listen(ctx, f.listen, true)
	if err != nil {
		code := exitUnavailable
		if errors.Is(err, daemon.ErrAddress) {
			code = exitUsage
		}
		return nil, &failure{code: code, message: "--" + f.name + "-" + err.Error(), hint: "use another address: " + f.flag("listen") + "=HOST:PORT; port 0 takes any free port"}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- serve(ctx, l, config) }()
	log.Info(f.whose + " " + f.service + " is on " + l.Addr().String() + f.speaks())
	if f.insecure && wide(f.listen) {
		log.Warn("every client that reaches the " + f.service + " can " + f.danger + " (" + f.flag("insecure") + ")")
	}
	return func() {
		cancel()
		if err := <-done; err != nil {
			log.Warn("the " + f.service + " has ended: " + err.Error())
		}
	}, nil
}

// speaks describes which clients have access.
func (f *grpcFlags) speaks() string {
	switch {
	case f.ca != "":
		return ", with TLS, for clients with a certificate"
	case f.cert != "":
		return ", with TLS"
	}
	return ""
}
