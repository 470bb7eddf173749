package plot

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluicehq/sluice/sim"
)

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// span formats a duration for people.
func span(d time.Duration) string {
	if d >= time.Minute {
		d = d.Round(time.Second)
	} else {
		d = d.Round(100 * time.Millisecond)
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// count groups the digits of a number.
func count(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func percent(share float64) string { return fmt.Sprintf("%.1f%%", share*100) }

// amount formats a rate with a sensible number of digits.
func amount(x float64) string {
	if x >= 20 || x == math.Trunc(x) {
		return count(int(math.Round(x)))
	}
	return strconv.FormatFloat(x, 'f', 1, 64)
}

// unit returns the unit of rates.
func unit(per time.Duration) string {
	if per == time.Second {
		return "s"
	}
	return "min"
}

// published formats a limit as a provider's documentation would.
func published(l *sim.Limit) string {
	rate := sim.Rate{N: l.Size, Window: l.Window}.String()
	if _, window, ok := strings.Cut(rate, "/"); ok {
		rate = count(int(l.Size)) + "/" + window
	}
	if l.Unit != sim.Requests {
		rate += " " + strings.ReplaceAll(l.Unit, "_", " ")
	}
	return l.Name + " " + rate
}

// wrapped breaks text into lines of about this many letters.
func wrapped(text string, letters int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > letters {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
