package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Bounds of a file of prices. The widely used one has 3,000 models and 1.6 MB.
const (
	maxPriceFile   = 64 << 20
	maxPriceModels = 100_000
	priceFileEvery = 5 * time.Second // how often a process looks whether the file has changed
)

// WithFile returns prices of which some come from a file, in the JSON format of LiteLLM's model_prices_and_context_window.json: an
// object of models, each with input_cost_per_token, output_cost_per_token and so on, in dollars. Prices that were configured count before
// those of the file, and those of the file before the list of this version. The file is read again within seconds of a change; if it
// cannot be read then, the last good one stays.
func (p *Prices) WithFile(path string) (*Prices, error) {
	priceFiles.mu.Lock()
	defer priceFiles.mu.Unlock()
	f := priceFiles.all[path]
	if f == nil {
		f = &priceFile{path: path}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.look(time.Now()); err != nil {
		return nil, err
	}
	if priceFiles.all == nil || len(priceFiles.all) >= 16 {
		priceFiles.all = map[string]*priceFile{}
	}
	priceFiles.all[path] = f
	return &Prices{own: p.own, list: p.list, file: f}, nil
}

// priceFiles are those that this process has read: the gate, the routes and the proxy ask for the same one.
var priceFiles struct {
	mu  sync.Mutex
	all map[string]*priceFile
}

// priceFile is a file of prices that may change.
type priceFile struct {
	path string

	mu     sync.Mutex
	looked time.Time
	size   int64
	time   time.Time
	err    error            // of the last time that it was read
	exact  map[string]Price // by the whole name
	plain  map[string]Price // by plain name
}

// find returns the price of a model: that of its whole name, else that of the longest name that it is a dated version of.
func (f *priceFile) find(model string) (Price, bool) {
	if f == nil {
		return Price{}, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= priceFileEvery {
		_ = f.look(now) // the last good one stays
	}
	if price, ok := f.exact[strings.ToLower(model)]; ok {
		return price, true
	}
	return longest(f.plain, pricedAs(model), sameModel)
}

// look reads the file if it has changed, and reports what is wrong with it.
func (f *priceFile) look(now time.Time) error {
	f.looked = now
	info, err := os.Stat(f.path)
	if err == nil && (info.Size() != f.size || !info.ModTime().Equal(f.time)) {
		f.err = f.load()
	}
	if err != nil {
		return err
	}
	return f.err
}

// load reads the file.
func (f *priceFile) load() error {
	file, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer file.Close() //nolint:errcheck // it was only read
	info, err := file.Stat()
	if err != nil {
		return err
	}
	f.size, f.time = info.Size(), info.ModTime() // also of one that is wrong: it is not read again until it changes
	if !info.Mode().IsRegular() || info.Size() > maxPriceFile {
		return fmt.Errorf("%s: it is no file, or larger than %d bytes", f.path, maxPriceFile)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxPriceFile))
	if err != nil {
		return err
	}
	exact, plain, err := parsePriceMap(text, info.ModTime().UTC().Format(time.DateOnly))
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.exact, f.plain = exact, plain
	return nil
}

var errNoPrices = errors.New("it has no prices: an object of models with input_cost_per_token is needed")

// parsePriceMap reads prices from JSON. Models without prices for tokens are left out.
func parsePriceMap(text []byte, asOf string) (exact, plain map[string]Price, err error) {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, nil, fmt.Errorf("it is not a JSON object: %w", err)
	}
	if len(all) > maxPriceModels {
		return nil, nil, fmt.Errorf("it has %d models, more than %d", len(all), maxPriceModels)
	}
	exact, plain = map[string]Price{}, map[string]Price{}
	strength := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if name == "sample_spec" {
			continue
		}
		price, ok := parseMapped(all[name])
		if !ok {
			continue
		}
		price.AsOf = asOf
		key := strings.ToLower(name)
		exact[key] = price
		// The same model may be there from several hosts, at other prices. The name without a host is its maker's; of two
		// hosts the dearer one counts.
		known, how := plain[pricedAs(name)], 1
		switch {
		case strings.ReplaceAll(key, ".", "-") == pricedAs(name):
			how = 3
		case !strings.Contains(name, "/"):
			how = 2
		}
		if was := strength[pricedAs(name)]; how > was || how == was && price.Input+price.Output > known.Input+known.Output {
			plain[pricedAs(name)], strength[pricedAs(name)] = price, how
		}
	}
	if len(exact) == 0 {
		return nil, nil, errNoPrices
	}
	return exact, plain, nil
}

// longField is a price for requests with more than so many thousand tokens of input.
var longField = regexp.MustCompile(`^(.+)_above_([0-9]{1,7})k_tokens$`)

// parseMapped reads one model. It reports false if the model has no price for tokens, or one that makes no sense.
func parseMapped(text []byte) (p Price, ok bool) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(text, &fields) != nil {
		return p, false
	}
	usd := map[string]float64{} // for a million tokens
	long := map[int64]map[string]float64{}
	for name, raw := range fields {
		var n float64
		if !strings.Contains(name, "cost") || bytes.HasPrefix(raw, []byte("null")) || json.Unmarshal(raw, &n) != nil {
			continue
		}
		n *= 1e6
		if m := longField.FindStringSubmatch(name); m != nil {
			k, err := strconv.ParseInt(m[2], 10, 64)
			if err != nil || k == 0 {
				continue
			}
			if long[k] == nil {
				long[k] = map[string]float64{}
			}
			long[k][m[1]] = n
			continue
		}
		usd[name] = n
	}
	const in, out, read, write, far = "input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost",
		"cache_creation_input_token_cost", "cache_creation_input_token_cost_above_1hr"
	for _, name := range []string{in, out, read, write, far} {
		if n := usd[name]; !(n >= 0 && n <= maxPrice) {
			return p, false
		}
	}
	if _, there := usd[in]; !there {
		return p, false
	}
	or := func(m map[string]float64, name string, usual float64) float64 {
		if n, there := m[name]; there && n >= 0 && n <= maxPrice {
			return n
		}
		return usual
	}
	p = Price{Input: usd[in], Output: usd[out], CacheRead: or(usd, read, usd[in]), CacheWrite: or(usd, write, usd[in]), CacheLong: usd[far]}
	for _, k := range slices.Sorted(maps.Keys(long)) {
		l := long[k]
		if _, there := l[in]; !there {
			continue // of pictures, say
		}
		p.step = step{above: k * 1000, in: or(l, in, p.Input), out: or(l, out, p.Output)}
		p.step.read, p.step.write = or(l, read, max(p.CacheRead, min(p.CacheRead, p.step.in))), or(l, write, max(p.CacheWrite, p.step.in))
		p.step.far = max(p.step.write, p.CacheLong)
		break
	}
	return p, true
}
