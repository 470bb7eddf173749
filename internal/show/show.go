// Package show turns figures and foreign text into lines for a terminal: aligned tables, bars, countdowns. Its input
// may be any text; its output contains no control codes and keeps its width.
package show

import (
	"runtime"
	"strings"

	"charm.land/lipgloss/v2"
)

// Style says how to show text.
type Style struct {
	Colour bool
	ASCII  bool // the terminal, or the reader of a pipe, may know nothing else
}

// Colour is an ANSI colour or attribute.
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

// Paint colours a text if the style has colours.
func (s Style) Paint(c Colour, text string) string {
	if !s.Colour || c == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}

// Resource returns the colour of a resource's state. Red is only for broken resources.
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

// UTF8 reports whether the environment says that more than ASCII can be shown.
func UTF8(getenv func(string) string) bool {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} { // the first one set decides
		if v := strings.ToLower(getenv(name)); v != "" {
			return strings.Contains(v, "utf-8") || strings.Contains(v, "utf8")
		}
	}
	return runtime.GOOS == "windows" // it has no such variables
}

// Width returns how many terminal cells a text takes.
func Width(text string) int { return lipgloss.Width(text) }
