package show

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxMarks = 2    // in a row on one letter: more would reach into other lines
	maxBytes = 4096 // of a text that are read
)

// Text makes foreign text one harmless line of at most width cells: without control or escape codes, and without marks
// that change the text direction. A width of 0 means 500.
func (s Style) Text(text string, width int) string {
	if width <= 0 {
		width = 500
	}
	cut := len(text) > maxBytes
	if cut {
		text = text[:maxBytes]
	}
	var b strings.Builder
	cells, marks, turned := 0, 0, false
	end, room := "", width-s.dots()
	for _, r := range text {
		r = s.harmless(r)
		if unicode.In(r, unicode.Mn, unicode.Me) {
			if marks++; marks > maxMarks || cells == 0 {
				continue
			}
		} else {
			marks = 0
		}
		w := Width(string(r))
		if cells+w > width {
			cut = true
			break
		}
		if cells+w > room && end == "" {
			end = b.String() // the text to keep if it turns out too long
			if end == "" {
				end = " "
			}
		}
		cells += w
		turned = turned || rightToLeft(r)
		b.WriteRune(r)
	}
	out := b.String()
	if cut {
		if end != "" {
			out = strings.TrimSpace(end)
		}
		out += s.ellipsis(width)
	}
	if turned {
		out += "\u200e" // continue left to right
	}
	return out
}

// harmless replaces runes that are not visible characters.
func (s Style) harmless(r rune) rune {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || unicode.Is(unicode.Zs, r):
		return ' '
	case s.ASCII && r > unicode.MaxASCII:
		return '?'
	case unicode.IsGraphic(r): // neither controls nor Cf, which changes text direction
		return r
	case s.ASCII:
		return '?'
	}
	return utf8.RuneError
}

func rightToLeft(r rune) bool {
	return r >= 0x590 && r <= 0x8ff || r >= 0xfb1d && r <= 0xfdff || r >= 0xfe70 && r <= 0xfeff || r >= 0x10800 && r <= 0x10fff || r >= 0x1e800 && r <= 0x1efff
}

func (s Style) dots() int {
	if s.ASCII {
		return 2
	}
	return 1
}

func (s Style) ellipsis(width int) string {
	switch {
	case !s.ASCII:
		return "…"
	case width < 2:
		return "."
	}
	return ".."
}

// Names joins at most most names, made harmless, with between.
func (s Style) Names(names []string, between string, most, width int) string {
	var shown []string
	for i, name := range names {
		if i == most {
			shown = append(shown, "and "+Count(int64(len(names)-most))+" more")
			break
		}
		shown = append(shown, s.Text(name, width))
	}
	return strings.Join(shown, between)
}

// Fit pads or cuts a line, painted or not, to exactly width cells.
func (s Style) Fit(line string, width int) string {
	if w := Width(line); w < width {
		return line + strings.Repeat(" ", width-w)
	}
	return s.clip(line, width)
}

// Wrap breaks a text at spaces into lines of at most width cells, where possible.
func Wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && Width(line)+1+Width(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
