package main

import (
	"crypto/rand"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/proxy/forward"
)

// envForward holds the address of the forward proxy that a child uses, so that a nested run recognizes its proxy.
const envForward = "SLUICE_FORWARD"

// interceptLife is how long the authority of a run is valid. Its key ends with the run.
const interceptLife = 365 * 24 * time.Hour

// interceptUser is the user in the URL of a run's proxy. The password distinguishes the run's command from other
// programs.
const interceptUser = "sluice"

// interceptFlags holds the flags of interception that run and serve share.
type interceptFlags struct {
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
	flags    interceptFlags
	origins  *forward.Origins
	server   *forward.Server
	listener net.Listener
	secret   string
	client   forward.Client
	store    string // host of the daemon whose store is used; empty if there is none
	bundle   string // file of certificates
	done     chan error
}

// intercept starts a forward proxy in front of the gate.
func (g *runGate) intercept(flags interceptFlags) (err error) {
	all, err := daemon.Origins(g.file, g.upstreams)
	if err != nil {
		return &failure{code: exitConfig, message: err.Error(), hint: "docs/configuration.md describes every field"}
	}
	i := &interceptor{flags: flags, client: forward.Client{Trusted: true, Near: true}, done: make(chan error, 1)}
	if i.origins, err = flags.without(all); err != nil {
		return err
	}
	if at, err := placeOf(g.cmd, g.file); err == nil && strings.HasPrefix(at.url, "http") {
		if u, err := url.Parse(at.url); err == nil {
			i.store = u.Hostname()
		}
	}
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails
	i.secret = hex.EncodeToString(secret)
	authority, err := forward.NewAuthority("sluice run, for one command", i.origins.Hosts(), interceptLife)
	if err != nil {
		return &failure{code: exitInternal, message: "no certificate authority could be made: " + err.Error()}
	}
	if err := i.trust(authority, g.cmd); err != nil {
		return err
	}
	if i.listener, err = daemon.Listen(g.cmd.Context(), "127.0.0.1:0", false); err != nil {
		_ = os.Remove(i.bundle)
		return &failure{code: exitUnavailable, message: "there is no port for the gate: " + err.Error(), hint: "without --intercept the command runs with base-URL variables"}
	}
	i.server = forward.New(forward.Options{
		Handler: g, Origins: func() *forward.Origins { return i.origins }, Authority: func() *forward.Authority { return authority },
		Admit: i.admit, OnlyGated: flags.onlyGated, Proxy: g.outlet.through, Roots: g.outlet.roots.Pool, Log: notesOf(g.cmd),
	})
	go func() { i.done <- i.server.Serve(i.listener) }()
	g.forward = i
	return nil
}

// proxyOf returns the proxy that the environment names for outgoing requests. It ignores proxies at an address in not.
func proxyOf(not ...string) func(*url.URL) (*url.URL, error) {
	return forward.FromEnvironment(os.Getenv, not...)
}

// withinIntercept reports whether outgoing requests pass the forward proxy of an enclosing run. That run's gate is then
// told what has passed this one.
func withinIntercept() bool {
	at := os.Getenv(envForward)
	if at == "" {
		return false
	}
	p, err := proxyOf()(&url.URL{Scheme: "https", Host: "sluice.invalid"})
	return err == nil && p != nil && p.Host == at
}

// admit accepts clients that know the password.
func (i *interceptor) admit(r *http.Request) (forward.Client, bool) {
	c, ok := forward.CredentialsOf(r)
	return i.client, ok && subtle.ConstantTimeCompare([]byte(c.Password), []byte(i.secret)) == 1
}

// trust writes the bundle of certificates that the command trusts.
func (i *interceptor) trust(authority *forward.Authority, cmd *cobra.Command) error {
	text, missing := forward.Bundle(authority, os.Getenv)
	for _, err := range missing {
		notesOf(cmd).Warn("certificates are left out: " + err.Error())
	}
	f, err := os.CreateTemp("", "sluice-ca-*.pem") // 0600
	if err == nil {
		_, err = f.Write(text)
		if err = errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(f.Name())
		}
	}
	if err != nil {
		return &failure{code: exitUnavailable, message: "the bundle of certificates could not be written: " + err.Error(), hint: "look at TMPDIR and at the space there"}
	}
	i.bundle = f.Name()
	return nil
}

// variables returns the environment variables that point a child to the proxy and make it trust the proxy's authority.
func (i *interceptor) variables(agent, class string) (vars []variable) {
	i.client.Agent, i.client.Class = agent, class
	at := (&url.URL{Scheme: "http", User: url.UserPassword(interceptUser, i.secret), Host: i.listener.Addr().String()}).String()
	for _, name := range forward.ProxyVariables() {
		vars = append(vars, variable{name, at})
	}
	for _, name := range forward.BundleVariables(os.Getenv) {
		vars = append(vars, variable{name, i.bundle})
	}
	for _, name := range forward.NoProxyVariables() {
		vars = append(vars, variable{name, i.noProxy()})
	}
	return append(vars,
		variable{"NODE_USE_ENV_PROXY", "1"}, // Node ignores the others without it
		variable{envForward, i.listener.Addr().String()})
}

// noProxy returns the hosts that the command reaches without the proxy: this machine, the daemon whose store a nested
// sluice uses, and the hosts that the environment names, unless they are gated.
func (i *interceptor) noProxy() string {
	list := "localhost,127.0.0.1,::1"
	if i.store != "" && !strings.Contains(list, i.store) {
		list += "," + i.store
	}
	if !i.flags.onlyGated {
		for _, name := range forward.NoProxyVariables() {
			if v := os.Getenv(name); v != "" {
				list += "," + v
				break
			}
		}
	}
	return forward.NoProxy(list, i.origins.Addresses())
}

// close ends the proxy and removes the bundle.
func (i *interceptor) close() error {
	err := i.server.Close()
	<-i.done
	return errors.Join(err, os.Remove(i.bundle))
}
