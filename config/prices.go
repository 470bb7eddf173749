package config

import "github.com/sluicehq/sluice/provider"

// PriceList is what models cost: what comes with providers, and what the file says instead.
func (f *File) PriceList() *provider.Prices {
	own := map[string]provider.Price{}
	for model, p := range f.Prices {
		price := provider.Price{Input: *p.Input, Output: *p.Output, CacheRead: *p.Input, CacheWrite: *p.Input}
		if p.CacheRead != nil {
			price.CacheRead = *p.CacheRead
		}
		if p.CacheWrite != nil {
			price.CacheWrite = *p.CacheWrite
		}
		price.CacheLong = price.CacheWrite
		own[model] = price
	}
	return provider.DefaultPrices().With(own)
}
