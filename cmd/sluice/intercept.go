package main

import (
	"cmp"
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/proxy/forward"
)

// Environment variables by which a nested run recognizes its proxy.
const (
	envForward   = "SLUICE_FORWARD"   // address of the forward proxy that a child uses
	envDecrypted = "SLUICE_DECRYPTED" // addresses that this proxy, or one that it goes through, decrypts; nobody if there are none
)

const nobody = "none"

// interceptLife is how long the authority of a run is valid. Its key ends with the run.
const interceptLife = 365 * 24 * time.Hour

// Users in the URL of a run's proxy. The password distinguishes the run's command from other programs.
const (
	interceptUser = "sluice"
	gateUser      = "sluice-gate" // a gate of a nested run, or its forward proxy: that run counts its connections
)

// interceptFlags holds the flags of interception that run and serve share.
type interceptFlags struct {
	mode      config.Interception // of run; empty means the configured one
	onlyGated bool
	tunnel    []string
}

func (f *interceptFlags) add(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.onlyGated, "only-gated", false, "refuse connections to hosts that are not gated, instead of tunnelling them")
	cmd.Flags().StringArrayVar(&f.tunnel, "tunnel", nil, "leave gated `HOST` out: tunnel it without decrypting it; may be repeated")
}

// need refuses these flags without the flag that they belong to.
func (f *interceptFlags) need(cmd *cobra.Command, flag string, given bool) error {
	for _, name := range []string{"only-gated", "tunnel"} {
		if !given && cmd.Flags().Changed(name) {
			return &failure{code: exitUsage, message: "--" + name + " needs --" + flag, hint: "see " + cmd.CommandPath() + " --help"}
		}
	}
	return nil
}

// without returns the origins without the hosts that are tunnelled.
func (f *interceptFlags) without(all *forward.Origins) (*forward.Origins, error) {
	left, unknown := all.Without(f.tunnel)
	if len(unknown) > 0 {
		return nil, &failure{
			code: exitUsage, message: fmt.Sprintf("--tunnel: %.80q is not gated", unknown[0]),
			hint: didYouMean(unknown[0], all.Hosts(), "gated are "+strings.Join(all.Hosts(), ", ")),
		}
	}
	return left, nil
}

// interceptor is the forward proxy of one run. Only the run's command knows its password and trusts its authority.
type interceptor struct {
	way      *runWay
	flags    *interceptFlags
	server   *forward.Server
	listener net.Listener
	secret   string
	client   forward.Client
	store    string      // host of the daemon whose store is used; empty if there is none
	bundle   *bundleFile // nil if nothing is decrypted
	done     chan error
	past     *pastGate
	// distrusted is set if a connection that was to be decrypted went past the gate.
	distrusted atomic.Bool
}

// intercept starts a forward proxy in front of the gate.
func (g *runGate) intercept(flags *interceptFlags) (err error) {
	i := &interceptor{way: &g.way, flags: flags, client: forward.Client{Trusted: true, Near: true}, done: make(chan error, 1), past: g.past}
	o := forward.Options{
		Handler: g, Origins: func() *forward.Origins { return g.way.decrypted }, Watched: func() *forward.Origins { return g.way.watched },
		Admit: i.admit, Past: i.wentPast, Yield: g.way.mode == config.InterceptAuto, Anonymous: g.way.mode != config.InterceptOn, OnlyGated: flags.onlyGated, Proxy: g.outlet.through, Roots: g.outlet.roots.Pool, Log: notesOf(g.cmd),
	}
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails
	i.secret = hex.EncodeToString(secret)
	if i.decrypts() {
		if at, err := placeOf(g.cmd, g.file); err == nil && strings.HasPrefix(at.url, "http") {
			if u, err := url.Parse(at.url); err == nil {
				i.store = u.Hostname()
			}
		}
		authority, err := forward.NewAuthority("sluice run, for one command", g.way.decrypted.Hosts(), interceptLife)
		if err != nil {
			return &failure{code: exitInternal, message: "no certificate authority could be made: " + err.Error()}
		}
		o.Authority = func() *forward.Authority { return authority }
		if i.bundle, err = writeBundle(authority, notesOf(g.cmd)); err != nil && g.way.mode != config.InterceptAuto {
			return err
		} else if err != nil { // nobody asked for it
			notesOf(g.cmd).Warn("nothing is intercepted: " + err.Error())
			g.way.watched, g.way.decrypted = g.way.watched.And(g.way.decrypted.Encrypted()), forward.NewOrigins(nil)
		}
	}
	if i.listener, err = daemon.Listen(g.cmd.Context(), "127.0.0.1:0", false); err != nil {
		_ = i.bundle.remove() // the other error tells more
		return &failure{code: exitUnavailable, message: "there is no port for the gate: " + err.Error(), hint: "--no-gate runs the command without one"}
	}
	i.server = forward.New(o)
	go func() { i.done <- i.server.Serve(i.listener) }()
	g.forward = i
	return nil
}

// decrypts reports whether the proxy decrypts any connection.
func (i *interceptor) decrypts() bool { return len(i.way.decrypted.Addresses()) > 0 }

