// Package trial makes one call of a client through a gate to a model of its provider, to prove that the client's way
// through the gate works on this machine. No call reaches a provider: the gate sends to the model, keys are made up, and
// every other connection is refused.
package trial

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/proxy/forward"
	"github.com/sluicehq/sluice/sim/mock"
	"github.com/sluicehq/sluice/sluicehttp"
	_ "github.com/sluicehq/sluice/store/memstore" // the gate's store
)

// Untried is the error for a client that was not tried. It says why.
type Untried string

func (u Untried) Error() string { return string(u) }

const noCall Untried = "no short call of it is known"

const (
	// usualWithin bounds one call: some programs take long to start.
	usualWithin = 90 * time.Second
	// heardWithin is how long the gate may take to count a call whose client has its response.
	heardWithin = 2 * time.Second
	caLife      = 24 * time.Hour
)

// Bench is a gate on this machine, with models of providers behind it.
type Bench struct {
	table  *clients.Table
	within time.Duration // for one call
	gate   *sluice.Gate
	secret string // of the forward proxies
	dir    string // temporary files
	models []*mock.Server
	ends   []func()

	direct string // address of the gate
	open   string // address of a forward proxy that intercepts connections to providers
	wall   string // address of a forward proxy that refuses all connections
	bundle string // file of certificates that trusts open
	roots  []byte

	mu     sync.Mutex
	calls  map[string][]sluicehttp.Exchange // by client
	passed map[string][]string              // hosts that a client wanted to reach past the gate
	change chan struct{}                    // closed and replaced when calls grows
}

// Open starts a bench for the clients of a table. Close it after use.
func Open(ctx context.Context, table *clients.Table) (_ *Bench, err error) {
	secret := make([]byte, 16)
	_, _ = rand.Read(secret) // never fails
	b := &Bench{table: table, within: usualWithin, secret: hex.EncodeToString(secret), calls: map[string][]sluicehttp.Exchange{}, passed: map[string][]string{}, change: make(chan struct{})}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	if b.dir, err = os.MkdirTemp("", "sluice-check-"); err != nil {
		return nil, err
	}
	p, origins, err := b.proxy(ctx)
	if err != nil {
		return nil, err
	}
	authority, err := forward.NewAuthority("sluice setup --check", origins.Hosts(), caLife)
	if err != nil {
		return nil, err
	}
	b.roots, _ = forward.Bundle(authority, func(string) string { return "" })
	b.bundle = filepath.Join(b.dir, "ca.pem")
	if err := os.WriteFile(b.bundle, b.roots, 0o600); err != nil {
		return nil, err
	}
	if b.direct, err = b.serve(ctx, p); err != nil {
		return nil, err
	}
	for _, f := range []struct {
		at      *string
		origins *forward.Origins
	}{{&b.open, origins}, {&b.wall, forward.NewOrigins(nil)}} {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		s := forward.New(forward.Options{
			Handler: p, Origins: func() *forward.Origins { return f.origins }, Authority: func() *forward.Authority { return authority },
			Admit: b.admit, OnlyGated: true,
		})
		var done sync.WaitGroup
		done.Go(func() { _ = s.Serve(l) }) // until it is closed
		b.ends = append(b.ends, func() { _ = s.Close(); done.Wait() })
		*f.at = l.Addr().String()
	}
	return b, nil
}

// proxy returns the gate for all providers that can be modelled, and the addresses of those providers.
func (b *Bench) proxy(ctx context.Context) (*proxy.Proxy, *forward.Origins, error) {
	config, resources := sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{}}, map[string]proxy.Resource{}
	var origins []forward.Origin
	for _, name := range provider.Names() {
		d, _ := provider.Lookup(name)
		address, err := url.Parse(addressOf(d))
		if err != nil || address.Host == "" {
			continue
		}
		model, err := b.model(name)
		if err != nil {
			return nil, nil, err
		}
		at, err := b.serve(ctx, model)
		if err != nil {
			return nil, nil, err
		}
		up := &url.URL{Scheme: "http", Host: at}
		config.Resources[name] = sluice.Resource{}
		resources[name] = proxy.Resource{Upstream: up, Dialect: d, Deadline: usualWithin}
		origins = append(origins, forward.Origin{Resource: name, Address: address, Upstream: up})
	}
	var err error
	if b.gate, err = sluice.Open(ctx, config); err != nil {
		return nil, nil, err
	}
	p, err := proxy.New(proxy.Options{Gate: b.gate, Resources: resources, Classes: []string{"p0", "p1", "p2"}, Done: b.heard, Clients: b.table})
	if err == nil {
		b.ends = append(b.ends, p.Settle)
	}
	return p, forward.NewOrigins(origins), err
}

