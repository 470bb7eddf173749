package config

import (
	"maps"
	"strings"

	"github.com/sluicehq/sluice/internal/strictyaml"
)

// Lend prints the parts of a configuration that other users of the same store need, in a form that [Parse] reads:
// resources with their limits, classes, agents, budgets, routes and prices. It leaves out the daemon's own settings and
// everything that grants access: listen addresses, tokens, keys and alert addresses. Variables are replaced by their
// values.
func (f *File) Lend() []byte {
	lent := *f
	lent.Store, lent.Listen, lent.TLS, lent.Tokens, lent.Alerts, lent.sources = "", "", TLS{}, nil, Alerts{}, nil
	lent.UpstreamCA = "" // the file is on this machine
	lent.DeadLetters, lent.Intercept, lent.Clients = DeadLetters{}, "", ""
	lent.Resources, lent.Prices = maps.Clone(f.Resources), maps.Clone(f.Prices)
	delete(lent.Prices, priceFile) // the file is on this machine
	for name, r := range lent.Resources {
		r.DeadLetters = ""   // dead letters stay on the machine that gave them up
		if len(r.Keys) > 0 { // the keys stay with the daemon; that limits are per key holds for everyone
			r.Keys, r.Split = nil, "key"
		}
		if r.Inject = nil; strings.Contains(r.Upstream, "@") {
			r.Upstream = ""
		}
		lent.Resources[name] = r
	}
	return strictyaml.Encode(&lent, func(string, string) (string, bool) { return "", false })
}
