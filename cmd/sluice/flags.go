package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice"
	"github.com/sluicehq/sluice/internal/lazyregexp"
	"github.com/sluicehq/sluice/internal/money"
	"github.com/sluicehq/sluice/store"
)

// timeFlag is a flag for a length of time: 30s, 1m30s, or a number of seconds.
type timeFlag time.Duration

var errTime = errors.New("it has to be a time such as 30s or 5m, or a number of seconds")

var errTooLong = fmt.Errorf("it is too long: at most %d days", store.MaxWindow/(24*time.Hour))

// timeRE matches times in Go's form. What it matches and Go refuses is too long.
var timeRE = lazyregexp.New(`^([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// Set implements pflag.Value.
func (d *timeFlag) Set(text string) error {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		switch {
		case math.IsNaN(seconds) || seconds < 0:
			return errTime
		case seconds > store.MaxWindow.Seconds():
			return errTooLong
		}
		*d = timeFlag(seconds * float64(time.Second))
		return nil
	}
	parsed, err := time.ParseDuration(text)
	switch {
	case parsed > store.MaxWindow || err != nil && timeRE.MatchString(text):
		return errTooLong
	case err != nil || parsed < 0:
		return errTime
	}
	*d = timeFlag(parsed)
	return nil
}

func (d *timeFlag) String() string {
	if *d == 0 {
		return "0" // help does not show this as a default
	}
	return shortTime(time.Duration(*d))
}

// Type implements pflag.Value.
func (*timeFlag) Type() string { return "TIME" }

// shortTime formats a duration without parts that are 0: 10m, not 10m0s.
func shortTime(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// amounts is a flag for numbers of units: input_tokens=1200,output_tokens=300. The unit usd is in dollars: usd=0.02.
type amounts []sluice.Amount

// maxAmounts bounds how many units a flag can name: no resource has more limits.
const maxAmounts = store.MaxLimits

// Set implements pflag.Value. A repeated flag adds units; a repeated unit is an error.
func (a *amounts) Set(text string) error {
	for part := range strings.SplitSeq(text, ",") {
		unit, number, ok := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.ParseInt(number, 10, 64)
		if unit == sluice.USD {
			if n, err = money.Micros(number); err != nil {
				return fmt.Errorf("usd is in dollars: %w", err)
			}
		}
		switch {
		case !ok || unit == "" || err != nil:
			return fmt.Errorf("%.80q is not UNIT=NUMBER, as in input_tokens=1200", part)
		case n < 0 || n > store.MaxAmount:
			return fmt.Errorf("%.80q: the number has to be from 0 to %d", part, int64(store.MaxAmount))
		case len(unit) > store.MaxName:
			return fmt.Errorf("%.80q: the unit has more than %d bytes", part, store.MaxName)
		case len(*a) == maxAmounts:
			return fmt.Errorf("these are more than %d units", maxAmounts)
		}
		for _, b := range *a {
			if b.Unit == unit {
				return fmt.Errorf("unit %.80q is there twice", unit)
			}
		}
		*a = append(*a, sluice.Amount{Unit: unit, N: n})
	}
	return nil
}

func (a *amounts) String() string {
	var parts []string
	for _, b := range *a {
		n := strconv.FormatInt(b.N, 10)
		if b.Unit == sluice.USD {
			n = money.Text(b.N)
		}
		parts = append(parts, b.Unit+"="+n)
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (*amounts) Type() string { return "UNIT=N,..." }
