package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// idle are the fields that nothing acts on: each with a file that states it, and what [File.Warnings] says of it.
var idle = map[string][2]string{}

// inCases are fields that have an effect in some files and none in others.
var inCases = map[string][2]string{
	"resources.limits":   {"resources: {a: {provider: github, limits: [{name: core}]}}", "resources.a.limits[0] has no effect: "},
	"resources.provider": {"resources: {openai: {upstream: 'https://host'}}", "resources.openai has the name of a provider, but states none"},
	"resources.inject":   {"listen: 'unix:/run/gate'\nresources: {a: {inject: {header: x-key, env: KEY}}}", "resources.a.inject has no effect: the resource has no upstream"},
	"tools":              {"tools: {llm_call: 9}\nresources: {a: {limits: [{name: l, size: 5/s}]}}", "tools has no effect: "},
}

// effective are the fields that something acts on. Whoever adds a field puts it here, and says by whom it is read, or into idle with a
// warning.
var effective = map[string]string{
	"store": "cmd", "on_store_failure": "gate", "listen": "serve", "presets": "cmd", "tls.cert": "serve", "tls.key": "serve", "upstream_ca": "cmd", "order": "gate", "shares": "gate", "pacing": "gate", "cascade": "gate",
	"classes.share": "gate", "leases.renew": "gate", "leases.expire": "gate", "slots.per": "it has one value", "slots.max": "gate", "slots.ttl": "gate",
	"retry_windows": "gate", "tools": "gate", "routes": "gate", "retry.attempts": "gate", "retry.deadline": "gate", "retry.base": "gate", "retry.cap": "gate",
	"agents.class": "gate", "agents.user": "gate", "agents.budget": "budgets", "agents.waits_for": "gate",
	"budgets.name": "budgets", "budgets.per": "budgets", "budgets.size": "budgets", "budgets.over": "budgets",
	"prices.input": "prices", "prices.output": "prices", "prices.cache_read": "prices", "prices.cache_write": "prices",
	"intercept": "cmd", "clients": "cmd",
	"alerts.webhook": "cmd", "tokens.name": "daemon", "tokens.hash": "daemon", "tokens.agent": "daemon", "tokens.user": "daemon", "tokens.class": "daemon",
	"resources.provider": "gate", "resources.upstream": "proxy", "resources.mode": "gate", "resources.guard": "gate", "resources.use": "gate", "resources.arrival_slack": "gate",
	"resources.split": "gate", "resources.key_env": "cmd", "resources.max_waiting": "gate", "resources.max_meters": "gate", "resources.ttl": "gate", "resources.client_deadline": "proxy", "resources.keep_alive": "proxy",
	"resources.light.green": "gate", "resources.light.red": "gate", "resources.light.bind": "gate", "resources.light.mode": "gate",
	"resources.breaker.within": "gate", "resources.breaker.samples": "gate", "resources.breaker.mode": "gate",
	"resources.backoff.start": "gate", "resources.backoff.factor": "gate", "resources.backoff.cap": "gate", "resources.reserve": "gate",
	"resources.keys.env": "proxy", "resources.keys.upstream": "proxy", "resources.keys.share": "proxy", "resources.inject.header": "proxy", "resources.inject.env": "proxy", "resources.inject.prefix": "proxy", "resources.abort": "proxy",
	"resources.dead_letters": "proxy", "resources.overage": "proxy", "dead_letters.key_env": "cmd", "dead_letters.max_body": "proxy",
	"resources.limits.name": "gate", "resources.limits.size": "gate", "resources.limits.kind": "gate", "resources.limits.burst": "gate", "resources.limits.concurrency": "gate",
	"resources.limits.unit": "gate", "resources.limits.per": "gate", "resources.limits.resets": "gate",
}

// leaves collects the paths of all fields of a type.
func leaves(t reflect.Type, path string, all map[string]bool) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	found := false
	if t.Kind() == reflect.Struct && t.PkgPath() == reflect.TypeFor[File]().PkgPath() {
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
			if name != "" && name != "-" {
				found = true
				leaves(t.Field(i).Type, strings.TrimPrefix(path+"."+name, "."), all)
			}
		}
	}
	if !found {
		all[path] = true
	}
}

// A field has an effect, or config check warns about it: a new field has to be declared.
func TestEveryFieldHasAnEffectOrAWarning(t *testing.T) {
	all := map[string]bool{}
	leaves(reflect.TypeFor[File](), "", all)
	for _, path := range slices.Sorted(maps.Keys(all)) {
		_, acted := effective[path]
		if _, warned := idle[path]; acted == warned {
			t.Errorf("%s: say in this test who acts on it, or let File.Warnings warn of it", path)
		}
	}
	for _, path := range append(slices.Collect(maps.Keys(effective)), slices.Collect(maps.Keys(idle))...) {
		if !all[path] {
			t.Errorf("%s: there is no such field any more", path)
		}
	}
}

func TestWarningsNameWhatHasNoEffect(t *testing.T) {
	for _, list := range []map[string][2]string{idle, inCases} {
		for path, c := range list {
			f, err := Parse("test.yaml", []byte(c[0]), nil)
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if got := f.Warnings(); !slices.ContainsFunc(got, func(w string) bool { return strings.HasPrefix(w, c[1]) }) {
				t.Errorf("%s: warned of %q, want %q", path, got, c[1])
			}
		}
	}
	for _, text := range []string{"", "resources: {a: {split: key, key_env: KEY, limits: [{name: l, size: 5/s, per: [key]}]}}", string(Init()), "resources: {openai: {provider: generic, upstream: 'https://host'}}", "tools: {llm_call: 9}\nresources: {a: {limits: [{name: l, size: 5/s, unit: work, per: [agent]}]}}"} {
		f, err := Parse("test.yaml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Warnings(); len(got) > 0 {
			t.Errorf("%q is warned of in %q", got, text)
		}
	}
}
