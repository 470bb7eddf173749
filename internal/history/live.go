package history

import "time"

// window counts events in each of the last sixty seconds.
type window struct {
	last int64 // the current second
	n    [60]uint32
	sum  uint32
}

// turn drops counts that are older than a minute.
func (w *window) turn(second int64) {
	if second <= w.last {
		return // if the clock was set back, keep counting in the same second
	}
	if second-w.last >= 60 {
		*w = window{last: second}
		return
	}
	for w.last < second {
		w.last++
		w.sum -= w.n[w.last%60]
		w.n[w.last%60] = 0
	}
}

func (w *window) add(now time.Time) {
	w.turn(now.Unix())
	w.n[w.last%60]++
	w.sum++
}

// takeBack removes the newest count, which did not happen after all.
func (w *window) takeBack(now time.Time) {
	w.turn(now.Unix())
	for i := range int64(60) {
		if n := &w.n[(w.last-i+60)%60]; *n > 0 {
			*n--
			w.sum--
			return
		}
	}
}

func (w *window) count(now time.Time) int64 {
	w.turn(now.Unix())
	return int64(w.sum)
}

// lastMinute has the counts of a resource or an agent in the last minute.
type lastMinute struct {
	sends, throttled, errors window
	seen                     time.Time
}

// live has the counts of the last minute, by resource and by agent.
type live struct {
	all   [kinds]map[string]*lastMinute
	swept time.Time
}

// of returns the last minute of a name. Names without events for a minute are forgotten.
func (l *live) of(kind int, name string, now time.Time) *lastMinute {
	if now.Sub(l.swept) > time.Minute {
		l.swept = now
		for _, some := range l.all {
			for n, m := range some {
				if now.Sub(m.seen) > time.Minute {
					delete(some, n)
				}
			}
		}
	}
	if l.all[kind] == nil {
		l.all[kind] = map[string]*lastMinute{}
	}
	some := l.all[kind]
	m := some[name]
	if m == nil && len(some) >= mostRows[kind] {
		name = Other
		m = some[name]
	}
	if m == nil {
		m = &lastMinute{}
		some[name] = m
	}
	m.seen = now
	return m
}
