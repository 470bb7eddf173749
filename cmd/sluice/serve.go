package main

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/daemon/api"
	"github.com/sluicehq/sluice/eventlog"
	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/estimate"
	"github.com/sluicehq/sluice/internal/history"
	"github.com/sluicehq/sluice/internal/metrics"
	"github.com/sluicehq/sluice/internal/sdnotify"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/internal/storeurl"
	"github.com/sluicehq/sluice/internal/telemetry"
	"github.com/sluicehq/sluice/sluicehttp"
)

func newServe() *cobra.Command {
	var listen, hosts []string
	keda, envoy, bare := kedaFlags(), envoyFlags(), bareFlags{}
	var secure tlsFlags
	var logs logFlags
	var ahead forwardFlags
	drain := timeFlag(defaultDrain)
	var idle timeFlag
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the gate as a proxy, with API, page and metrics",
		Long: `Serve is the gate for programs that speak HTTP to a provider. They send to
http://127.0.0.1:7979/RESOURCE/... what they would send to the provider, and get its response. A
request waits until it is its turn. Keys pass through, or come from the environment
(resources.NAME.inject). The path (/@AGENT/RESOURCE/..., /@AGENT:p1/RESOURCE/...) or headers
(X-Sluice-Agent, -Class, -Tool, -User, -Emergency) name the sender. docs/proxy.md has the rest.

SIGTERM and SIGINT (on Windows Ctrl-C and Ctrl-Break) finish running requests first, for at most --drain.
Then the gate closes their connections. Send the signal again to stop at once. SIGHUP, or POST /-/reload,
reloads the configuration; a mistake keeps the old one.

--forward-listen adds a forward proxy for programs that cannot be pointed to another address: they set
HTTPS_PROXY=http://AGENT:TOKEN@HOST:PORT and trust the certificate that sluice ca show prints. Only gated
hosts are decrypted. docs/intercept.md has the rest.

The log is on stderr, as text or JSON (--log). --log-requests adds one line per request: agent, class,
resource, model, wait, status, tokens, dollars and request id. No key and no body is logged.

Exit codes: 0 ended by a signal or by --exit-idle; 64 usage, or an address that other machines can reach without
tokens; 69 the store cannot be reached, or the address is taken; 78 bad configuration.`,
		Example: `  sluice serve
  ANTHROPIC_BASE_URL=http://127.0.0.1:7979/anthropic claude
  OPENAI_BASE_URL=http://127.0.0.1:7979/@indexer:p2/openai/v1 python index.py
  sluice serve --listen 127.0.0.1:7979 --listen unix:$HOME/.sluice.sock
  sluice serve --config fleet.yaml --listen 0.0.0.0:7979 --host gate.example --tls-cert gate.pem --tls-key gate.key`,
	}
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		return atMost(0)(cmd, bare.take(args))
	}
	cmd.Flags().StringArrayVar(&listen, "listen", nil, "`ADDRESS` to listen on: HOST:PORT or unix:PATH; may be repeated; else the configured one, else "+config.DefaultListen)
	cmd.Flags().StringArrayVar(&hosts, "host", nil, "further `NAME` by which clients call the gate; may be repeated")
	secure.add(cmd)
	keda.add(cmd, bare)
	envoy.add(cmd, bare)
	ahead.add(cmd)
	cmd.Flags().Var(&drain, "drain", "how long running requests may take to finish after SIGTERM or SIGINT; then their connections are closed")
	cmd.Flags().Var(&idle, "exit-idle", "end when no request has come or run for so long, such as 10m; else never")
	logs.add(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) (err error) {
		if err := secure.check(cmd); err != nil {
			return err
		}
		if err := cmp.Or(keda.check(), envoy.check()); err != nil {
			return err
		}
		if err := ahead.check(cmd); err != nil {
			return err
		}
		log, err := logs.open(cmd)
		if err != nil {
			return err
		}
		requests, endRequests := logs.forRequests(log)
		defer endRequests()
		var d *daemon.Daemon
		var past atomic.Pointer[history.Book] // set once the session knows its directory
		hub := api.NewHub()
		told := newTeller(log)
		defer told.close() // after all senders have ended
		figures := metrics.New(metrics.Options{
			Estimates: func() estimate.Miss { return d.Estimates() },
			Status:    func(ctx context.Context) (inspect.Status, error) { return d.Status(ctx) },
		})
		s, err := newSession(cmd, nil, sluice.Config{Events: func(e inspect.Event) {
			hub.Add(e)
			figures.Event(e)
			told.Event(e)
			if b := past.Load(); b != nil {
				b.Event(e)
			}
		}}, figures.Store)
		if err != nil {
			return err
		}
		defer s.closing(&err)
		book := s.history()
		past.Store(book)
		defer func() { _ = book.Close() }() // it has reported its write errors
		fixed := fixedBy{listen: len(listen) > 0, tls: secure.given}
		if len(listen) == 0 {
			listen = []string{s.file.Listen}
		}
		fixed.addresses = listen
		out, err := newOutlet(s.file, s.notes, ahead.through())
		if err != nil {
			return configFailure(err)
		}
		s.outlet.Store(out)
		traced, err := telemetry.Open(cmd.Context(), telemetry.Options{
			Getenv: os.Getenv, Log: log, Version: buildVersion(debug.ReadBuildInfo()).Version, Figures: figures.Gatherer(), Provider: func(resource string) string { return d.Dialect(resource) },
		})
		if err != nil {
			return &failure{code: exitConfig, message: err.Error(), hint: "docs/telemetry.md lists the variables; OTEL_SDK_DISABLED=true turns all of them off"}
		}
		defer func() { _ = traced.Close() }() // unsent data is in the log
		d, err = s.daemon(&daemon.Options{
			Trace: traced.Trace(), Hosts: hosts, Base: out.transport(), Events: hub, Log: log, Requests: requests, Metrics: figures.Handler(), History: book,
			Done:      func(x sluicehttp.Exchange) { figures.Done(x); book.Done(x) },
			Reloading: s.reloading(cmd, fixed, func(g *sluice.Gate) { figures.SetGate(g); book.SetGate(g) }),
		})
		if err != nil {
			return err
		}
		figures.SetGate(s.gate)
		book.SetGate(s.gate)
		for _, w := range s.file.Warnings() {
			log.Warn("configuration: " + w)
		}
		cert, err := secure.load(s.file, log)
		if err != nil {
			return err
		}
		scaling, err := s.scale(cmd.Context(), keda)
		if err != nil {
			return err
		}
		defer scaling()
		limiting, err := s.limit(cmd.Context(), envoy, d)
		if err != nil {
			return err
		}
		defer limiting()
		if err := ahead.open(cmd, s, d, cert); err != nil {
			return err
		}
		defer ahead.close()
		return s.serve(cmd, d, listen, cert, &ahead, time.Duration(drain), time.Duration(idle))
	}
	return cmd
}

