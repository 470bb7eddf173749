package ledger

import "time"

// Length is how long a budget lasts.
type Length uint8

// The lengths.
const (
	Day   Length = iota // of the calendar, in UTC
	Month               // the same
	Total               // it never begins anew
)

// Period is one day, one month, or all time.
type Period struct {
	Length Length
	Name   string    // 2026-03-04, 2026-03, total
	Start  time.Time // of a total: zero
	End    time.Time // the same
}

// At is the period that a moment is in.
func (l Length) At(t time.Time) Period {
	t = t.UTC()
	y, m, d := t.Date()
	switch l {
	case Day:
		start := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		return Period{l, start.Format(time.DateOnly), start, start.AddDate(0, 0, 1)}
	case Month:
		start := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
		return Period{l, start.Format("2006-01"), start, start.AddDate(0, 1, 0)}
	default:
		return Period{Length: Total, Name: "total"}
	}
}

// Before is the period before one; a total has none but itself.
func (p Period) Before() Period {
	if p.Length == Total {
		return p
	}
	return p.Length.At(p.Start.Add(-1))
}

// stale reports that a period, by its name, is of no interest any more: it ended so long ago that nothing can be
// settled in it.
func stale(name string, now time.Time) bool {
	for _, l := range []Length{Day, Month} {
		p := l.At(now)
		if len(name) == len(p.Name) && name < p.Before().Name {
			return true
		}
	}
	return false
}
