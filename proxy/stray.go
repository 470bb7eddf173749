package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/internal/loopback"
	"github.com/sluicehq/sluice/internal/nearest"
	"github.com/sluicehq/sluice/provider"
)

// strays lists paths of providers, without the first slash, and their provider. A client that sends to one of them has
// a base URL without a resource.
var strays = []struct{ path, provider, base string }{
	{"v1/messages", "anthropic", ""},
	{"v1/complete", "anthropic", ""},
	{"v1/chat/completions", "openai", ""},
	{"v1/completions", "openai", ""},
	{"v1/responses", "openai", ""},
	{"v1/embeddings", "openai", ""},
	{"chat/completions", "openai", "/v1"},
	{"responses", "openai", "/v1"},
	{"embeddings", "openai", "/v1"},
	{"v1beta/models", "gemini", ""},
	{"graphql", "github", ""},
	{"repos", "github", ""},
	{"user", "github", ""},
}

// Stray refuses a request to a provider's path without a resource before it. It reports whether it did.
func (p *Proxy) Stray(w http.ResponseWriter, r *http.Request) bool {
	f := p.strayRefusal(strings.TrimPrefix(r.URL.EscapedPath(), "/"), "")
	if f == nil || loopback.Socket(r) && p.byHost[strings.ToLower(hostname(r.Host))] != nil {
		return false
	}
	if bad := p.checkOrigin(r); bad != nil {
		f = bad
	}
	p.deny(w, r, nil, f)
	return true
}

// strayRefusal names the right base URL for a client that sends to a provider's own path, or returns nil for other
// paths. agent is the first part of the path if that names an agent.
func (p *Proxy) strayRefusal(path, agent string) *refusal {
	for _, s := range strays {
		if path != s.path && !strings.HasPrefix(path, s.path+"/") {
			continue
		}
		if name := p.doorTo(s.provider); name != "" {
			base := agent + "/" + name + s.base
			return refuse(http.StatusNotFound, "the path names no resource", "did you mean "+base+"/"+s.path+"? the base URL ends with "+base)
		}
		return nil
	}
	return nil
}

// doorTo returns the resource of a provider: the one of that name, or else the first that speaks its dialect.
func (p *Proxy) doorTo(name string) string {
	if p.doors[name] != nil {
		return name
	}
	dialect, _ := provider.Lookup(name)
	speaker, ok := dialect.(provider.Speaker)
	if !ok {
		return ""
	}
	names := p.Names()
	slices.Sort(names)
	i := slices.IndexFunc(names, func(n string) bool {
		s := p.doors[n].speaker
		return s != nil && s.Address() == speaker.Address()
	})
	if i < 0 {
		return ""
	}
	return names[i]
}

// unknown refuses a path whose first part is not a resource. The rest of the path helps to guess the right one.
func (p *Proxy) unknown(first, rest, agent string) *refusal {
	path := first
	if rest != "" {
		path += "/" + rest
	}
	if f := p.strayRefusal(path, agent); f != nil {
		return f
	}
	if name, err := url.PathUnescape(first); err == nil && p.apart[name] != nil {
		return refuse(http.StatusNotFound, "resource "+quoted(name)+" has no upstream", "set resources."+name+".upstream in the configuration to the address of the API")
	}
	f := refuse(http.StatusNotFound, "unknown resource "+quoted(first), "the first part of the path is one of: "+p.list())
	if meant := nearest.Name(first, p.Names()); meant != "" {
		f.hint = "did you mean " + agent + "/" + meant + "? " + f.hint
	}
	return f
}
