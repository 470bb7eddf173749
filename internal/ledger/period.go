package ledger

import "time"

// Length is how long a budget lasts.
type Length uint8

// The lengths.
const (
	Day   Length = iota // calendar day, in UTC
	Month               // calendar month, in UTC
	Total               // never starts again
)

// Period is one day, one month, or all time.
type Period struct {
	Length Length
	Name   string    // 2026-03-04, 2026-03, total
	Start  time.Time // zero for a total
	End    time.Time // zero for a total
}

// At returns the period that contains t.
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

// Before returns the previous period. For a total it returns p itself.
func (p Period) Before() Period {
	if p.Length == Total {
		return p
	}
	return p.Length.At(p.Start.Add(-1))
}

// stale reports whether a period, given by name, ended so long ago that nothing can be settled in it.
func stale(name string, now time.Time) bool {
	for _, l := range []Length{Day, Month} {
		p := l.At(now)
		if len(name) == len(p.Name) && name < p.Before().Name {
			return true
		}
	}
	return false
}
