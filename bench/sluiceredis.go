//go:build !peersonly

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/redisrun"
	_ "github.com/sluicehq/sluice/store/redisstore"
)

// This file has what callers that share a limit in Redis use of Sluice: the public API, as a program would use it. They
// close every ticket.

func init() {
	redisContenders = append(redisContenders,
		redisContender{nameRedisOne, openRedisGate(bare(redisOneLimit), oneAgent)},
		redisContender{"sluice, 1 limit, an agent each", openRedisGate(bare(redisOneLimit), agentEach)},
		redisContender{"sluice, 4 limits", openRedisGate(bare(redisFourKinds), oneAgent)},
		redisContender{"sluice, 4 limits, shares, pace, light, breaker", openRedisGate(asItComes(redisFourKinds), oneAgent)},
	)
}

var (
	redisOneLimit = []sluice.Limit{
		{Name: "burst", Kind: sluice.Bucket, Size: redisRate, Window: time.Second, Burst: redisRate},
	}
	redisFourKinds = append([]sluice.Limit{
		{Name: "minute", Kind: sluice.Rolling, Size: 60 * redisRate, Window: time.Minute},
		{Name: "hour", Kind: sluice.Fixed, Size: 3600 * redisRate, Window: time.Hour},
		{Name: "inflight", Kind: sluice.Concurrency, Size: 1000},
	}, redisOneLimit...)
)

// asItComes returns a configuration with default settings.
func asItComes(limits []sluice.Limit) sluice.Config {
	return sluice.Config{Resources: map[string]sluice.Resource{resource: {Limits: limits}}}
}

// bare returns a configuration that reserves nothing for other callers, like any plain limiter. It is also used for
// buckets, where it makes no difference.
func bare(limits []sluice.Limit) sluice.Config {
	return sluice.Config{
		NoShares: true, NoPacing: true,
		Resources: map[string]sluice.Resource{resource: {
			Limits: limits, Light: sluice.Light{Off: true}, Breaker: sluice.Breaker{Off: true},
		}},
	}
}

func oneAgent(int) string         { return "agent" }
func agentEach(caller int) string { return fmt.Sprintf("agent-%d", caller) }

func openRedisGate(config sluice.Config, agent func(caller int) string) func(context.Context, *redisrun.Server, int) (redisTaker, error) {
	return func(ctx context.Context, server *redisrun.Server, callers int) (redisTaker, error) {
		config := config
		config.Store = server.URL() + "?prefix=" + prefixes.next()
		gate, err := sluice.Open(ctx, config)
		if err != nil {
			return redisTaker{}, err
		}
		requests := make([]sluice.Request, callers)
		tickets := make([]sluice.Ticket, callers)
		for i := range requests {
			requests[i] = sluice.Request{Resource: resource, Agent: agent(i)}
		}
		take := func(ctx context.Context, caller int) (ok bool, err error) {
			tickets[caller], err = gate.Acquire(ctx, requests[caller])
			if errors.Is(err, sluice.ErrStore) {
				return false, nil // on a busy machine Redis may be too late
			}
			return err == nil, err
		}
		end := func(caller int) error { return tickets[caller].Close() }
		return redisTaker{take, end, gate.Close}, nil
	}
}

// prefixes keeps pools on the same server apart.
var prefixes counter

type counter int

func (c *counter) next() string {
	*c++
	return fmt.Sprintf("bench%d", *c)
}
