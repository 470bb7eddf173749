package config

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/strictyaml"
	"github.com/sluicehq/sluice/store"
)

// Duration is a length of time, always positive: 500ms, 30s, 2m, 1h30m, 7d.
type Duration time.Duration

// UnmarshalText implements [encoding.TextUnmarshaler].
func (d *Duration) UnmarshalText(text []byte) error {
	s := string(text)
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return &strictyaml.Mistake{Message: fmt.Sprintf("%.80q has no unit", s), Hint: fmt.Sprintf("write %.80ss for seconds", s)}
	}
	parsed, err := strictyaml.ParseDuration(s)
	if err != nil {
		return err
	}
	if parsed <= 0 {
		return fmt.Errorf("%.80q is not a time above 0", s)
	}
	*d = Duration(parsed)
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// String returns the duration as the file writes it.
func (d Duration) String() string { return strictyaml.FormatDuration(time.Duration(d)) }

// Expected describes the expected text, for messages.
func (Duration) Expected() string { return "a time such as 250ms, 30s or 10m" }

// Window is the shortest and the longest wait of a class: [500ms, 5s].
type Window [2]Duration

// Expected describes the expected value, for messages.
func (*Window) Expected() string { return "a list of two times such as [500ms, 5s]" }

// Percent is a whole percentage, 1% to 100%.
type Percent int

// UnmarshalText implements [encoding.TextUnmarshaler].
func (p *Percent) UnmarshalText(text []byte) error {
	digits, ok := strings.CutSuffix(string(text), "%")
	n, err := strconv.Atoi(strings.TrimSpace(digits))
	if err != nil || n < 1 || n > 100 {
		return fmt.Errorf("%.80q is not a whole percentage from 1%% to 100%%", text)
	}
	if !ok {
		return &strictyaml.Mistake{Message: fmt.Sprintf("%.80q is not a percentage", text), Hint: fmt.Sprintf("write %d%%", n)}
	}
	*p = Percent(n)
	return nil
}

// MarshalText implements [encoding.TextMarshaler].
func (p Percent) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// String returns the percentage as the file writes it.
func (p Percent) String() string { return strconv.Itoa(int(p)) + "%" }

// Expected describes the expected text, for messages.
func (Percent) Expected() string { return "a percentage such as 40%" }

// Rate is an amount per window: 80/min, 30/4s, 5000/h, 10000/day.
type Rate struct {
	N      int64
	Window time.Duration
}

// UnmarshalText implements [encoding.TextUnmarshaler].
func (r *Rate) UnmarshalText(text []byte) error {
	n, window, err := strictyaml.Bounds{Amount: store.MaxAmount, Window: store.MaxWindow}.Rate(string(text))
	if err == nil {
		*r = Rate{n, window}
	}
	return err
}

// MarshalText implements [encoding.TextMarshaler].
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// String returns the rate as the file writes it.
func (r Rate) String() string { return strictyaml.FormatRate(r.N, r.Window) }

// Expected describes the expected text, for messages.
func (*Rate) Expected() string { return "an amount per window such as 80/min" }

// Money is an amount of dollars for each period, or in total: 10 usd/day, 100 usd.
type Money struct {
	Micros int64  // millionths of a dollar
	Period string // day, month, or empty for a total
}

// maxDollars is the largest amount that every store can count in millionths of a dollar.
const maxDollars = 1_000_000

// UnmarshalText implements [encoding.TextUnmarshaler].
func (m *Money) UnmarshalText(text []byte) error {
	amount, period, per := strings.Cut(string(text), "/")
	digits, usd := strings.CutSuffix(strings.TrimSpace(amount), "usd")
	period = strings.TrimSpace(period)
	if !usd || per && period != "day" && period != "month" {
		return fmt.Errorf("%.80q is not an amount of money such as 10 usd/day, 100 usd/month or 500 usd", text)
	}
	micros, ok := parseMicros(strings.TrimSpace(digits))
	if !ok {
		return fmt.Errorf("%.80q is not an amount between 0.000001 and %d usd", text, maxDollars)
	}
	*m = Money{micros, period}
	return nil
}

// parseMicros reads a decimal number as millionths, exactly.
func parseMicros(s string) (int64, bool) {
	whole, fraction, _ := strings.Cut(s, ".")
	if whole == "" || len(whole) > 10 || len(fraction) > 6 || strings.Trim(whole+fraction, "0123456789") != "" || strings.HasSuffix(s, ".") {
		return 0, false
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", 6-len(fraction)), 10, 64)
	return n, err == nil && n > 0 && n <= maxDollars*1_000_000
}

// MarshalText implements [encoding.TextMarshaler].
func (m Money) MarshalText() ([]byte, error) { return []byte(m.String()), nil }

// String returns the amount as the file writes it.
func (m Money) String() string {
	s := strconv.FormatInt(m.Micros/1_000_000, 10)
	if part := m.Micros % 1_000_000; part != 0 {
		s += "." + strings.TrimRight(fmt.Sprintf("%06d", part), "0")
	}
	s += " usd"
	if m.Period != "" {
		s += "/" + m.Period
	}
	return s
}

// Expected describes the expected text, for messages.
func (*Money) Expected() string { return "an amount of money such as 10 usd/day" }
