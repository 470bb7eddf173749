package main

import (
	"fmt"
	"math"
	"slices"
)

// Bar is a target for one of Sluice's figures.
type Bar struct {
	What    string   `json:"name"`
	Got     float64  `json:"measured"`
	Allowed string   `json:"allowed"` // as text: ">= 2", "<= 1.5", "0.999 .. 1"
	Pass    bool     `json:"kept"`
	Least   float64  `json:"least,omitempty"`
	Most    *float64 `json:"most,omitempty"` // nil: no upper bound
}

func bar(what string, got, least, most float64) Bar {
	b := atLeast(what, got, least)
	b.Most, b.Pass = &most, b.Pass && b.Got <= most
	if b.Allowed = fmt.Sprintf("<= %g", most); least > 0 {
		b.Allowed = fmt.Sprintf("%g .. %g", least, most)
	}
	return b
}

// atLeast returns a bar with a lower bound. If got is not a finite number, nothing has passed, and the bar is missed.
func atLeast(what string, got, least float64) Bar {
	b := Bar{What: what, Allowed: fmt.Sprintf(">= %.3g", least), Least: least}
	if !math.IsNaN(got) && !math.IsInf(got, 0) {
		b.Got, b.Pass = got, got >= least
	}
	return b
}

// noAllocs is the number of allocations that counts as none. Allocations are counted over the whole process, and
// background work may add a few to millions of calls.
const noAllocs = 0.005

// bars returns the bars of all parts in which Sluice was measured.
func bars(r Report) []Bar {
	return slices.Concat(usedBars(r.Used), allowBars(r.Allow), waitingBars(r.Waiting), fileBars(r.File), redisBars(r.Redis), flatBars(r.Flat), proxyBars(r.Proxy), startBars(r.Start), machinesBars(r.Machines), contendedBars(r.Contended))
}

func allowBars(rows []AllowRow) []Bar {
	one := find(rows, shapeHot1, nameSluice)
	if one.NS == 0 {
		return nil
	}
	allow := find(rows, shapeHot1, nameXTime)
	keys, sethvargo := find(rows, shapeKeys, nameSluice), find(rows, shapeKeys, nameSethvar)
	many, manyBase := find(rows, shapeFour, nameSluice), find(rows, shapeFour, nameXTime)
	return []Bar{
		bar("one limit, Acquire+Close: times x/time/rate Allow", one.NS/allow.NS, 0, 2),
		bar("one limit: allocations per Acquire+Close", one.Allocs, 0, noAllocs),
		bar("four limits: times one x/time/rate Allow", many.NS/manyBase.NS, 0, 4),
		bar("100,000 per-agent limits: times sethvargo/go-limiter", keys.NS/sethvargo.NS, 0, 1.5),
	}
}

func waitingBars(rows []WaitedRow) (all []Bar) {
	for _, w := range rows {
		if w.Name != nameSluice {
			continue
		}
		all = append(all,
			bar("waiting: share of the rate", w.Share, 0.999, 1),
			bar("waiting: share of the rate at its highest", w.Peak, 0, 1),
			bar("waiting: CPU per release, times x/time/rate", w.Ratio, 0, 1.2),
		)
		if w.Inversions >= 0 {
			all = append(all, bar("waiting: grants out of order", float64(w.Inversions), 0, 0))
		}
	}
	return all
}

func fileBars(rows []FileRow) (all []Bar) {
	for _, acquire := range rows {
		if acquire.Name != nameFileAcquire {
			continue
		}
		n := acquire.Processes
		what := func(text string) string { return "file, " + processes(n) + ": " + text }
		both, bare := findFile(rows, n, nameFileComplete), findFile(rows, n, nameBare)
		cost := func(r FileRow) float64 {
			if bare.Rate == 0 {
				return math.NaN()
			}
			return bare.Rate / r.Rate
		}
		all = append(all,
			bar(what("acquire, times the bare lock's cost"), cost(acquire), 0, 2),
			bar(what("acquire + close, times the bare lock's cost"), cost(both), 0, 4),
			atLeast(what("acquire, times as fast as JSON"), acquire.Rate/findFile(rows, n, nameJSON).Rate, 80),
			atLeast(what("acquire, times as fast as SQLite"), acquire.Rate/findFile(rows, n, nameSQLite).Rate, 8),
		)
		if n > 1 {
			all = append(all,
				atLeast(what("acquire, least of the mean, worst round"), acquire.Worst, 1.0/3),
				atLeast(what("acquire + close, least of the mean, worst round"), both.Worst, 1.0/3),
			)
		}
	}
	return all
}

func redisBars(rows []RedisRow) (all []Bar) {
	if findRedis(rows, oneCaller, nameRedisOne).Rate == 0 {
		return nil
	}
	at := func(n int) (us, peer, script RedisRow) {
		return findRedis(rows, n, nameRedisOne), findRedis(rows, n, nameRedisRate), findRedis(rows, n, nameScript)
	}
	what := func(n int, text string) string { return "redis, " + callers(n) + ": " + text }
	us, peer, _ := at(oneCaller)
	both := math.NaN()
	if peer.Rate > 0 {
		both = peer.Rate / us.Rate
	}
	all = append(all,
		bar(what(oneCaller, "p50 of an acquire, times redis_rate"), us.P50/peer.P50, 0, 1.2),
		bar(what(oneCaller, "time of acquire + close, times redis_rate"), both, 0, 1.2),
		bar(what(oneCaller, "Redis CPU, times redis_rate"), us.Server/peer.Server, 0, 1.5),
	)
	us, peer, script := at(manyCallers)
	all = append(all,
		atLeast(what(manyCallers, "times as many as redis_rate"), us.Rate/peer.Rate, 4),
		atLeast(what(manyCallers, "times as many as the bucket script"), us.Rate/script.Rate, 1.5),
		bar(what(manyCallers, "Redis CPU, times redis_rate"), us.Server/peer.Server, 0, 0.5),
	)
	us, peer, _ = at(mostCallers)
	return append(all, atLeast(what(mostCallers, "times as many as redis_rate"), us.Rate/peer.Rate, 6))
}

// flatBars limits growth: the highest cost at any size, compared with the smallest size.
func flatBars(rows []FlatRow) (all []Bar) {
	for i := 0; i < len(rows); {
		what, most := rows[i].What, 0.0
		for ; i < len(rows) && rows[i].What == what; i++ {
			if rows[i].Ratio == 0 {
				most = math.NaN() // max keeps NaN
			}
			most = max(most, rows[i].Ratio)
		}
		all = append(all, bar("redis, "+what+": growth of Redis CPU", most, 0, 1.5))
	}
	return all
}