// history opens the record of past minutes: in the state directory, one for each store, or in memory if the store is.
func (s *session) history() *history.Book {
	o := history.Options{Failed: func(err error) {
		s.notes.Warn("the history is not kept: " + err.Error())
	}}
	if s.store != "mem:" {
		o.Dir, o.Log, o.Process = s.dir, s.dir, s.log.Process()
		if s.label != "file" { // the store that the directory belongs to
			o.Name = "history-" + s.label
		}
		o.Ours = func(e *inspect.Event) bool { return eventlog.IsOf(e, s.ours()) }
	}
	return history.Open(o)
}

// daemon builds the daemon that the session's configuration describes.
func (s *session) daemon(o *daemon.Options) (*daemon.Daemon, error) {
	o.File, o.Gate, o.Store, o.Env, o.Via = s.file, s.gate, s.held, os.LookupEnv, s.via()
	o.Tell = s.config.Events
	o.Report = func(ctx context.Context, gates []*sluice.Gate, since time.Time) (inspect.Report, error) {
		var all inspect.Report
		for i, gate := range gates {
			one, err := reportOf(ctx, s, gate, since)
			switch {
			case i == 0 && err != nil:
				return one, err
			case i == 0:
				all = one
			case err == nil: // on an error they belong to another configuration
				all.Resources = append(all.Resources, one.Resources...)
			}
		}
		return all, nil
	}
	if o.Base == nil {
		out, err := newOutlet(s.file, s.notes, nil)
		if err != nil {
			return nil, configFailure(err)
		}
		o.Base = out.transport()
	}
	k, err := s.keeper()
	if err != nil {
		return nil, err
	}
	s.letters, o.Letters = k, k
	o.Show = func(r *inspect.Report, minutes bool) any {
		shown := asReport(r)
		if minutes {
			addMinutes(shown)
		}
		return shown
	}
	if log := s.logName(true); log != "" {
		o.EventLog = func() string { return log + " " + strings.Join(s.ours(), " ") }
	}
	o.Rejected = func(resource, agent string) any {
		var names []string
		if resource != "" {
			names = []string{resource}
		}
		list, err := s.readRefused(names, whose{agent: agent}, time.Now())
		if err != nil {
			s.warnOfLog(err)
		}
		return list
	}
	o.Past = s.pastReader()
	o.Version = buildVersion(debug.ReadBuildInfo()).Version
	d, err := daemon.New(*o)
	if err != nil {
		return nil, &failure{code: exitConfig, message: err.Error(), hint: "docs/configuration.md describes every field"}
	}
	return d, nil
}

