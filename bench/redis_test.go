package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/redisrun"
)

func TestBucketScriptHoldsItsLimit(t *testing.T) {
	server := redisrun.New(t)
	open := func() (func() (bool, error), func() error) {
		taker, err := openBucketScript(server, 1, 20) // per second: too slow to matter here
		if err != nil {
			t.Fatal(err)
		}
		return func() (bool, error) { return taker.take(t.Context(), 0) }, taker.done
	}
	if got := admitted(t, 4, 10, open); got < 20 || got > 30 {
		t.Errorf("%d let in, want 20", got)
	}
}

// The requests are large enough for redis_rate to notice them. It writes nothing if a request is too small for its
// arithmetic, and would seem to cost less than it does.
func TestRedisRateCounts(t *testing.T) {
	server := redisrun.New(t)
	taker, err := openRedisRate(t.Context(), server, 1)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := taker.take(t.Context(), 0); !ok || err != nil {
		t.Error(ok, err)
	}
	if err := taker.done(); err != nil {
		t.Error(err)
	}
	if n, err := server.Do(t.Context(), "EXISTS", "rate:"+redisKey); n != "1" || err != nil {
		t.Errorf("%s keys, %v", n, err)
	}
}

func TestContendersInRedis(t *testing.T) {
	server := redisrun.New(t)
	const many = 3
	for _, c := range redisContenders {
		taker, err := c.open(t.Context(), server, many)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		turn := redisTurn{redisContender: c, redisTaker: taker, callers: many}
		row, err := turn.measure(t.Context(), server, 5*time.Millisecond)
		if err != nil || row.Rate <= 0 || row.Failed != 0 || row.P50 <= 0 || row.P99 < row.P50 || row.Calls <= 0 || row.Client <= 0 {
			t.Errorf("%s: %+v, %v", c.name, row, err)
		}
		if err := taker.done(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// One caller's error ends the turn for all.
func TestTurnThatFails(t *testing.T) {
	broken := errors.New("broken")
	var once sync.Once
	turn := redisTurn{callers: 4, redisTaker: redisTaker{take: func(ctx context.Context, _ int) (bool, error) {
		failed := false
		once.Do(func() { failed = true })
		if failed {
			return false, broken
		}
		<-ctx.Done()
		return false, ctx.Err()
	}}}
	if _, err := turn.run(t.Context(), time.Hour); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
}

func TestRedisLeavesNothingBehind(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	server := redisrun.New(t)
	cancel()
	opts := Options{Rounds: 1, Redis: time.Hour, Crowd: minCrowd}
	if _, err := measureHotKey(ctx, server, redisContenders, redisCallers, opts, io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if _, err := measureFlat(ctx, opts, io.Discard); len(flatContenders) > 0 && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
	empty(t)
}

func TestJudgeRedis(t *testing.T) {
	got := redisResult{asked: 200, passed: 100, timed: time.Second, took: spread{slotOf(time.Microsecond): 190, slotOf(time.Millisecond): 10}}
	row := judgeRedis(got, usage{server: time.Second, calls: 7}, usage{server: time.Second + 2*time.Millisecond, client: time.Millisecond, calls: 27})
	if row.Rate != 100 || row.Failed != 0.5 || row.Server != 10 || row.Client != 5 || row.Calls != 0.1 || row.P50 > 1.02 || row.P99 < 980 {
		t.Errorf("%+v", row)
	}
	if row := judgeRedis(redisResult{}, usage{}, usage{}); row != (RedisRow{}) {
		t.Errorf("nothing is %+v", row)
	}
}

func TestCallsIn(t *testing.T) {
	const info = "# Commandstats\r\ncmdstat_fcall:calls=12,usec=3\r\ncmdstat_hget:calls=99,usec=1\r\ncmdstat_ping:calls=3,usec=1\r\n"
	if n, err := callsIn(info); n != 15 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if _, err := callsIn("cmdstat_ping:many=3\r\n"); err == nil {
		t.Error("no error")
	}
}

func TestRedisBars(t *testing.T) {
	turn := func(n int, name string, rows ...RedisRow) *redisTurn {
		return &redisTurn{redisContender: redisContender{name: name}, callers: n, seen: rows}
	}
	rows := redisRows([]*redisTurn{
		turn(oneCaller, nameRedisRate, RedisRow{Rate: 100, P50: 100, Server: 20}), turn(oneCaller, nameRedisOne, RedisRow{Rate: 80, P50: 110, Server: 31}),
		turn(manyCallers, nameRedisRate, RedisRow{Rate: 100, Server: 20}), turn(manyCallers, nameScript, RedisRow{Rate: 300}),
		turn(manyCallers, nameRedisOne, RedisRow{Rate: 100, Server: 9}, RedisRow{Rate: 420, Server: 9}, RedisRow{Rate: 500, Server: 9}),
		turn(mostCallers, nameRedisRate, RedisRow{Rate: 100}), turn(mostCallers, nameRedisOne, RedisRow{Rate: 600}),
	})
	if one := findRedis(rows, manyCallers, nameRedisOne); one.Ratio != 4.2 || one.Best != 500 {
		t.Errorf("%+v", one)
	}
	want := map[string]bool{
		"redis, 1 caller: p50 of an acquire, times redis_rate":       true,
		"redis, 1 caller: time of acquire + close, times redis_rate": false,
		"redis, 1 caller: Redis CPU, times redis_rate":               false,
		"redis, 128 callers: times as many as redis_rate":            true,
		"redis, 128 callers: times as many as the bucket script":     false,
		"redis, 128 callers: Redis CPU, times redis_rate":            true,
		"redis, 512 callers: times as many as redis_rate":            true,
	}
	got := redisBars(rows)
	for _, b := range got {
		if pass, there := want[b.What]; !there || pass != b.Pass {
			t.Errorf("%+v", b)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d bars, want %d", len(got), len(want))
	}
	for _, b := range redisBars([]RedisRow{{Callers: oneCaller, Name: nameRedisOne, Rate: 100}}) {
		if b.Pass {
			t.Errorf("without peers: %+v", b)
		}
	}
}

func TestFlatBars(t *testing.T) {
	turn := func(what string, size int, seen ...float64) *flatTurn {
		t := &flatTurn{what: what, size: size}
		for _, us := range seen {
			t.seen = append(t.seen, flatSeen{us, us / 100})
		}
		return t
	}
	rows := flatRows([]*flatTurn{
		turn("a", 10, 9, 10, 11), turn("b", 10, 10), turn("a", 1000, 12), turn("b", 1000, 20), turn("a", 100_000, 14, 3, 15), turn("b", 100_000, 9),
	})
	bars := flatBars(rows)
	if len(bars) != 2 || !bars[0].Pass || bars[0].Got != 1.4 || bars[1].Pass || bars[1].Got != 2 {
		t.Errorf("%+v of %+v", bars, rows)
	}
	if rows[2].Best != 3 || rows[2].Size != 100_000 || rows[0].Idle < 0.099 || rows[0].Idle > 0.101 {
		t.Errorf("%+v", rows[2])
	}
	for _, b := range flatBars(flatRows([]*flatTurn{turn("a", 10), turn("a", 1000, 5)})) {
		if b.Pass {
			t.Errorf("without a figure: %+v", b)
		}
	}
	if got := flatSizes(100_000); fmt.Sprint(got) != "[10 1000 100000]" {
		t.Errorf("%v", got)
	}
	if got := flatSizes(minCrowd); fmt.Sprint(got) != "[10]" {
		t.Errorf("%v", got)
	}
}

// A size that cannot be prepared is reported, and the other sizes are measured all the same.
func TestFlatSizeThatFails(t *testing.T) {
	left := 0
	c := flatContender{[]string{"a"}, func(_ context.Context, _ *redisrun.Server, size int) ([]flatStep, func() error, error) {
		if size > minCrowd {
			return nil, nil, errors.New("too many")
		}
		return []flatStep{func(context.Context) (int, error) { return 1, nil }}, func() error { left++; return nil }, nil
	}}
	rows, err := c.measure(t.Context(), Options{Rounds: 2, Redis: time.Millisecond, Crowd: 20}, io.Discard)
	if err != nil || len(rows) != 2 || rows[0].Failed != "" || rows[1].Failed != "too many" || left != 1 {
		t.Errorf("%+v, %v, left %d times", rows, err, left)
	}
	if bars := flatBars(rows); len(bars) != 1 || bars[0].Pass {
		t.Errorf("%+v", bars)
	}
}

// BenchmarkRedis is one contender by itself, for a profile: -bench 'Redis/128_callers/sluice,_1_limit$'.
func BenchmarkRedis(b *testing.B) {
	server := redisrun.New(b)
	for _, n := range redisCallers {
		for _, c := range redisContenders {
			b.Run(callers(n)+"/"+c.name, func(b *testing.B) {
				taker, err := c.open(b.Context(), server, n)
				if err != nil {
					b.Fatal(err)
				}
				turn := redisTurn{redisContender: c, redisTaker: taker, callers: n}
				row, err := turn.measure(b.Context(), server, time.Duration(b.N)*time.Microsecond)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(row.Rate, "acquires/s")
				b.ReportMetric(row.Server, "redis-us/acquire")
				b.ReportMetric(row.Client, "client-us/acquire")
				if err := taker.done(); err != nil {
					b.Fatal(err)
				}
			})
		}
	}
}
