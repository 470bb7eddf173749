package config

import (
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/store"
)

// maxWaiting is the largest max_waiting that a resource may state.
const maxWaiting = 1 << 20

// providers lists the dialects that a resource can speak.
var providers = []string{
	"admob", "anthropic", "azure", "bedrock", "cohere", "deepseek", "gemini", "generic", "github", "groq", "jira", "mistral",
	"notion", "openai", "openrouter", "slack", "stripe", "xai",
}

// reserved lists the first path segments that the daemon answers itself. It also keeps /- and paths that begin with /@,
// which no name can match.
var reserved = []string{"v1", "page", "metrics", "healthz", "readyz", "mcp"}

var headerRE = lazyregexp.New("^[A-Za-z0-9!#$%&'*+.^_`|~-]+$")

func (c *checker) resource(name string, r *Resource) {
	path := join("resources", name)
	c.key(path, "resource", name)
	if slices.Contains(reserved, name) {
		c.doc.FailKey(path, "the daemon keeps /%s for itself", name).Hint("call the resource something else")
	}
	if r.Provider != "" && !slices.Contains(providers, r.Provider) || r.Provider == "" && c.doc.Has(path+".provider") {
		at := path + ".provider"
		c.suggest(c.fail(at, "%s is not one of %s", c.shown(at, r.Provider), strings.Join(providers, ", ")), at, r.Provider, providers)
	}
	c.url(path+".upstream", r.Upstream, false)
	if r.ArrivalSlack != 0 {
		c.span(path+".arrival_slack", r.ArrivalSlack, time.Millisecond, time.Hour)
	}
	c.span(path+".ttl", r.TTL, time.Second, store.MaxTTL)
	c.span(path+".client_deadline", r.ClientDeadline, time.Second, store.MaxTTL)
	c.span(path+".keep_alive", r.KeepAlive, 100*time.Millisecond, store.MaxTTL)
	c.light(path+".light", &r.Light)
	if !r.Breaker.Off {
		c.span(path+".breaker.within", r.Breaker.Within, time.Second, store.MaxTTL)
	}
	if r.Reserve == 100 {
		c.fail(path+".reserve", "at 100%% no agent would ever proceed").Hint("it is below 100%")
	}
	c.backoff(path+".backoff", &r.Backoff)
	c.keys(path, r)
	c.limits(path, r)
}

func (c *checker) light(path string, l *Light) {
	if !l.Off && l.Green <= l.Red {
		c.fail(path, "green (%s) has to be above red (%s)", c.bare(path+".green", l.Green), c.bare(path+".red", l.Red))
	}
	if !l.Off && l.Green == 100 {
		c.fail(path+".green", "at 100%% only the highest class would ever proceed").Hint("it is below 100%")
	}
}

func (c *checker) backoff(path string, b *Backoff) {
	c.span(path+".start", b.Start, time.Second, store.MaxTTL)
	c.span(path+".cap", b.Cap, time.Second, store.MaxTTL)
	if b.Cap < b.Start {
		c.fail(path+".cap", "the longest pause (%s) is shorter than the first (start: %s)", c.bare(path+".cap", b.Cap), c.bare(path+".start", b.Start))
	}
}

// keys checks where a resource's API keys come from and where the proxy puts them.
func (c *checker) keys(path string, r *Resource) {
	if r.KeyEnv != "" {
		c.env(path+".key_env", r.KeyEnv)
		if r.Split == "" && !slices.ContainsFunc(r.Limits, func(l Limit) bool { return slices.Contains(l.Per, "key") }) {
			c.fail(path+".key_env", "all keys share the limits, so it makes no difference which one is used").Hint("add split: key or a limit with per: [key], or remove it")
		}
	}
	c.ring(path, r)
	if r.Inject == nil {
		return
	}
	path += ".inject"
	if len(r.Inject.Header) > 128 || !headerRE.MatchString(r.Inject.Header) {
		c.fail(path+".header", "%s is not the name of a header such as x-api-key", c.shown(path+".header", r.Inject.Header))
	}
	if len(r.Keys) == 0 {
		c.env(path+".env", r.Inject.Env)
	}
	if len(r.Inject.Prefix) > 64 || strings.ContainsFunc(r.Inject.Prefix, func(r rune) bool { return r < ' ' || r > '~' }) {
		c.fail(path+".prefix", "this has to be up to 64 characters of ASCII, such as \"Bearer \"")
	}
	if len(c.file.Tokens) == 0 && !strings.HasPrefix(c.file.Listen, unixPrefix) {
		c.fail(path, "without tokens, every client that connects to the daemon could use this key").Hint("add tokens, or listen on unix:PATH")
	}
}

