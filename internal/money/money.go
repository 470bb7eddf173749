// Package money reads the dollars that a caller states for one request. Inside, money is counted in millionths.
package money

import (
	"fmt"
	"math"
	"strconv"
)

// Max is the most that one request can cost, in dollars. Callers that state millionths, as earlier versions asked for,
// exceed it and learn of the change.
const Max = 1000

// Micros reads a decimal number of dollars as millionths of a dollar. Smaller parts are rounded, because programs that
// add prices up have them.
func Micros(text string) (int64, error) {
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil || math.IsNaN(n):
		return 0, fmt.Errorf("%.80q is not an amount of dollars such as 0.02", text)
	case n < 0 || n > Max:
		return 0, fmt.Errorf("%.80s is not an amount from 0 to %d dollars", text, Max)
	}
	return int64(math.Round(n * 1e6)), nil
}

// Text returns millionths as a decimal number of dollars.
func Text(micros int64) string {
	return strconv.FormatFloat(float64(micros)/1e6, 'f', -1, 64)
}
