package strictyaml

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	around   = 3   // lines shown before and after the one that is meant
	maxShown = 160 // characters of a line
)

// excerpt shows a place in src with the lines around it.
func excerpt(src []byte, line, column int) string {
	lines := strings.Split(strings.TrimRight(string(src), "\r\n"), "\n")
	if line < 1 || line > len(lines) {
		return ""
	}
	var b strings.Builder
	for n := max(line-around, 1); n <= min(line+around, len(lines)); n++ {
		mark := " "
		if n == line {
			mark = ">"
		}
		text, at := cut(strings.TrimRight(lines[n-1], "\r "), column)
		fmt.Fprintf(&b, "%s %2d | %s\n", mark, n, text)
		if n == line {
			gutter := len(fmt.Sprintf("  %2d | ", n))
			fmt.Fprintf(&b, "%*s%s^\n", gutter, "", blank(text, at-1))
		}
	}
	return strings.TrimRight(b.String(), "\n ")
}

// cut shortens a line so that the place that is meant stays in sight.
func cut(text string, column int) (string, int) {
	if utf8.RuneCountInString(text) <= maxShown {
		return text, column
	}
	runes := []rune(text)
	from := min(max(column-maxShown/2, 0), len(runes)-maxShown)
	return string(runes[from : from+maxShown]), column - from
}

// blank is as wide as the first n characters of text.
func blank(text string, n int) string {
	var b strings.Builder
	for _, r := range text {
		if n--; n < 0 {
			break
		}
		if r != '\t' {
			r = ' '
		}
		b.WriteRune(r)
	}
	for ; n > 0; n-- {
		b.WriteByte(' ')
	}
	return b.String()
}
