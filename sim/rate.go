package sim

import (
	"time"

	"github.com/sluicehq/sluice/internal/strictyaml"
)

// Bounds of rates in a scenario.
const (
	maxSize   = 1_000_000_000_000
	maxWindow = 31 * 24 * time.Hour
)

// ParseRate parses an amount per window: 80/min, 500/h, 30/4s, 10000/day.
func ParseRate(s string) (Rate, error) {
	n, window, err := strictyaml.Bounds{Amount: maxSize, Window: maxWindow}.Rate(s)
	return Rate{N: n, Window: window}, err
}

// String formats the rate as ParseRate reads it.
func (r Rate) String() string { return strictyaml.FormatRate(r.N, r.Window) }