// via returns the secret by which gates of the same store on this machine recognize each other, so that a client cannot
// guess it. Without a state directory, gates do not recognize each other.
func (s *session) via() string {
	secret, kept := s.secret(true)
	if !kept || s.store == "mem:" {
		return rand.Text()
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(s.store))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// logName names the event log of the session, so that a daemon and its client can tell whether they read the same one.
// It is empty if the log has no name yet.
func (s *session) logName(create bool) string {
	secret, kept := s.secret(create)
	if !kept {
		return ""
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("event log"))
	return hex.EncodeToString(mac.Sum(nil)[:16])
}

// secret returns a secret that is kept in a file of the state directory, and whether it is.
func (s *session) secret(create bool) (secret []byte, kept bool) {
	if s.dir == "" {
		return nil, false
	}
	path := filepath.Join(s.dir, "gate.secret")
	secret = make([]byte, 32)
	if create {
		if statedir.Make(s.dir) != nil {
			return nil, false
		}
		_, _ = rand.Read(secret) // never fails
		if f, err := statedir.Open(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY); err == nil {
			_, err = f.Write(secret)
			if err = errors.Join(err, f.Close()); err != nil {
				return nil, false
			}
		}
	}
	f, err := statedir.Open(path, os.O_RDONLY)
	if err != nil {
		return nil, false
	}
	defer func() { _ = f.Close() }() // it was only read
	_, err = io.ReadFull(f, secret)
	return secret, err == nil
}

// defaultDrain bounds how long running requests may take to finish after a signal.
const defaultDrain = 30 * time.Second

// serve listens, with TLS if there is a certificate, announces the addresses, and serves until a signal comes. Running
// requests then have drain to finish.
func (s *session) serve(cmd *cobra.Command, d *daemon.Daemon, listen []string, cert *daemon.Certificate, ahead *forwardFlags, drain, idle time.Duration) error {
	stop, cancel := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	stop, ends := context.WithCancel(stop)
	defer ends()
	var listeners []net.Listener
	for _, address := range listen {
		l, err := daemon.Listen(stop, address, len(s.file.Tokens) > 0)
		if err != nil {
			for _, l := range listeners {
				_ = l.Close()
			}
			f := listenFailure(err)
			if f.code == exitUsage && !cmd.Flags().Changed("listen") { // the configuration names it
				f.code = exitConfig
			}
			return f
		}
		if cert != nil {
			l = cert.Secure(l)
		}
		listeners = append(listeners, l)
	}
	s.clients.Store(labelsOf(listeners))
	warnInTheClear(listeners, s.notes)
	if name := unselected(configName(cmd, nil)); name != "" {
		s.notes.Info(selectHint(name))
	}
	if names := s.file.WithoutUpstream(); len(names) > 0 {
		s.notes.Info("no upstream, so clients cannot send through the gate to: " + strings.Join(names, ", ") + "; set upstream for that, or use sluice acquire")
	}
	defer s.reloadOnSignal(stop, d)() // ready before the addresses are announced
	if err := s.announce(cmd, d, listeners, ahead); err != nil {
		return err
	}
	if err := sdnotify.Ready(os.Getenv("NOTIFY_SOCKET")); err != nil {
		s.notes.Warn("the service manager does not hear that the gate is ready: " + err.Error())
	}
	if idle > 0 {
		go func() {
			if d.WaitIdle(stop, idle) {
				s.notes.Info("no request for " + shortTime(idle) + ", as --exit-idle says")
				ends()
			}
		}()
	}
	cut, end := context.WithCancel(context.WithoutCancel(stop))
	defer end()
	context.AfterFunc(stop, func() {
		cancel() // the next signal is a second one
		second := make(chan os.Signal, 1)
		signal.Notify(second, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(second)
		bound := time.NewTimer(drain)
		defer bound.Stop()
		select {
		case <-second:
		case <-bound.C:
			s.notes.Warn("some requests did not finish within " + shortTime(drain) + "; their connections are closed")
		case <-cut.Done():
		}
		end()
	})
	if err := d.Serve(stop, cut, listeners...); err != nil {
		return &failure{code: exitUnavailable, message: err.Error()}
	}
	return nil
}

// labelsOf returns the labels by which commands on this machine call the store of a daemon that listens here.
func labelsOf(listeners []net.Listener) *[]string {
	var list []string
	for _, l := range listeners {
		at := "http://" + l.Addr().String()
		switch a := l.Addr().(type) {
		case *net.UnixAddr:
			at = "http+unix:" + absolute(a.Name)
		case *net.TCPAddr:
			if a.IP.IsUnspecified() {
				at = fmt.Sprintf("http://127.0.0.1:%d", a.Port)
			}
		}
		list = append(list, storeurl.Label(at))
	}
	return &list
}

// listenFailure describes why an address cannot be listened on, and what to do.
func listenFailure(err error) *failure {
	f := &failure{code: exitUnavailable, message: err.Error(), hint: "use another address: --listen HOST:PORT or --listen unix:PATH; port 0 takes any free port"}
	if errors.Is(err, daemon.ErrAddress) {
		f.code = exitUsage
	}
	if errors.Is(err, daemon.ErrOpenToAll) {
		f.code = exitUsage
		f.hint = "listen on 127.0.0.1, or require a token: sluice token new NAME prints one and its line for the configuration:\n" +
			"  tokens:\n    - {name: NAME, class: p2, hash: SHA-256 of the token}"
	}
	return f
}

// announce prints the addresses of the gate, for people and for scripts that wait for it.
func (s *session) announce(cmd *cobra.Command, d *daemon.Daemon, listeners []net.Listener, ahead *forwardFlags) error {
	var urls []string
	for _, l := range listeners {
		urls = append(urls, daemon.URL(l))
	}
	out := cmd.OutOrStdout()
	if asJSON(cmd) {
		return json.NewEncoder(out).Encode(struct {
			Listen    []string `json:"listen"`
			Resources []string `json:"resources"`
			Store     string   `json:"store"`
			Forward   string   `json:"forward,omitempty"` // address of the forward proxy
			CA        string   `json:"ca,omitempty"`      // SHA-256 of its authority's certificate
		}{urls, d.Resources(), s.store, ahead.url(), ahead.fingerprint()})
	}
	fmt.Fprintf(out, "sluice: listening on %s; store %s\n", strings.Join(urls, ", "), s.store)
	// One line for each resource that the configuration names, and one line for all built-in ones.
	var others []string
	named := s.file.Named()
	for _, name := range d.Resources() {
		if !slices.Contains(named, name) {
			others = append(others, name)
			continue
		}
		fmt.Fprintf(out, "  %s/%s\n", urls[0], name)
	}
	if len(others) > 0 {
		fmt.Fprintf(out, "  built in, at %s/NAME: %s\n", urls[0], strings.Join(others, ", "))
	}
	if at := ahead.url(); at != "" {
		fmt.Fprintf(out, "sluice: forward proxy on %s; clients trust what sluice ca show prints, SHA-256 %s\n", at, ahead.fingerprint())
	}
	return nil
}
