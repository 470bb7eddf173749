// Package pricefile reads prices of models from a file, and reads it again when it changes.
package pricefile

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/sluicehq/sluice/provider"
)

const (
	maxSize = 64 << 20        // the widely used file has 1.6 MB
	every   = 5 * time.Second // how often a process looks whether the file has changed
	most    = 16              // files that are remembered
)

// Open reads the prices in a file, in the format of [provider.PriceMap]. The file is read again within seconds of a change; if it cannot
// be read then, the last good prices stay.
func Open(path string) (func() *provider.PriceMap, error) {
	known.mu.Lock()
	defer known.mu.Unlock()
	f := known.files[path]
	if f == nil {
		f = &file{path: path}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.look(time.Now()); err != nil {
		return nil, err
	}
	if known.files == nil || len(known.files) >= most {
		known.files = map[string]*file{}
	}
	known.files[path] = f
	return f.current, nil
}

// known are the files that this process has read: the gate, the routes and the proxy ask for the same one.
var known struct {
	mu    sync.Mutex
	files map[string]*file
}

type file struct {
	path string

	mu     sync.Mutex
	looked time.Time
	size   int64
	time   time.Time
	err    error // of the last time that it was read
	prices *provider.PriceMap
}

func (f *file) current() *provider.PriceMap {
	f.mu.Lock()
	defer f.mu.Unlock()
	if now := time.Now(); now.Sub(f.looked) >= every {
		_ = f.look(now) // the last good prices stay
	}
	return f.prices
}

// look reads the file if it has changed, and reports what is wrong with it.
func (f *file) look(now time.Time) error {
	f.looked = now
	info, err := os.Stat(f.path)
	if err != nil {
		return err
	}
	if info.Size() != f.size || !info.ModTime().Equal(f.time) {
		f.err = f.load()
	}
	return f.err
}

func (f *file) load() error {
	from, err := os.Open(f.path)
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // it was only read
	info, err := from.Stat()
	if err != nil {
		return err
	}
	f.size, f.time = info.Size(), info.ModTime() // also of one that is wrong: it is not read again until it changes
	if !info.Mode().IsRegular() || info.Size() > maxSize {
		return fmt.Errorf("%s: it is no file, or larger than %d bytes", f.path, maxSize)
	}
	text, err := io.ReadAll(io.LimitReader(from, maxSize))
	if err != nil {
		return err
	}
	prices, err := provider.ParsePriceMap(text, info.ModTime().UTC().Format(time.DateOnly))
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	f.prices = prices
	return nil
}
