package config

import (
	"cmp"
	"slices"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
)

// AddPresets adds a resource for every provider whose limits are known, under the provider's name, so that it needs no
// configuration. It skips names that the file has, and adds none with presets: off.
func (f *File) AddPresets() {
	if f.Presets == Off {
		return
	}
	for _, name := range provider.Names() {
		if preset, _ := provider.Preset(name); len(preset.Limits) == 0 {
			continue
		}
		if _, there := f.Resources[name]; there {
			continue
		}
		if f.Resources == nil {
			f.Resources = map[string]Resource{}
		}
		if f.added == nil {
			f.added = map[string]bool{}
		}
		r := Resource{Provider: name}
		r.defaults()
		f.Resources[name], f.added[name] = r, true
	}
}

// Named returns the sorted names of the resources in the file itself. If the file has none, it returns all resources.
func (f *File) Named() []string {
	names := sorted(f.Resources)
	if named := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return f.added[name] }); len(named) > 0 {
		return named
	}
	return names
}

// Dialect returns the dialect that reads a resource's responses. Providers without a dialect of their own use the
// generic one.
func (f *File) Dialect(resource string) provider.Dialect {
	if d, ok := provider.Lookup(f.Resources[resource].Provider); ok {
		return d
	}
	return provider.Generic{}
}

// ProviderOf returns the provider that a resource has, or would have if the file named it.
func (f *File) ProviderOf(resource string) string {
	if r, named := f.Resources[resource]; named {
		return r.Provider
	}
	if _, known := provider.Lookup(resource); known {
		return resource
	}
	return ""
}

// UpstreamOf returns the address that a resource's requests go to: its upstream, else its provider's, else that of its
// first key. It is empty for a resource that is used only with sluice acquire, the API or in Go.
func (f *File) UpstreamOf(resource string) string {
	r := f.Resources[resource]
	address := cmp.Or(r.Upstream, f.ProviderAddress(resource))
	if address == "" && len(r.Keys) > 0 {
		address = r.Keys[0].Upstream
	}
	return address
}

// WithoutUpstream returns the sorted names of the resources in the file itself that clients cannot send to.
func (f *File) WithoutUpstream() []string {
	return slices.DeleteFunc(sorted(f.Resources), func(name string) bool { return f.added[name] || f.UpstreamOf(name) != "" })
}

// ProviderAddress returns the public address of a resource's provider, which clients use by default; empty if there is
// none.
func (f *File) ProviderAddress(resource string) string {
	if s, ok := f.Dialect(resource).(provider.Speaker); ok {
		return s.Address()
	}
	return ""
}

// fromPreset fills in the provider's values where the file states none. A limit with the name of one of the provider's
// limits counts the same unit and recovers in the same way.
func (r *Resource) fromPreset() {
	preset, ok := provider.Preset(r.Provider)
	if !ok {
		return
	}
	or(&r.Backoff.Start, Duration(preset.Backoff.Start))
	or(&r.Backoff.Factor, int(preset.Backoff.Factor))
	if r.Backoff.Cap == 0 {
		r.Backoff.Cap = max(Duration(preset.Backoff.Cap), r.Backoff.Start)
	}
	for i := range r.Limits {
		l := &r.Limits[i]
		theirs, ok := presetLimit(preset.Limits, l.Name)
		if !ok {
			continue
		}
		or(&l.Unit, theirs.Unit)
		if theirs.Kind == sluice.Fixed && l.Size != (Rate{}) && l.Burst == 0 && l.Concurrency == 0 {
			or(&l.Kind, "fixed")
		}
	}
}

func presetLimit(limits []sluice.Limit, name string) (sluice.Limit, bool) {
	for _, l := range limits {
		if l.Name == name {
			return l, true
		}
	}
	return sluice.Limit{}, false
}

// withPreset puts the provider's limits before the configured ones. A configured limit of the same name replaces the
// provider's, and caps the size that responses state.
func withPreset(name string, configured []sluice.Limit) []sluice.Limit {
	preset, ok := provider.Preset(name)
	if !ok {
		return configured
	}
	var all []sluice.Limit
	for _, theirs := range preset.Limits {
		own, ok := presetLimit(configured, theirs.Name)
		if !ok {
			all = append(all, theirs)
			continue
		}
		own.Estimated, own.Plan = theirs.Estimated, theirs.Plan
		if len(own.Per) == 0 && own.Kind != sluice.Concurrency {
			own.Per = theirs.Per // it is the same limit, with another size
		}
		all = append(all, own)
	}
	for _, own := range configured {
		if _, ok := presetLimit(preset.Limits, own.Name); !ok {
			all = append(all, own)
		}
	}
	return all
}
