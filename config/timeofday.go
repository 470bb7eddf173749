package config

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluicehq/sluice/internal/lazyregexp"
)

// TimeOfDay is a time of day in a time zone: 00:00 UTC, 09:30 Europe/Berlin, 00:00 -08:00. The zero value means no
// time.
type TimeOfDay struct {
	Hour, Minute int
	Zone         string // UTC, the name of a zone, or an offset; empty means no time
}

var timeOfDay = lazyregexp.New(`^([01][0-9]|2[0-3]):([0-5][0-9]) ([A-Za-z][A-Za-z0-9_+/-]*|[+-](?:0[0-9]|1[0-4]):[0-5][0-9])$`)

// UnmarshalText implements [encoding.TextUnmarshaler].
func (t *TimeOfDay) UnmarshalText(text []byte) error {
	m := timeOfDay.FindStringSubmatch(string(text))
	if m == nil {
		return fmt.Errorf("%.80q is not a time of day with its zone such as 00:00 UTC, 00:00 America/Los_Angeles or 00:00 -08:00", text)
	}
	if _, err := zone(m[3]); err != nil {
		return fmt.Errorf("%.80q: unknown time zone %.80q", text, m[3])
	}
	t.Hour, _ = strconv.Atoi(m[1])
	t.Minute, _ = strconv.Atoi(m[2])
	t.Zone = m[3]
	return nil
}

// zone finds a time zone. It refuses Local, which differs from machine to machine.
func zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("unknown time zone %q", name)
	}
	if name[0] == '+' || name[0] == '-' {
		at, err := time.Parse("-07:00", name)
		if err != nil {
			return nil, err
		}
		_, offset := at.Zone()
		return time.FixedZone(name, offset), nil
	}
	return time.LoadLocation(name)
}

// MarshalText implements [encoding.TextMarshaler].
func (t TimeOfDay) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// String returns the time as the file writes it.
func (t TimeOfDay) String() string { return fmt.Sprintf("%02d:%02d %s", t.Hour, t.Minute, t.Zone) }

// Expected describes the expected text, for messages.
func (*TimeOfDay) Expected() string { return "a time of day with its zone such as 00:00 UTC" }

// Next returns the first moment after now with this time of day, in UTC.
func (t TimeOfDay) Next(now time.Time) (time.Time, error) {
	loc, err := zone(t.Zone)
	if err != nil {
		return time.Time{}, err
	}
	now = now.In(loc)
	for day := now.Day(); ; day++ {
		at := time.Date(now.Year(), now.Month(), day, t.Hour, t.Minute, 0, 0, loc)
		if at.After(now) {
			return at.UTC(), nil
		}
	}
}
