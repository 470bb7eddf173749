package daemon

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/config"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	"github.com/sluicehq/sluice/sluicehttp"
)

// keyIn returns the key in an environment variable. Errors name the variable and never show its value.
func keyIn(env func(string) (string, bool), name string) (string, error) {
	if env == nil {
		return "", errors.New("no environment to take keys from")
	}
	key, ok := env(name)
	if !ok || strings.TrimSpace(key) == "" {
		return "", fmt.Errorf("the variable %s is not set; set it to the key", name)
	}
	if strings.ContainsAny(key, "\r\n\x00") {
		return "", fmt.Errorf("the variable %s does not hold a key: it has a line break; set it to the key", name)
	}
	return key, nil
}

// ring sets the keys of a resource that has several.
func ring(pr *proxy.Resource, name string, r *config.Resource, env func(string) (string, bool)) error {
	header, prefix := provider.Auth(pr.Dialect)
	if r.Inject != nil {
		header, prefix = r.Inject.Header, r.Inject.Prefix
	}
	for i, k := range r.Keys {
		key := sluicehttp.Key{Share: k.Share, Name: k.Env}
		if k.Env != "" {
			value, err := keyIn(env, k.Env)
			if err != nil {
				return fmt.Errorf("resources.%s.keys[%d]: %w, or remove it from the list", name, i, err)
			}
			key.Header, key.Value = header, prefix+value
		}
		if k.Upstream != "" {
			up, err := url.Parse(k.Upstream)
			if err != nil {
				return fmt.Errorf("resources.%s.keys[%d].upstream: not a valid address", name, i)
			}
			key.Upstream = up
		}
		pr.Keys = append(pr.Keys, key)
	}
	return nil
}

// configuredKeys returns a function that labels the API keys which the configuration names for a resource and the
// environment holds. It reads them each time, so that no key stays in memory longer than needed.
func configuredKeys(o *Options, ring func(ctx context.Context, resource string) ([]string, error)) func(ctx context.Context, resource string) ([]string, error) {
	gate, file, env := o.Gate, o.File, o.Env
	return func(ctx context.Context, resource string) (labels []string, err error) {
		r := file.Resources[resource]
		if len(r.Keys) > 0 {
			return ring(ctx, resource)
		}
		if env == nil {
			return nil, nil
		}
		var keys []string
		if key, ok := env(r.KeyEnv); ok && r.KeyEnv != "" {
			keys = append(keys, strings.TrimSpace(key))
		}
		if in := r.Inject; in != nil && in.Env != "" {
			key, _ := env(in.Env)
			if s, ok := file.Dialect(resource).(provider.Speaker); ok && key != "" {
				key = s.Key(map[string][]string{in.Header: {in.Prefix + key}}) // as the proxy will see it in the request
			}
			keys = append(keys, key)
		}
		for _, key := range keys {
			if key == "" {
				continue
			}
			label, err := gate.KeyLabel(ctx, key)
			if err != nil {
				return nil, err
			}
			if !slices.Contains(labels, label) {
				labels = append(labels, label)
			}
		}
		return labels, nil
	}
}
