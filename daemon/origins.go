package daemon

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/internal/loopback"
	"github.com/sluicehq/sluice/proxy/forward"
)

// addressOf returns the address that a resource's requests go to. It is empty if the resource is used only on the
// command line or in Go.
func addressOf(f *config.File, name string, upstreams map[string]string) string {
	return cmp.Or(upstreams[name], f.UpstreamOf(name))
}

// Origins returns the addresses that clients of a configuration's resources send to: the upstream of each resource, and
// the usual address of its provider. upstreams overrides upstreams, by name. If several resources share an address, the
// order is: resources with it as upstream, resources that the file names, and the resource named like its provider.
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
		if usual, err := url.Parse(f.ProviderAddress(name)); err == nil && usual.Host != "" && usual.String() != up.String() {
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

// Beside is a server that runs together with the daemon: it passes requests to the daemon and ends with it.
type Beside interface {
	Serve(l net.Listener) error
	Shutdown(ctx context.Context) error
}

// beside is a Beside with its listener.
type beside struct {
	Beside
	listener net.Listener
}

// With adds a server that Serve runs too. Call it before Serve.
func (d *Daemon) With(s Beside, l net.Listener) { d.beside = append(d.beside, beside{s, l}) }

// Origins returns the origins that a forward proxy in front of this daemon gates at the moment.
func (d *Daemon) Origins() *forward.Origins { return d.now.Load().origins }

// Admit identifies a client of a forward proxy in front of this daemon, according to the configuration in force. If
// tokens are needed, the client sends one as Bearer, or as the password of the proxy's URL with the agent as the user.
// The password CLASS:TOKEN also names the class. Without tokens, user and password are agent and class.
func (d *Daemon) Admit(r *http.Request) (forward.Client, bool) {
	g := d.enter()
	defer g.leave()
	client := forward.Client{Near: loopback.Request(r)}
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
