package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy/forward"
)

// addressOf is where a resource's requests go, empty if it is asked for only on the command line or in Go.
func addressOf(f *config.File, name string, upstreams map[string]string) string {
	address := cmp.Or(upstreams[name], f.Resources[name].Upstream)
	if address == "" {
		address = usualAddress(f, name)
	}
	if keys := f.Resources[name].Keys; address == "" && len(keys) > 0 {
		address = keys[0].Upstream
	}
	return address
}

// usualAddress is that of a resource's provider, where clients send without being told otherwise.
func usualAddress(f *config.File, name string) string {
	if s, ok := f.Dialect(name).(provider.Speaker); ok {
		return s.Address()
	}
	return ""
}

// Origins are the addresses that clients of a configuration's resources send to: the upstream of each, and the usual address of its
// provider. upstreams overrule upstreams, by name. Where several resources have one address, those whose upstream it is go first, then
// those that the file names, then the one that is called as its provider.
func Origins(f *config.File, upstreams map[string]string) (*forward.Origins, error) {
	type candidate struct {
		forward.Origin
		stands, builtIn, renamed bool
	}
	var all []candidate
	named := f.Named()
	for name := range f.Resources {
		address := addressOf(f, name, upstreams)
		if address == "" {
			continue
		}
		up, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("resources.%s.upstream: not a valid address", name)
		}
		c := candidate{Origin: forward.Origin{Resource: name, Address: up, Upstream: up}, builtIn: !slices.Contains(named, name), renamed: f.Resources[name].Provider != name}
		all = append(all, c)
		if usual, err := url.Parse(usualAddress(f, name)); err == nil && usual.Host != "" && usual.String() != up.String() {
			c.Address, c.stands = usual, true
			all = append(all, c)
		}
	}
	rank := func(b bool) int {
		if b {
			return 1
		}
		return 0
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(rank(a.stands), rank(b.stands)), cmp.Compare(rank(a.builtIn), rank(b.builtIn)), cmp.Compare(rank(a.renamed), rank(b.renamed)),
			strings.Compare(a.Resource, b.Resource))
	})
	list := make([]forward.Origin, 0, len(all))
	for _, c := range all {
		list = append(list, c.Origin)
	}
	return forward.NewOrigins(list), nil
}

// Beside is a server that is served together with the daemon: it hands requests to the daemon, and ends with it.
type Beside interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
}

// beside is one of them.
type beside struct {
	Beside
	listener net.Listener
}

// With has Serve serve another server too. Call it before Serve.
func (d *Daemon) With(s Beside, l net.Listener) { d.beside = append(d.beside, beside{s, l}) }

// Origins are what a forward proxy before this daemon gates at the moment.
func (d *Daemon) Origins() *forward.Origins { return d.now.Load().origins }

// Admit finds out who sends through a forward proxy before this daemon, as the configuration in force says. With tokens a client needs
// one: as Bearer, or as the password of the proxy's URL, whose user is the agent. CLASS:TOKEN as password names the class too.
// Without tokens user and password are agent and class.
func (d *Daemon) Admit(r *http.Request) (forward.Client, bool) {
	g := d.enter()
	defer g.leave()
	client := forward.Client{Near: isNear(r)}
	c, _ := forward.CredentialsOf(r)
	if !g.proxy.NeedsToken(r) {
		client.Agent, client.Class = c.User, c.Password
		return client, true
	}
	class, rest, _ := strings.Cut(c.Password, ":")
	for _, try := range []forward.Client{
		{Token: c.Bearer}, {Agent: c.User, Token: c.Password}, {Agent: c.User, Class: class, Token: rest}, {Token: c.User},
	} {
		if try.Token != "" && g.proxy.KnowsToken(try.Token) {
			try.Near = client.Near
			return try, true
		}
	}
	return client, false
}

// isNear reports a client on this machine.
func isNear(r *http.Request) bool {
	if addr, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok && addr.Network() == "unix" {
		return true
	}
	ap, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && ap.Addr().Unmap().IsLoopback()
}
