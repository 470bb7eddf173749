package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// Names that the bars use.
const (
	nameRedisRate = "redis_rate"
	nameScript    = "bucket script on rueidis"
	nameRedisOne  = "sluice, 1 limit"
)

// redisContenders are the contenders that share a limit in Redis, with the defaults of their clients. Sluice adds
// itself in sluiceredis.go.
var redisContenders = []redisContender{
	{nameRedisRate, openRedisRate},
	{nameScript, openScript},
	{"PING on rueidis", openPing},
}

func openRedisRate(_ context.Context, server *redisrun.Server, _ int) (redisTaker, error) {
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	limiter := redis_rate.NewLimiter(client)
	limit := redis_rate.Limit{Rate: redisRate, Burst: redisRate, Period: time.Second}
	take := func(ctx context.Context, _ int) (bool, error) {
		got, err := limiter.Allow(ctx, redisKey, limit)
		if err != nil {
			return false, err
		}
		return got.Allowed > 0, nil
	}
	return redisTaker{take: take, done: client.Close}, nil
}

// bucketScript is a token bucket as people write it by hand: the remaining tokens and their time, by the server's
// clock.
const bucketScript = `
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local rate, burst, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local state = redis.call('HMGET', KEYS[1], 'left', 'at')
local left = burst
if state[1] then
  left = math.min(burst, state[1] + math.max(0, now - state[2]) * rate / 1000000)
end
local allowed = 0
if left >= cost then
  left, allowed = left - cost, 1
end
redis.call('HSET', KEYS[1], 'left', left, 'at', string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(burst * 1000 / rate))
return allowed
`

func dialRueidis(server *redisrun.Server) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{server.Addr()}, DisableCache: true, ForceSingleClient: true})
}

func openScript(_ context.Context, server *redisrun.Server, _ int) (redisTaker, error) {
	return openBucketScript(server, redisRate, redisRate)
}

func openBucketScript(server *redisrun.Server, rate, burst int) (redisTaker, error) {
	client, err := dialRueidis(server)
	if err != nil {
		return redisTaker{}, err
	}
	script := rueidis.NewLuaScript(bucketScript)
	keys, args := []string{"bucket:" + redisKey}, []string{fmt.Sprint(rate), fmt.Sprint(burst), "1"}
	take := func(ctx context.Context, _ int) (bool, error) {
		allowed, err := script.Exec(ctx, client, keys, args).ToInt64()
		return allowed == 1, err
	}
	return redisTaker{take: take, done: closed(client)}, nil
}

// openPing is the lower bound: one round trip.
func openPing(_ context.Context, server *redisrun.Server, _ int) (redisTaker, error) {
	client, err := dialRueidis(server)
	if err != nil {
		return redisTaker{}, err
	}
	take := func(ctx context.Context, _ int) (bool, error) {
		err := client.Do(ctx, client.B().Ping().Build()).Error()
		return err == nil, err
	}
	return redisTaker{take: take, done: closed(client)}, nil
}

func closed(client rueidis.Client) func() error {
	return func() error { client.Close(); return nil }
}
