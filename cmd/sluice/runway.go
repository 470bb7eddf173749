package main

import (
	"cmp"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/daemon"
	"github.com/sluicehq/sluice/internal/clients"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy/forward"
)

// runWay is how the calls of one command reach the gate: variables with base URLs, interception, or both. What goes past
// the gate is at least noticed.
type runWay struct {
	mode   config.Interception
	client *clients.Client // nil if the command is not in the table of clients
	bases  []clients.Base  // variables to set
	// decrypted has the hosts whose connections are decrypted and gated, watched those whose connections are only counted.
	decrypted, watched *forward.Origins
}

// chooseWay finds out how calls of a command reach the gate g.
func (g *runGate) chooseWay(argv []string, flags *interceptFlags) error {
	table, err := g.file.ClientTable()
	if err != nil {
		return clientsFailure(configName(g.cmd, nil), err)
	}
	w := &g.way
	w.client = table.Command(argv)
	w.mode = cmp.Or(flags.mode, g.file.Intercept)
	if err := flags.need(g.cmd, "intercept", w.mode == config.InterceptOn); err != nil {
		return err
	}
	g.readBases(table)
	all, err := daemon.Origins(g.file, g.upstreams)
	if err != nil {
		return &failure{code: exitConfig, message: err.Error(), hint: "docs/configuration.md describes every field"}
	}
	none := forward.NewOrigins(nil)
	switch {
	case w.mode == config.InterceptOn:
		w.watched = none
		w.decrypted, err = flags.without(all)
		return err
	case !forward.Usable(proxyOf(interceptUser), &url.URL{Scheme: "https", Host: "sluice.invalid"}):
		w.decrypted, w.watched = none, none // whatever proxy that is, it stays the command's
	case w.mode == config.InterceptAuto && w.client.Intercepts():
		w.decrypted, w.watched = g.split(all, w.client.Providers)
		w.decrypted = w.decrypted.Change(g.own)
		if !slices.ContainsFunc(w.client.Never, func(name string) bool { return os.Getenv(name) != "" }) {
			w.decrypted = w.decrypted.Encrypted() // the others are addresses in variables, which point to the gate instead
		}
	default:
		w.decrypted, w.watched = none, all
	}
	w.watched = withoutOuter(w.watched.Encrypted()) // the command gets no proxy for plain ones
	if c := w.client; c != nil {
		w.watched, _ = w.watched.Split(func(string) bool { return false }, func(name string) bool {
			p := g.file.Resources[name].Provider
			return !slices.Contains(c.Aside, p) || slices.Contains(c.Providers, p)
		})
	}
	for _, b := range table.For(w.client) {
		if g.sets(b) {
			w.bases = append(w.bases, b)
		}
	}
	return nil
}

// clientsFailure reports a client's file that cannot be read.
func clientsFailure(name string, err error) error {
	f := asFailure(configFailure(err))
	if f.parse == nil {
		f.message, f.hint = name+": "+err.Error(), "clients names a directory of YAML files, relative to the configuration"
	}
	return f
}

// split divides a table of addresses: wanted gets those of providers.
func (g *runGate) split(all *forward.Origins, providers []string) (wanted, rest *forward.Origins) {
	return all.Split(hostsOf(providers), func(name string) bool { return slices.Contains(providers, g.file.Resources[name].Provider) })
}

// own leads calls to a provider's usual address there, or where the configuration says. A variable that the command does not
// read must not lead its keys elsewhere.
func (g *runGate) own(o forward.Origin) forward.Origin {
	if g.upstreams[o.Resource] == "" || o.Address.String() != g.file.ProviderAddress(o.Resource) {
		return o
	}
	if u, err := url.Parse(g.file.UpstreamOf(o.Resource)); err == nil {
		o.Upstream, o.Own = u, true
	}
	return o
}