func addressOf(d provider.Dialect) string {
	if s, ok := d.(provider.Speaker); ok {
		return s.Address()
	}
	return ""
}

// serve serves a handler on a port of this machine until the bench is closed.
func (b *Bench) serve(ctx context.Context, h http.Handler) (address string, err error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	s := &http.Server{Handler: h, ReadHeaderTimeout: usualWithin}
	var done sync.WaitGroup
	done.Go(func() { _ = s.Serve(l) }) // until it is closed
	b.ends = append(b.ends, func() { _ = s.Close(); done.Wait() })
	return l.Addr().String(), nil
}

// admit tells clients of the forward proxies apart by the user in the proxy's URL.
func (b *Bench) admit(r *http.Request) (forward.Client, bool) {
	c, ok := forward.CredentialsOf(r)
	if !ok || c.Password != b.secret {
		return forward.Client{}, false
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.passed[c.User]) < maxHosts && !slices.Contains(b.passed[c.User], host) {
		b.passed[c.User] = append(b.passed[c.User], host)
	}
	return forward.Client{Agent: c.User, Trusted: true, Near: true}, true
}

// maxHosts bounds how many hosts of a client are remembered.
const maxHosts = 100

// heard records a finished call.
func (b *Bench) heard(e sluicehttp.Exchange) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.calls[e.Agent] = append(b.calls[e.Agent], e)
	close(b.change)
	b.change = make(chan struct{})
}

// Close ends the bench.
func (b *Bench) Close() error {
	for _, m := range b.models {
		m.Close()
	}
	for _, end := range slices.Backward(b.ends) {
		end()
	}
	var err error
	if b.gate != nil {
		err = b.gate.Close()
	}
	if b.dir != "" {
		err = errors.Join(err, os.RemoveAll(b.dir))
	}
	return err
}

// Try makes one call of a client. It returns nil if the call passed the gate and had its response, and Untried if no
// call could be tried. program is the path of the client's program; if it is empty or the table does not say how
// to make a short call with it, Try makes a call as the client would.
func (b *Bench) Try(ctx context.Context, c *clients.Client, program string) error {
	short, cancel := context.WithTimeout(ctx, b.within)
	defer cancel()
	var ended error
	switch {
	case c.Way == clients.BySetting:
		return Untried("it finds none of its own settings in the check")
	case program != "" && c.Try != nil:
		ended = b.run(short, c, program)
	case c.Kind == clients.Library:
		if ended = b.call(short, c); errors.Is(ended, noCall) {
			return ended
		}
	case program == "":
		return Untried("its program is not in PATH")
	default:
		return noCall
	}
	if err := b.judge(ctx, c); err != nil {
		if ended != nil {
			return fmt.Errorf("%w; %w", err, ended)
		}
		return err
	}
	if ended != nil {
		return fmt.Errorf("its call passed the gate, but %w", ended)
	}
	return nil
}

// judge returns nil if a call of the client has passed the gate and was answered.
func (b *Bench) judge(ctx context.Context, c *clients.Client) error {
	ctx, cancel := context.WithTimeout(ctx, heardWithin)
	defer cancel()
	for {
		b.mu.Lock()
		calls, change := b.calls[c.Name], b.change
		b.mu.Unlock()
		if slices.ContainsFunc(calls, answered) {
			return nil
		}
		select {
		case <-change:
		case <-ctx.Done():
			return b.reason(c, calls)
		}
	}
}

// answered reports whether a call had the response of a model. Some clients first ask for other things.
func answered(e sluicehttp.Exchange) bool {
	return e.Err == nil && e.Status >= 200 && e.Status < 300 && (e.Usage.Known || !isExact(e.Resource))
}

// reason says why no call was answered.
func (b *Bench) reason(c *clients.Client, calls []sluicehttp.Exchange) error {
	if n := len(calls); n > 0 {
		last := calls[n-1]
		if last.Status == http.StatusOK {
			return errors.New("what passed the gate was no call of a model")
		}
		return fmt.Errorf("its call passed the gate, and the model answered %d", last.Status)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range c.Providers {
		d, _ := provider.Lookup(name)
		if u, err := url.Parse(addressOf(d)); err == nil && u.Host != "" && slices.Contains(b.passed[c.Name], u.Hostname()) {
			if c.Intercepts() {
				return fmt.Errorf("it connected to %s and made no call there; it may not trust the gate's certificate", u.Hostname())
			}
			return fmt.Errorf("it called %s, past the gate", u.Hostname())
		}
	}
	return errors.New("no call passed the gate")
}
