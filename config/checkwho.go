package config

import (
	"slices"
	"strings"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/store"
)

// everyone is the name that stands for all agents without an entry of their own.
const everyone = "*"

const maxPrice = 1_000_000

var hashRE = lazyregexp.New(`^[0-9a-f]{64}$`)

func (c *checker) agent(name string, a Agent) {
	path := join("agents", name)
	if name != everyone {
		c.key(path, "agent", name)
	}
	c.class(path+".class", a.Class)
	if a.User != "" || c.doc.Has(path+".user") {
		c.name(path+".user", "user", a.User)
	}
	if n := len(a.WaitsFor); n > store.MaxWaits {
		c.fail(path+".waits_for", "%d agents are more than %d", n, store.MaxWaits)
	}
	for i, other := range a.WaitsFor {
		at := index(path+".waits_for", i)
		switch {
		case other == name:
			c.fail(at, "an agent cannot wait for itself")
		case slices.Contains(a.WaitsFor[:i], other):
			c.fail(at, "%s is there twice", c.shown(at, other))
		default:
			c.name(at, "agent", other)
		}
	}
}

func (c *checker) budgets() {
	seen := map[string]bool{}
	for i, b := range c.file.Budgets {
		path := index("budgets", i)
		if b.Size == (Money{}) {
			c.fail(path+".size", "is needed, such as 10 usd/day")
		}
		if b.Over == Over(sluice.OverSlow) && b.Size != (Money{}) && b.Size.Period == "" {
			c.fail(path+".over", "slow spreads a budget until its reset, and this one never resets: use a size such as 10 usd/day")
		}
		if b.Name == "" && !c.doc.Has(path+".name") {
			continue
		}
		c.name(path+".name", "budget", b.Name)
		if seen[b.Name] {
			c.fail(path+".name", "there is a budget called %s already", c.shown(path+".name", b.Name))
		}
		seen[b.Name] = true
	}
}

// routes checks that every model belongs to a configured resource or to a known provider.
func (c *checker) routes() {
	for _, task := range sorted(c.file.Routes) {
		path := join("routes", task)
		c.key(path, "kind of task", task)
		if len(c.file.Routes[task]) == 0 {
			c.fail(path, "at least one model is needed, such as [anthropic/haiku]")
		}
		for i, route := range c.file.Routes[task] {
			at := index(path, i)
			resource, model, ok := strings.Cut(route, "/")
			_, configured := c.file.Resources[resource]
			switch {
			case !ok || !isLabel(model):
				c.fail(at, "%s is not a resource and a model such as anthropic/haiku", c.shown(at, route))
			case !configured && !slices.Contains(providers, resource):
				c.fail(at, "%s: there is no such resource, and no provider of that name", c.shown(at, route))
			}
		}
	}
}

func (c *checker) prices() {
	for _, model := range sorted(c.file.Prices) {
		path, p := join("prices", model), c.file.Prices[model]
		c.label(path, "model", model)
		if model == priceFile {
			if p.path == "" {
				c.fail(path, "is the path of a file of prices, and no model").Hint("such as prices: {file: /etc/sluice/prices.json}, in the JSON format of LiteLLM's model_prices_and_context_window.json")
			}
			continue
		}
		if p.path != "" {
			c.fail(path, "a model has prices such as {input: 2, output: 10}").Hint("the path of a file of prices goes to prices.file")
			continue
		}
		for _, f := range []struct {
			name   string
			usd    *float64
			needed bool
		}{{"input", p.Input, true}, {"output", p.Output, true}, {"cache_read", p.CacheRead, false}, {"cache_write", p.CacheWrite, false}} {
			switch {
			case f.usd == nil && f.needed:
				c.fail(path+"."+f.name, "is needed: dollars per million tokens")
			case f.usd != nil && !(*f.usd >= 0 && *f.usd <= maxPrice) && c.doc.Has(path+"."+f.name):
				c.fail(path+"."+f.name, "is in dollars per million tokens, between 0 and %d", maxPrice)
			}
		}
	}
}

func (c *checker) tokens() {
	names, hashes := map[string]bool{}, map[string]bool{}
	for i, t := range c.file.Tokens {
		path := index("tokens", i)
		c.name(path+".name", "token", t.Name)
		if names[t.Name] {
			c.fail(path+".name", "there is a token called %s already", c.shown(path+".name", t.Name))
		}
		switch {
		case !hashRE.MatchString(t.Hash):
			c.secret(path+".hash", "this has to be the token's SHA-256: 64 hexadecimal digits in small letters").Hint("this prints it: printf %s \"$TOKEN\" | sha256sum")
		case hashes[t.Hash]:
			c.fail(path+".hash", "there is a token with this hash already")
		}
		names[t.Name], hashes[t.Hash] = true, true
		if t.Agent != "" || c.doc.Has(path+".agent") {
			c.name(path+".agent", "agent", t.Agent)
		}
		if t.User != "" || c.doc.Has(path+".user") {
			c.name(path+".user", "user", t.User)
		}
		c.class(path+".class", t.Class)
	}
}
