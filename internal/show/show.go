// Package show turns figures and foreign text into lines for a terminal: aligned tables, bars,
// countdowns. What it is given may be anything; what it returns steers no terminal and keeps its
// place.
package show

import (
	"runtime"
	"strings"

	"charm.land/lipgloss/v2"
)

// Style is how text is shown.
type Style struct {
	Colour bool
	ASCII  bool // the terminal, or what reads a pipe, may know nothing else
}

// Colour is what a text is painted with.
type Colour string

// The colours. They are the terminal's own, so that they suit its background.
const (
	Plain  Colour = ""
	Bold   Colour = "1"
	Dim    Colour = "2"
	Invert Colour = "7"
	Red    Colour = "31"
	Green  Colour = "32"
	Amber  Colour = "33"
	Blue   Colour = "34"
	Cyan   Colour = "36"
)

// Paint colours a text, or does not.
func (s Style) Paint(c Colour, text string) string {
	if !s.Colour || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Resource is the colour of a resource's state. Red is for what is broken, and nothing else.
func Resource(state string) Colour {
	switch state {
	case "failing":
		return Red
	case "degraded", "paused":
		return Amber
	case "queueing":
		return Blue
	case "flowing":
		return Green
	}
	return Dim
}

// UTF8 tells whether the environment says that more than ASCII can be shown.
func UTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first that is set decides
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return runtime.GOOS == "windows" // which has no such variables
}

// Width is how many cells a text takes.
func Width(text string) int { return lipgloss.Width(text) }