// proxyOf returns the proxy that the environment names for outgoing requests. It ignores proxies at an address in not. To
// the proxy of an enclosing run, it names user.
func proxyOf(user string, not ...string) func(*url.URL) (*url.URL, error) {
	through, outer := forward.FromEnvironment(os.Getenv, not...), os.Getenv(envForward)
	return func(u *url.URL) (*url.URL, error) {
		p, err := through(u)
		if err != nil || p == nil || p.Host != outer || p.User == nil {
			return p, err
		}
		named := *p
		password, _ := p.User.Password()
		named.User = url.UserPassword(user, password)
		return &named, nil
	}
}

// withinIntercept reports whether requests to an address are decrypted by the forward proxy of an enclosing run. That run's
// gate is then told what has passed this one.
func withinIntercept(address string) bool {
	outer := os.Getenv(envForward)
	u, err := url.Parse(address)
	if outer == "" || err != nil {
		return false
	}
	list, told := os.LookupEnv(envDecrypted)
	if told && !slices.Contains(strings.Split(list, ","), forward.AddressOf(u)) {
		return false // without the variable, the enclosing run is of an earlier version, which decrypts all that it gates
	}
	p, err := proxyOf(gateUser)(u)
	return err == nil && p != nil && p.Host == outer
}

// admit accepts clients that know the password.
func (i *interceptor) admit(r *http.Request) (forward.Client, bool) {
	c, ok := forward.CredentialsOf(r)
	client := i.client
	client.Gate = c.User == gateUser
	return client, ok && subtle.ConstantTimeCompare([]byte(c.Password), []byte(i.secret)) == 1
}

// wentPast counts a connection past the gate, unless a nested run has counted it.
func (i *interceptor) wentPast(c forward.Client, resource, host string) {
	if c.Gate {
		i.past.nested()
		return
	}
	if slices.Contains(i.way.decrypted.Hosts(), host) {
		i.distrusted.Store(true)
	}
	i.past.add(resource, host)
}

// variables returns the environment variables that point a child to the proxy and, if it decrypts, make the child trust
// its authority. A proxy that only watches changes as little as possible: plain requests stay as they are.
func (i *interceptor) variables(agent, class string) (vars []variable) {
	i.client.Agent, i.client.Class = agent, class
	at := (&url.URL{Scheme: "http", User: url.UserPassword(interceptUser, i.secret), Host: i.listener.Addr().String()}).String()
	direct, less := i.noProxy()
	names := forward.EncryptedProxyVariables()
	if i.decrypts() || less && forward.HasPlainProxy(os.Getenv) {
		names = forward.ProxyVariables()
	}
	for _, name := range names {
		vars = append(vars, variable{name, at})
	}
	for _, name := range forward.NoProxyVariables() {
		vars = append(vars, variable{name, direct})
	}
	vars = append(vars, variable{envForward, i.listener.Addr().String()}, variable{envDecrypted, i.decrypted()})
	if !i.decrypts() {
		return vars
	}
	for _, name := range forward.BundleVariables(os.Getenv) {
		vars = append(vars, variable{name, i.bundle.name()})
	}
	return append(vars, variable{"NODE_USE_ENV_PROXY", "1"}) // Node ignores the others without it
}

// decrypted lists the addresses that this proxy or one beyond it decrypts.
func (i *interceptor) decrypted() string {
	return cmp.Or(strings.Join(append(i.way.decrypted.Addresses(), outerDecrypts()...), ","), nobody)
}

// withoutOuter returns the table without the addresses whose connections the forward proxy of an enclosing run decrypts.
func withoutOuter(all *forward.Origins) *forward.Origins {
	outer := slices.DeleteFunc(all.Addresses(), func(address string) bool { return !withinIntercept("https://" + address) })
	left, _ := all.Without(outer)
	return left
}

// outerDecrypts returns the addresses that the forward proxies of enclosing runs decrypt, as far as they say so.
func outerDecrypts() []string {
	list := os.Getenv(envDecrypted)
	if list == "" || list == nobody || os.Getenv(envForward) == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// noProxy returns the hosts that the command reaches without the proxy: this machine, the daemon whose store a nested
// sluice uses, and the hosts that the environment names, unless they are gated. less is set if that leaves out some of
// them: the proxy then reaches them directly.
func (i *interceptor) noProxy() (list string, less bool) {
	list = thisMachine
	if i.store != "" && !strings.Contains(list, i.store) {
		list += "," + i.store
	}
	own := forward.NoProxyOf(os.Getenv)
	if i.flags.onlyGated {
		own = ""
	}
	gated := append(i.way.decrypted.Addresses(), i.way.watched.Addresses()...)
	kept := forward.NoProxy(own, gated)
	return strings.Trim(forward.NoProxy(list, gated)+commaBefore(kept), ","), kept != forward.NoProxy(own, nil)
}

// close ends the proxy and removes the bundle.
func (i *interceptor) close() error {
	err := i.server.Close()
	<-i.done
	return errors.Join(err, i.bundle.remove())
}
