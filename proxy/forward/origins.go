package forward

import (
	"cmp"
	"maps"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/proxy"
)

// Origin is an address at which clients reach a resource.
type Origin struct {
	Resource string
	Address  *url.URL // the address that clients send to
	Upstream *url.URL // the address that the gate sends to; nil means the same
	Own      bool     // see [proxy.Intercepted]
}

// Origins is the table of gated addresses. A nil *Origins gates nothing.
type Origins struct {
	sites map[string]*site // by host and port
}

// site is one host and port with its origins: the longest path first, then in the given order.
type site struct {
	host    string
	tls     bool
	origins []Origin
}

// NewOrigins returns a table of addresses. If two resources have the same address, the first one gets its requests.
func NewOrigins(list []Origin) *Origins {
	o := &Origins{sites: map[string]*site{}}
	for _, origin := range list {
		u := origin.Address
		key := addressOf(u)
		s := o.sites[key]
		if s == nil {
			s = &site{host: strings.ToLower(u.Hostname()), tls: u.Scheme == "https"}
			o.sites[key] = s
		}
		if s.tls == (u.Scheme == "https") {
			s.origins = append(s.origins, origin)
		}
	}
	for _, s := range o.sites {
		slices.SortStableFunc(s.origins, func(a, b Origin) int { return cmp.Compare(len(base(b.Address)), len(base(a.Address))) })
	}
	return o
}

// AddressOf returns the host and port of a URL, in lower case, as [Origins.Addresses] does.
func AddressOf(u *url.URL) string { return addressOf(u) }

// addressOf returns the host and port of a URL, in lower case.
func addressOf(u *url.URL) string {
	port := u.Port()
	if port == "" {
		if port = "443"; u.Scheme == "http" {
			port = "80"
		}
	}
	return key(u.Hostname(), port)
}

func key(host, port string) string { return net.JoinHostPort(strings.ToLower(host), port) }

func base(u *url.URL) string { return strings.TrimSuffix(u.EscapedPath(), "/") }

// Hosts returns the gated hosts, sorted.
func (o *Origins) Hosts() []string {
	hosts := map[string]bool{}
	for _, s := range o.sites {
		hosts[s.host] = true
	}
	return slices.Sorted(maps.Keys(hosts))
}

// Addresses returns the gated hosts with their ports, sorted.
func (o *Origins) Addresses() []string { return slices.Sorted(maps.Keys(o.sites)) }

// Resources returns the names of the gated resources, sorted.
func (o *Origins) Resources() []string {
	names := map[string]bool{}
	for _, s := range o.sites {
		for _, origin := range s.origins {
			names[origin.Resource] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Without returns a table without hosts, and the hosts that are not in the table.
func (o *Origins) Without(hosts []string) (left *Origins, unknown []string) {
	left = &Origins{sites: maps.Clone(o.sites)}
	for _, host := range hosts {
		before := len(left.sites)
		maps.DeleteFunc(left.sites, func(address string, s *site) bool {
			return strings.EqualFold(host, s.host) || strings.EqualFold(host, address)
		})
		if len(left.sites) == before && !slices.ContainsFunc(slices.Collect(maps.Keys(o.sites)), func(a string) bool { return strings.EqualFold(a, host) || o.sites[a].host == strings.ToLower(host) }) {
			unknown = append(unknown, host)
		}
	}
	return left, unknown
}

// Split divides the table: wanted gets the sites with a host or a resource that are wanted, rest the others.
func (o *Origins) Split(host, resource func(name string) bool) (wanted, rest *Origins) {
	wanted, rest = &Origins{sites: map[string]*site{}}, &Origins{sites: map[string]*site{}}
	for address, s := range o.sites {
		to := rest
		if host(s.host) || slices.ContainsFunc(s.origins, func(origin Origin) bool { return resource(origin.Resource) }) {
			to = wanted
		}
		to.sites[address] = s
	}
	return wanted, rest
}

// Change returns the table with every origin changed by f, which must not change its address.
func (o *Origins) Change(f func(Origin) Origin) *Origins {
	changed := &Origins{sites: map[string]*site{}}
	for address, s := range o.sites {
		c := *s
		c.origins = slices.Clone(s.origins)
		for i := range c.origins {
			c.origins[i] = f(c.origins[i])
		}
		changed.sites[address] = &c
	}
	return changed
}

// And returns the table with the sites of another one.
func (o *Origins) And(more *Origins) *Origins {
	all := &Origins{sites: maps.Clone(o.sites)}
	maps.Copy(all.sites, more.sites)
	return all
}

// Encrypted returns the table of the sites that speak TLS.
func (o *Origins) Encrypted() *Origins {
	left := &Origins{sites: maps.Clone(o.sites)}
	maps.DeleteFunc(left.sites, func(_ string, s *site) bool { return !s.tls })
	return left
}

// resource returns the resource that a connection is counted for, whatever path its requests have.
func (s *site) resource() string { return s.route("/").Resource }

// find returns the site at a host and port, or nil if it is not gated.
func (o *Origins) find(host, port string) *site {
	if o == nil {
		return nil
	}
	return o.sites[key(strings.TrimSuffix(host, "."), port)]
}

// At returns the resource that a URL belongs to, or "" if it is not gated.
func (o *Origins) At(u *url.URL) string {
	_, port, _ := net.SplitHostPort(addressOf(u))
	s := o.find(u.Hostname(), port)
	if s == nil || s.tls != (u.Scheme == "https") {
		return ""
	}
	return s.route(u.EscapedPath()).Resource
}

// route returns where a request to a path goes. The path is escaped.
func (s *site) route(path string) proxy.Intercepted {
	var origin Origin
	rest, within := "", false
	for i, o := range s.origins {
		if i == 0 || len(base(o.Address)) < len(base(origin.Address)) {
			origin = o // the first of the shortest paths gets requests that are below no path
		}
		if rest, within = under(base(o.Address), path); within {
			origin = o
			break
		}
	}
	in := proxy.Intercepted{Resource: origin.Resource, Path: path, Own: origin.Own}
	if origin.Upstream == nil || origin.Upstream.String() == origin.Address.String() {
		return in
	}
	in.Address = origin.Address.String()
	if within {
		in.Path = base(origin.Upstream) + rest
	}
	return in
}

// under reports whether a path is below base, and returns the rest of the path.
func under(base, path string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(path, base)
	return rest, ok && (rest == "" || rest[0] == '/')
}
