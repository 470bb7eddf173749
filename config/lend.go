package config

import (
	"maps"
	"strings"

	"github.com/sluicehq/sluice/internal/strictyaml"
)

// Lend prints what others who use the same store need to know of a configuration, so that [Parse] reads it: resources with their
// limits, classes, agents, budgets, routes, prices. Left out is what is the daemon's own, and everything that lets
// somebody in: where it listens, tokens, keys, addresses that are told of alerts. Variables stand for what they hold here.
func (f *File) Lend() []byte {
	lent := *f
	lent.Store, lent.Listen, lent.TLS, lent.Tokens, lent.Alerts, lent.sources = "", "", TLS{}, nil, Alerts{}, nil
	lent.DeadLetters = DeadLetters{}
	lent.Resources, lent.Prices = maps.Clone(f.Resources), maps.Clone(f.Prices)
	delete(lent.Prices, priceFile) // it is on this machine
	for name, r := range lent.Resources {
		r.DeadLetters = ""   // they stay where they were given up
		if len(r.Keys) > 0 { // they are the daemon's; that limits are per key is for all
			r.Keys, r.Split = nil, "key"
		}
		if r.Inject = nil; strings.Contains(r.Upstream, "@") {
			r.Upstream = ""
		}
		lent.Resources[name] = r
	}
	return strictyaml.Encode(&lent, func(string, string) (string, bool) { return "", false })
}
