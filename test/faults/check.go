package main

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// grain is the only time tolerance of the checks. The store counts in microseconds, with rounding.
const grain = 5 * time.Microsecond

// verdict is the result of a check.
type verdict struct {
	worst  int      // highest value seen
	breaks int      // number of times that the limit was exceeded
	broken []string // first violations, for people
}

const maxShown = 3

func (v *verdict) breach(format string, args ...any) {
	v.breaks++
	if len(v.broken) < maxShown {
		v.broken = append(v.broken, fmt.Sprintf(format, args...))
	}
}

// checkRolling checks that any size+1 uses in a row span at least length. uses is sorted by time.
func checkRolling(uses []use, size int, length time.Duration, since stamp) verdict {
	var v verdict
	first := 0
	for last := range uses {
		for uses[last].used.sub(uses[first].used) >= length-grain {
			first++
		}
		v.worst = max(v.worst, last-first+1)
		if i := last - size; i >= first {
			v.breach("%d uses within %v at %s, limit %d: from %s (worker %d) to %s (worker %d)", last-i+1, uses[last].used.sub(uses[i].used),
				after(uses[i].used, since), size, uses[i].id, uses[i].worker, uses[last].id, uses[last].worker)
		}
	}
	return v
}

// checkBucket fills a bucket with the uses. The bucket drains at rate per second and holds burst. uses is sorted by
// time.
func checkBucket(uses []use, burst, rate float64, since stamp) verdict {
	var v verdict
	level := 0.0
	most := burst + rate*grain.Seconds()
	for i, u := range uses {
		if i > 0 {
			level = max(0, level-rate*u.used.sub(uses[i-1].used).Seconds())
		}
		level++
		v.worst = max(v.worst, int(math.Ceil(level-most+burst)))
		if level > most {
			v.breach("level %.3f at %s, limit %.0f: %s (worker %d)", level, after(u.used, since), burst, u.id, u.worker)
		}
	}
	return v
}

// checkPlaces counts the tickets that were certainly held at the same time. A ticket is held from when the caller has
// it until the caller begins to close it or its worker is killed, but at most for the life of a ticket.
func checkPlaces(uses []use, size int, killed map[int]stamp, since stamp) verdict {
	type edge struct {
		at  stamp
		add int
		use use
	}
	var edges []edge
	for _, u := range uses {
		end := u.closing
		if end == 0 { // never closed
			end = killed[u.worker]
		}
		end = min(end, u.asked.add(ticketTTL))
		if end > u.used {
			edges = append(edges, edge{u.used, 1, u}, edge{end, -1, u})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.add, b.add)) })
	var v verdict
	held := 0
	for _, e := range edges {
		held += e.add
		v.worst = max(v.worst, held)
		if e.add > 0 && held > size {
			v.breach("%d held at %s, limit %d: %s (worker %d)", held, after(e.at, since), size, e.use.id, e.use.worker)
		}
	}
	return v
}

// checkDouble looks for tickets that were granted twice.
func checkDouble(uses []use) verdict {
	var v verdict
	seen := map[string]int{}
	for _, u := range uses {
		if first, twice := seen[u.id]; twice {
			v.breach("ticket %s was granted to worker %d and to worker %d", u.id, first, u.worker)
		}
		seen[u.id] = u.worker
	}
	v.worst = v.breaks
	return v
}

// overdue returns the longest time that a caller waited past its own deadline, and describes that caller.
func overdue(l *ledger) (most time.Duration, who string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	look := func(worker, pool int, asked, got stamp, within time.Duration, outcome string) {
		if late := got.sub(asked) - within; late > most {
			most, who = late, fmt.Sprintf("worker %d, pool %s, allowed %v, waited %v, then %s", worker, poolNames[pool], within, round(got.sub(asked)), outcome)
		}
	}
	for _, u := range l.uses {
		look(u.worker, u.pool, u.asked, u.used, u.within, "granted")
	}
	for _, m := range l.misses {
		look(m.worker, m.pool, m.asked, m.got, m.within, m.kind+": "+m.text)
	}
	return most, who
}

// after formats a time relative to the start of the fault.
func after(at, since stamp) string {
	d := at.sub(since)
	if d < 0 {
		return fmt.Sprintf("%.3fs before the fault", -d.Seconds())
	}
	return fmt.Sprintf("%.3fs after the fault began", d.Seconds())
}

func round(d time.Duration) time.Duration { return d.Round(time.Millisecond) }
