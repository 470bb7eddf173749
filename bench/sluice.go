//go:build !peersonly

package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	_ "github.com/sluicehq/sluice/store/memstore"
)

// This file has everything that the benchmark uses of Sluice in one process: the public API as a program would use it,
// with ids and counters on. Build with -tags peersonly to measure only the peers.

func init() {
	single = append(single, contender{nameSluice, sluiceAllow(oneLimit)})
	keyed = append(keyed, contender{nameSluice, sluiceAllow(perAgent)})
	four = append(four, contender{nameSluice, sluiceAllow(fourKinds)})
	waiters = append(waiters, waiter{nameSluice, waitingBurst, sluiceWait})
}

const resource = "api"

var (
	oneLimit = []sluice.Limit{
		{Name: "burst", Kind: sluice.Bucket, Size: wideOpen, Window: time.Second, Burst: wideOpen},
	}
	perAgent = []sluice.Limit{
		{Name: "each", Kind: sluice.Bucket, Size: wideOpen, Window: time.Second, Burst: wideOpen, Per: []sluice.Scope{sluice.PerAgent}},
	}
	fourKinds = []sluice.Limit{
		{Name: "burst", Kind: sluice.Bucket, Size: wideOpen, Window: time.Second, Burst: wideOpen},
		{Name: "minute", Kind: sluice.Rolling, Size: 60 * wideOpen, Window: time.Minute},
		{Name: "hour", Kind: sluice.Fixed, Size: 100 * wideOpen, Window: time.Hour},
		{Name: "inflight", Kind: sluice.Concurrency, Size: 1000},
	}
	paced = []sluice.Limit{
		{Name: "burst", Kind: sluice.Bucket, Size: waitingRate, Window: time.Second, Burst: waitingBurst},
	}
)

func openSluice(limits []sluice.Limit) (*sluice.Gate, error) {
	return sluice.Open(context.Background(), sluice.Config{
		Store:     "mem:",
		Resources: map[string]sluice.Resource{resource: {Limits: limits, MaxMeters: manyKeys}},
	})
}

func sluiceAllow(limits []sluice.Limit) func([]string) (func(string) bool, func(), error) {
	return func([]string) (func(string) bool, func(), error) {
		g, err := openSluice(limits)
		if err != nil {
			return nil, nil, err
		}
		ctx := context.Background()
		take := func(key string) bool {
			t, err := g.Acquire(ctx, sluice.Request{Resource: resource, Agent: key})
			if err != nil {
				return false
			}
			t.Close()
			return true
		}
		return take, func() { _ = g.Close() }, nil
	}
}

func sluiceWait() (func(context.Context) (grant, error), func(), error) {
	g, err := openSluice(paced)
	if err != nil {
		return nil, nil, err
	}
	wait := func(ctx context.Context) (grant, error) {
		t, err := g.Acquire(ctx, sluice.Request{Resource: resource, Agent: "a"})
		if err != nil {
			return grant{}, err
		}
		t.Close()
		_, number, _ := strings.Cut(t.ID(), "-")
		place, err := strconv.ParseInt(number, 16, 64)
		return grant{place, t.GrantedAt().UnixMicro()}, err
	}
	return wait, func() { _ = g.Close() }, nil
}
