package main

import (
	"context"
	"sync"
	"time"

	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/memory"
	uber "go.uber.org/ratelimit"
	"golang.org/x/time/rate"
)

// The contenders by shape. Sluice adds itself in sluice.go.
var (
	single = []contender{
		{nameXTime, xtimeOne},
		{nameSethvar, sethvargo},
		{"uber/ratelimit", uberOne},
		{"failsafe-go bursty", failsafeOne},
		{"throttled memstore", throttledMem},
		{"ulule/limiter", ulule},
	}
	// Libraries without keys get a map under a lock, as their users write it. uber and failsafe-go are left out,
	// because a map of them would measure the same map again.
	keyed = []contender{
		{nameXTime, xtimeMap},
		{nameSethvar, sethvargo},
		{"throttled memstore", throttledMem},
		{"ulule/limiter", ulule},
	}
	// No peer takes several limits in one step. The nearest is one limit after the other, which keeps what the first
	// gave when a later one refuses.
	four = []contender{
		{nameXTime, xtimeOne}, // one limit, for the bar to compare with
		{"x/time/rate, 4 in turn", xtimeFour},
	}
)

func nothing() {}

func xtimeOne([]string) (func(string) bool, func(), error) {
	l := rate.NewLimiter(wideOpen, wideOpen)
	return func(string) bool { return l.Allow() }, nothing, nil
}

func xtimeFour([]string) (func(string) bool, func(), error) {
	var all [fourLimits]*rate.Limiter
	for i := range all {
		all[i] = rate.NewLimiter(wideOpen, wideOpen)
	}
	return func(string) bool {
		for _, l := range all {
			if !l.Allow() {
				return false
			}
		}
		return true
	}, nothing, nil
}

func xtimeMap(keys []string) (func(string) bool, func(), error) {
	var mu sync.RWMutex
	limiters := make(map[string]*rate.Limiter, len(keys))
	return func(key string) bool {
		mu.RLock()
		l := limiters[key]
		mu.RUnlock()
		if l == nil {
			mu.Lock()
			if l = limiters[key]; l == nil {
				l = rate.NewLimiter(wideOpen, wideOpen)
				limiters[key] = l
			}
			mu.Unlock()
		}
		return l.Allow()
	}, nothing, nil
}

func sethvargo(keys []string) (func(string) bool, func(), error) {
	// The interval is long, because its refill adds interval/tokens nanoseconds' worth per interval. A billion a second
	// would come back as one.
	store, err := memorystore.New(&memorystore.Config{Tokens: 24 * 3600 * wideOpen, Interval: 24 * time.Hour, InitialAlloc: len(keys)})
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	take := func(key string) bool {
		_, _, _, ok, err := store.Take(ctx, key)
		return ok && err == nil
	}
	return take, func() { _ = store.Close(ctx) }, nil
}

func uberOne([]string) (func(string) bool, func(), error) {
	l := uber.New(wideOpen)
	return func(string) bool { l.Take(); return true }, nothing, nil
}

func failsafeOne([]string) (func(string) bool, func(), error) {
	l := ratelimiter.NewBursty[any](wideOpen, time.Second)
	return func(string) bool { return l.TryAcquirePermit() }, nothing, nil
}

func throttledMem([]string) (func(string) bool, func(), error) {
	store, err := memstore.NewCtx(0) // 0: a plain map, which is faster than its LRU
	if err != nil {
		return nil, nil, err
	}
	l, err := throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerSec(wideOpen), MaxBurst: wideOpen - 1})
	if err != nil {
		return nil, nil, err
	}
	ctx := context.Background()
	return func(key string) bool {
		limited, _, err := l.RateLimitCtx(ctx, key, 1)
		return !limited && err == nil
	}, nothing, nil
}

func ulule([]string) (func(string) bool, func(), error) {
	l := limiter.New(memory.NewStore(), limiter.Rate{Period: time.Second, Limit: wideOpen})
	ctx := context.Background()
	return func(key string) bool {
		state, err := l.Get(ctx, key)
		return err == nil && !state.Reached
	}, nothing, nil
}