// hostsOf recognizes the usual hosts of providers.
func hostsOf(providers []string) func(host string) bool {
	var hosts []string
	for _, name := range providers {
		d, _ := provider.Lookup(name)
		if s, ok := d.(provider.Speaker); ok {
			if u, err := url.Parse(s.Address()); err == nil && u.Host != "" {
				hosts = append(hosts, strings.ToLower(u.Hostname()))
			}
		}
	}
	return func(host string) bool { return slices.Contains(hosts, host) }
}

// readBases notes the base URLs that the environment states. They become the upstreams of their resources.
func (g *runGate) readBases(table *clients.Table) {
	all := table.Bases()
	if g.way.client != nil {
		all = append(all, g.way.client.Bases...)
	}
	usual := func(b clients.Base) int { // if two differ, the name that most clients read holds
		if strings.HasSuffix(b.Variable, "_BASE_URL") {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b clients.Base) int { return cmp.Compare(usual(a), usual(b)) })
	for _, b := range all {
		name, there := g.names[b.Provider]
		if at := strings.TrimSuffix(os.Getenv(b.Variable), "/"); there && at != "" {
			trimmed, had := strings.CutSuffix(at, b.Suffix)
			if g.bare[b.Variable] = !had; g.upstreams[name] == "" {
				if g.upstreams[name] = trimmed; !had && strings.Count(trimmed, "/") == len("//") {
					g.upstreams[name] += "/" // a server without the usual prefix: paths stay as they are written
				}
			}
		}
	}
}

// sets reports whether a variable is set for the command.
func (g *runGate) sets(b clients.Base) bool {
	name, there := g.names[b.Provider]
	if !there || b.Own && !slices.ContainsFunc(g.way.client.Keys, func(key string) bool { return os.Getenv(key) != "" }) {
		return false
	}
	at := cmp.Or(g.upstreams[name], g.file.UpstreamOf(name))
	if b.Signed == "" || at == "" {
		return at != ""
	}
	u, err := url.Parse(at)
	return err == nil && u.Hostname() != b.Signed && !strings.HasSuffix(u.Hostname(), "."+b.Signed)
}

// gates reports whether calls of the command to a resource pass the gate, if the command is what the table of clients says.
func (g *runGate) gates(name string) bool {
	return slices.Contains(g.based(), name) || slices.Contains(g.way.decrypted.Resources(), name)
}

// based returns the resources that variables point to, sorted.
func (g *runGate) based() []string {
	var names []string
	for _, b := range g.way.bases {
		names = append(names, g.names[b.Provider])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// aside reports whether the command's client connects to the provider of a resource for other things too, besides calls that
// a base URL leads to the gate.
func (g *runGate) aside(resource string) bool {
	c := g.way.client
	return c != nil && slices.Contains(c.Aside, g.file.Resources[resource].Provider) && slices.Contains(g.based(), resource)
}

// announce says in one line how the command's calls reach the gate. It returns "" if there is nothing to say.
func (g *runGate) announce() string {
	w := &g.way
	hosts := w.decrypted.Hosts()
	switch {
	case len(hosts) > 0 && w.mode == config.InterceptOn:
		return "calls to " + strings.Join(w.decrypted.Resources(), ", ") + " are intercepted on " + g.forward.listener.Addr().String()
	case len(hosts) > 0:
		return w.client.Name + " " + w.client.Why + ": its calls to " + someOf(hosts, "host") + " are intercepted; --no-intercept leaves them"
	case g.listener != nil:
		return "calls to " + strings.Join(g.based(), ", ") + " can pass the gate on " + g.listener.Addr().String()
	}
	return ""
}

// fewHosts is how many hosts a line names.
const fewHosts = 3

// someOf lists the first names, and how many more there are.
func someOf(names []string, what string) string {
	if len(names) <= fewHosts {
		return inWords(names, "and")
	}
	return strings.Join(names[:2], ", ") + fmt.Sprintf(" and %d other %ss", len(names)-2, what)
}
