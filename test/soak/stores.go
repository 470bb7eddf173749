package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// kinds are the stores that a soak can create.
var kinds = []string{"file", "redis", "daemon", "memory"}

// base is the store of the measured daemon.
type base struct {
	url   string
	keys  func(context.Context) (float64, error)
	close func() error
}

// openBase creates a store of the given kind, with its files in dir.
func openBase(ctx context.Context, o options, kind, dir string) (*base, error) {
	b := &base{close: func() error { return nil }}
	switch kind {
	case "":
		b.url = o.store
	case "file":
		b.url = "file:" + filepath.Join(dir, "state")
	case "memory":
		b.url = "mem:"
	case "redis":
		server, err := redisrun.Start(redisrun.Options{})
		if err != nil {
			return nil, err
		}
		b.url, b.close = server.URL(), server.Stop
		b.keys = func(ctx context.Context) (float64, error) {
			text, err := server.Do(ctx, "DBSIZE")
			if err != nil {
				return 0, err
			}
			return strconv.ParseFloat(text, 64)
		}
	case "daemon":
		other, err := serve(ctx, o, filepath.Join(dir, "other"), "file:"+filepath.Join(dir, "state"))
		if err != nil {
			return nil, err
		}
		b.url, b.close = "http://"+other.address, other.stop
	default:
		return nil, fmt.Errorf("no store is called %q", kind)
	}
	return b, nil
}

// choose returns the kinds of stores to test. The kind "" stands for the URL of --store.
func choose(o options, named []string) ([]string, error) {
	switch {
	case o.store != "":
		return []string{""}, nil
	case len(named) == 0:
		return []string{"file"}, nil
	case slices.Equal(named, []string{"all"}):
		return kinds, nil
	}
	for _, k := range named {
		if !slices.Contains(kinds, k) {
			return nil, fmt.Errorf("--stores %q: known are all, %v", k, kinds)
		}
	}
	return named, nil
}
