//go:build !peersonly

package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/provider"
	"github.com/sluicehq/sluice/proxy"
	_ "github.com/sluicehq/sluice/store/memstore"
)

func init() {
	proxyContenders = append(proxyContenders, proxyContender{nameThroughUs, openSluiceProxy})
}

// openSluiceProxy opens the proxy with limits that never bind, with prices, and with usage read from every response.
func openSluiceProxy(ctx context.Context, up *url.URL) (http.Handler, string, func() error, error) {
	limits := []sluice.Limit{
		{Name: "requests", Kind: sluice.Bucket, Size: 1 << 30, Window: time.Minute},
		{Name: "input_tokens", Kind: sluice.Bucket, Size: 1 << 38, Window: time.Minute, Unit: "input_tokens"},
		{Name: "output_tokens", Kind: sluice.Bucket, Size: 1 << 38, Window: time.Minute, Unit: "output_tokens"},
	}
	gate, err := sluice.Open(ctx, sluice.Config{Store: "mem:", Resources: map[string]sluice.Resource{"anthropic": {Limits: limits}}})
	if err != nil {
		return nil, "", nil, err
	}
	dialect, ok := provider.Lookup("anthropic")
	if !ok {
		return nil, "", nil, errors.Join(errors.New("there is no dialect anthropic"), gate.Close())
	}
	p, err := proxy.New(proxy.Options{
		Gate: gate, Classes: []string{"p0", "p1", "p2"},
		Resources: map[string]proxy.Resource{"anthropic": {Upstream: up, Dialect: dialect, Limits: limits, Prices: provider.DefaultPrices().Micros}},
	})
	if err != nil {
		return nil, "", nil, errors.Join(err, gate.Close())
	}
	return p, "/@bench/anthropic", func() error { p.Settle(); return gate.Close() }, nil
}