// maxKeys is the largest number of keys of a resource. A waiting request asks for each of them.
const maxKeys = 64

// ring checks the keys of a resource that has several.
func (c *checker) ring(path string, r *Resource) {
	if len(r.Keys) == 0 {
		return
	}
	at := path + ".keys"
	if len(r.Keys) > maxKeys {
		c.fail(at, "%d keys are more than %d", len(r.Keys), maxKeys)
	}
	if r.KeyEnv != "" {
		c.fail(path+".key_env", "the resource has several keys").Hint("remove key_env; sluice acquire --key-env NAME says which one")
	}
	if r.Inject != nil && r.Inject.Env != "" {
		c.fail(path+".inject.env", "the resource has several keys").Hint("remove env: with keys, inject says only the header and the prefix")
	}
	seen, secret := map[Key]int{}, false
	for i, k := range r.Keys {
		at := index(at, i)
		secret = secret || k.Env != ""
		switch {
		case k.Env != "":
			c.env(at+".env", k.Env)
		case k.Upstream == "":
			c.fail(at, "it names no key and no address").Hint("add env: NAME, the environment variable that holds the key")
		}
		if (k.Env == "") != (r.Keys[0].Env == "") {
			c.fail(at, "some of these have env and some have not").Hint("name the variable of every key, or of none so that callers send theirs")
		}
		c.url(at+".upstream", k.Upstream, false)
		if k.Share < 0 || k.Share > 1000 {
			c.fail(at+".share", "%d is out of range", k.Share).Hint("use 1 to 1000; without it a key has 1")
		}
		k.Share = 0
		if first, twice := seen[k]; twice {
			c.fail(at, "this is the same as keys[%d]", first).Hint("remove one; share: 2 gives a key twice as much")
		}
		seen[k] = i
	}
	if secret && len(c.file.Tokens) == 0 && !strings.HasPrefix(c.file.Listen, unixPrefix) {
		c.fail(at, "without tokens, every client that connects to the daemon could use these keys").Hint("add tokens, or listen on unix:PATH")
	}
}

// env checks the name of an environment variable. If the file holds the key itself instead of the name, the message
// does not show it, so that the key does not end up in a log.
func (c *checker) env(path, s string) {
	if !envRE.MatchString(s) {
		c.secret(path, "this has to be the name of an environment variable").Hint("write its name, without $ and not the key itself")
	}
}

func (c *checker) limits(path string, r *Resource) {
	path += ".limits"
	preset, _ := provider.Preset(r.Provider)
	theirs := slices.DeleteFunc(slices.Clone(preset.Limits), func(t sluice.Limit) bool {
		return slices.ContainsFunc(r.Limits, func(l Limit) bool { return l.Name == t.Name })
	})
	switch n := len(r.Limits); {
	case n > store.MaxLimits:
		c.fail(path, "%d limits are more than %d", n, store.MaxLimits)
	case n+len(theirs) > store.MaxLimits:
		c.fail(path, "with those of the provider there are %d limits, at most %d are allowed", n+len(theirs), store.MaxLimits)
	}
	for i := range r.Limits {
		l, at := &r.Limits[i], index(path, i)
		if l.Name == "" {
			c.fail(at+".name", "a limit needs a name")
		} else {
			c.name(at+".name", "limit", l.Name)
		}
		c.limit(at, l, r)
	}
}

// sameLimits reports limits of one resource with the same name.
func (c *checker) sameLimits() {
	for _, name := range sorted(c.file.Resources) {
		seen := map[string]int{}
		for i, l := range c.file.Resources[name].Limits {
			at := index(join("resources", name)+".limits", i) + ".name"
			if first, twice := seen[l.Name]; twice && l.Name != "" {
				c.fail(at, "there is a limit called %s already: %s", c.shown(at, l.Name), index("limits", first))
			} else {
				seen[l.Name] = i
			}
		}
	}
}

