package show

import (
	"math"
	"strings"
)

// Bar shows how full something is, in width cells. Any use shows at least one step, and only full use fills the bar.
func (s Style) Bar(part float64, width int) string {
	if width <= 0 {
		return ""
	}
	if math.IsNaN(part) || part < 0 {
		part = 0
	}
	part = min(part, 1)
	if s.ASCII {
		full := steps(part, width)
		return strings.Repeat("#", full) + strings.Repeat("-", width-full)
	}
	eighths := steps(part, width*8)
	full, rest := eighths/8, eighths%8
	bar := strings.Repeat("█", full)
	if rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
		full++
	}
	return bar + strings.Repeat("░", width-full)
}

// steps returns part as a number of steps out of n.
func steps(part float64, n int) int {
	k := int(math.Round(part * float64(n)))
	if k == 0 && part > 0 {
		return 1
	}
	if k == n && part < 1 {
		return n - 1
	}
	return k
}

// Fullness returns the colour of a bar. A fully used limit is not an error: requests queue for it.
func Fullness(part float64) Colour {
	if part >= 0.95 {
		return Blue
	}
	return Green
}

// Spark draws the last values as columns, scaled to the highest of them.
func (s Style) Spark(values []float64, width int) string {
	if len(values) == 0 {
		return ""
	}
	ramp := []rune("▁▂▃▄▅▆▇█")
	if s.ASCII {
		ramp = []rune(".:-=+*#@")
	}
	if len(values) > width {
		values = values[len(values)-width:]
	}
	top := 0.0
	for _, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			top = max(top, v)
		}
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", max(width-len(values), 0)))
	for _, v := range values {
		i := 0
		if top > 0 && v > 0 {
			i = int(math.Ceil(min(v/top, 1)*float64(len(ramp)))) - 1
		}
		b.WriteRune(ramp[min(max(i, 0), len(ramp)-1)])
	}
	return b.String()
}

// OfState returns the colour of an agent's state.
func OfState(state string) Colour {
	switch state {
	case "limited", "held":
		return Amber
	case "waiting":
		return Blue
	}
	return Green
}
