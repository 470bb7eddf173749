package history

import "time"

// window counts what happened in each of the last sixty seconds.
type window struct {
	last int64 // second that is counted in now
	n    [60]uint32
	sum  uint32
}

// turn forgets what is older than a minute.
func (w *window) turn(second int64) {
	if second <= w.last {
		return // a clock that was set back counts on in the second that it was
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

// takeBack forgets the newest, which did not happen after all.
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

// lastMinute is the last minute of a resource or an agent.
type lastMinute struct {
	sends, throttled, errors window
	seen                     time.Time
}

// live is what happened in the last minute, by resource and by agent.
type live struct {
	all   [kinds]map[string]*lastMinute
	swept time.Time
}

// of finds the last minute of a name. Names that were not heard of for a minute are forgotten.
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