func (c *checker) limit(path string, l *Limit, r *Resource) {
	if !isUnit(l.Unit) {
		c.fail(path+".unit", "%s is not a unit such as requests or input_tokens", c.shown(path+".unit", l.Unit)).Hint("a unit is 1 to 64 small letters, digits and underscores")
	}
	if l.Unit == sluice.USD {
		c.fail(path+".unit", "a limit cannot count dollars").Hint("use a budget, such as budgets: [{size: 5 usd/day}]")
	}
	for i, scope := range l.Per {
		if slices.Contains(l.Per[:i], scope) {
			c.fail(index(path+".per", i), "%s is there twice", c.bare(index(path+".per", i), scope))
		}
	}
	if l.Concurrency != 0 {
		c.concurrency(path, l)
		return
	}
	if l.Kind == "concurrency" {
		c.fail(path+".concurrency", "is needed: how many requests may be under way at the same time")
		return
	}
	if l.Size == (Rate{}) {
		c.sizeless(path, l, r)
		return
	}
	switch {
	case l.Burst != 0 && l.Kind != "bucket":
		c.fail(path+".burst", "only a bucket has one, and kind is %s", c.bare(path+".kind", l.Kind)).Hint("remove the one or the other")
	case l.Kind == "bucket" && !countable(l):
		c.fail(path+".size", "a bucket of %s refilled at %s is too large to be counted exactly",
			c.bare(path+".burst", l.Burst), c.bare(path+".size", l.Size)).Hint("use a shorter window: per minute instead of per day")
	}
	c.resets(path, l)
	preset, _ := provider.Preset(r.Provider)
	if theirs, ok := presetLimit(preset.Limits, l.Name); ok && theirs.Unit == l.Unit && theirs.Window != l.Size.Window {
		c.fail(path+".size", "the provider counts its limit %s over %v, not over %v", l.Name, Duration(theirs.Window), Duration(l.Size.Window)).Hint("call a limit of your own something else")
	}
}

func (c *checker) concurrency(path string, l *Limit) {
	if l.Kind != "concurrency" {
		c.fail(path+".kind", "with concurrency it cannot be %s", c.bare(path+".kind", l.Kind)).Hint("remove it")
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"size", l.Size != Rate{}}, {"burst", l.Burst != 0}, {"resets", l.Resets != TimeOfDay{}}} {
		if f.set {
			c.fail(path+"."+f.name, "concurrency has none: it counts what is under way, not what was sent").Hint("make it a limit of its own")
		}
	}
}

// sizeless checks a limit whose size comes only from the provider's responses.
func (c *checker) sizeless(path string, l *Limit, r *Resource) {
	if r.Provider == "" {
		c.fail(path+".size", "is needed: this resource has no provider that could state it").Hint("use a size such as 80/min, or name the provider")
	}
	if l.Burst != 0 {
		c.fail(path+".size", "is needed with burst: how fast the bucket is refilled, such as 5/s")
	}
	if l.Resets != (TimeOfDay{}) {
		c.fail(path+".size", "is needed with resets: how much there is from one to the next, such as 10000/day")
	}
}

func (c *checker) resets(path string, l *Limit) {
	if l.Resets == (TimeOfDay{}) {
		return
	}
	if l.Kind != "fixed" {
		c.fail(path+".resets", "only a fixed window resets, and this one is %s", c.bare(path+".kind", l.Kind)).Hint("add kind: fixed")
	}
	if (24*time.Hour)%l.Size.Window != 0 {
		c.fail(path+".resets", "a time of day does not say when a window of this length resets: it has to be a day, or divide one")
	}
}

// countable reports whether Sluice can count a bucket exactly: its capacity times its window, in lowest terms, must
// stay below 2^52. If it does not, the amount and the window of the rate are halved until it does. An amount below 2048
// is not halved, because rounding would change the rate too much.
func countable(l *Limit) bool {
	const exact = 1 << 52
	n, w := l.Size.N, l.Size.Window.Microseconds()
	for a, b := n, w; ; a, b = b, a%b {
		if b == 0 {
			n, w = n/a, w/a
			break
		}
	}
	for l.Burst > exact/w || n > exact/w {
		if n < 2048 {
			return false
		}
		n, w = n/2, (w+1)/2
	}
	return true
}
