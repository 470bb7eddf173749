package config

import (
	"fmt"
	"maps"

	"github.com/sluicehq/sluice/provider"
)

// Warnings lists fields that have no effect, each with the reason, and resources that are named like a provider but
// state none. The list is empty if every field has an effect.
func (f *File) Warnings() []string {
	var all []string
	warn := func(path, format string, args ...any) {
		all = append(all, path+" has no effect: "+fmt.Sprintf(format, args...))
	}
	work := false
	for _, name := range sorted(f.Resources) {
		r, path := f.Resources[name], join("resources", name)
		if _, known := provider.Lookup(name); known && r.Provider == "" {
			all = append(all, fmt.Sprintf("%s has the name of a provider, but states none: its models, tokens and prices are not read; add provider: %s", path, name))
		}
		if r.Inject != nil && f.UpstreamOf(name) == "" {
			warn(path+".inject", "the resource has no upstream")
		}
		for i := range r.Limits {
			l, at := &r.Limits[i], index(path+".limits", i)
			work = work || l.Unit == "work"
			if l.Size == (Rate{}) && l.Concurrency == 0 {
				warn(at, "limit %s states no size, so the provider's own stands as it is; add a size, or remove it", l.Name)
			}
		}
	}
	if !work && !maps.Equal(f.Tools, Default().Tools) {
		warn("tools", "no limit counts the unit work")
	}
	return append(all, f.unpriced()...)
}
