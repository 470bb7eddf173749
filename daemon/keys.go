package daemon

import (
	"context"
	"slices"
	"strings"

	"github.com/sluicehq/sluice/provider"
)

// configuredKeys returns a function that labels the API keys which the configuration names for a resource and the environment holds.
// It reads them anew each time: nothing keeps a key longer than it must.
func configuredKeys(o *Options) func(ctx context.Context, resource string) ([]string, error) {
	gate, file, env := o.Gate, o.File, o.Env
	return func(ctx context.Context, resource string) (labels []string, err error) {
		r := file.Resources[resource]
		if env == nil {
			return nil, nil
		}
		var keys []string
		if key, ok := env(r.KeyEnv); ok && r.KeyEnv != "" {
			keys = append(keys, strings.TrimSpace(key))
		}
		if in := r.Inject; in != nil {
			key, _ := env(in.Env)
			if s, ok := file.Dialect(resource).(provider.Speaker); ok && key != "" {
				key = s.Key(map[string][]string{in.Header: {in.Prefix + key}}) // as the proxy will find it in the request
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
