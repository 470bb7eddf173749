package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/sluicehq/sluice/internal/redisrun"
)

// Used is the part that measures what users call: a whole ticket, which is acquired, answered, settled and closed. 128
// agents in three classes do that, with the limits and policies of a provider's preset. Peers are measured with the one
// check that they make. The other parts measure easier calls.
type Used struct {
	Memory []AllowRow `json:"memory"`
	File   []FileRow  `json:"file"`
	Redis  []RedisRow `json:"redis"`
}

const (
	nameUsed   = "sluice, whole tickets"
	usedAgents = 128
	usedShape  = "memory, whole tickets"
)

// The contenders of this part. Sluice adds itself in sluiceused.go.
var (
	usedMemory = slices.Clone(single)
	usedRedis  = redisContenders[:2:2]
)

// isUsed reports whether a contender belongs to this part alone.
func isUsed(c fileContender) bool { return c.name == nameUsed }

func measureUsed(opts Options, progress io.Writer) (u *Used, err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the second signal stops at once
	u = new(Used)
	fmt.Fprintf(progress, "measuring: %s\n", usedShape)
	if u.Memory, err = measureShape(shape{usedShape, 1, usedAgents, usedMemory}, opts); err != nil {
		return nil, err
	}
	files := slices.DeleteFunc(slices.Clone(fileContenders), func(c fileContender) bool { return c.name != nameSQLite && c.name != nameBare && !isUsed(c) })
	if u.File, err = measureFileUntil(ctx, files, opts, progress); err != nil {
		return nil, err
	}
	server, err := redisrun.Start(redisrun.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	u.Redis, err = measureHotKey(ctx, server, usedRedis, []int{oneCaller, manyCallers, mostCallers}, opts, progress)
	return u, err
}

func usedBars(u *Used) (all []Bar) {
	if u == nil {
		return nil
	}
	ours := find(u.Memory, usedShape, nameUsed)
	if ours.NS == 0 {
		return nil
	}
	all = append(all, bar("used, memory: allocations per ticket", ours.Allocs, 0, noAllocs))
	for _, row := range u.File {
		if row.Name != nameUsed || row.Processes == 1 {
			continue
		}
		all = append(all, atLeast("used, file, "+processes(row.Processes)+": tickets, times SQLite's updates", row.Rate/findFile(u.File, row.Processes, nameSQLite).Rate, 8))
	}
	at := func(n int) (us, peer RedisRow) {
		return findRedis(u.Redis, n, nameUsed), findRedis(u.Redis, n, nameRedisRate)
	}
	what := func(n int, text string) string { return "used, redis, " + callers(n) + ": " + text }
	times := func(a, b float64) float64 {
		if b == 0 {
			return math.NaN()
		}
		return a / b
	}
	us, peer := at(oneCaller)
	all = append(all,
		bar(what(oneCaller, "p50 of an acquire, times redis_rate"), times(us.P50, peer.P50), 0, 1),
		bar(what(oneCaller, "Redis CPU per ticket, times redis_rate's check"), times(us.Server, peer.Server), 0, 1),
		bar(what(oneCaller, "calls of Redis per ticket"), us.Calls, 0, 1.1),
	)
	us, peer = at(manyCallers)
	all = append(all,
		atLeast(what(manyCallers, "tickets, times redis_rate's checks"), times(us.Rate, peer.Rate), 5),
		bar(what(manyCallers, "Redis CPU us per ticket"), us.Server, 0, 15),
	)
	us, peer = at(mostCallers)
	return append(all, atLeast(what(mostCallers, "tickets, times redis_rate's checks"), times(us.Rate, peer.Rate), 6))
}
