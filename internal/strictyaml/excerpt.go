package strictyaml

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluicehq/sluice/internal/lazyregexp"
)

const (
	around   = 3   // lines shown before and after the relevant one
	maxShown = 160 // characters of a line
)

// excerpt shows a position in src with the lines around it, except hidden ones.
func excerpt(src []byte, line, column int, hidden map[int]bool) string {
	lines := strings.Split(strings.TrimRight(string(src), "\r\n"), "\n")
	if line < 1 || line > len(lines) || hidden[line] {
		return ""
	}
	var b strings.Builder
	last := min(line+around, len(lines))
	width := max(len(strconv.Itoa(last)), 2)
	for n := max(line-around, 1); n <= last; n++ {
		mark := " "
		if n == line {
			mark = ">"
		}
		if hidden[n] {
			lines[n-1] = "..."
		}
		text, at := cut(strings.Map(visible, Mask(strings.TrimRight(lines[n-1], "\r "))), column)
		fmt.Fprintf(&b, "%s %*d | %s\n", mark, width, n, text)
		if n == line {
			fmt.Fprintf(&b, "%*s%s^\n", width+5, "", blank(text, at-1))
		}
	}
	return strings.TrimRight(b.String(), "\n ")
}

var password = lazyregexp.New(`(://[^\s/@:]*:)(\S+)@`) // a password can have an @ in it

// Mask replaces the passwords in addresses with asterisks of the same length, so that columns stay the same.
func Mask(text string) string {
	return password.ReplaceAllStringFunc(text, func(m string) string {
		part := password.FindStringSubmatch(m)
		if strings.HasPrefix(part[2], "${") {
			return m // the name of a variable is not secret
		}
		return part[1] + strings.Repeat("*", utf8.RuneCountInString(part[2])) + "@"
	})
}

// visible replaces characters that could affect a terminal.
func visible(r rune) rune {
	if unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Cf, r) { // Cf turns the direction of text around
		return utf8.RuneError
	}
	return r
}

// cut shortens a line around the relevant column.
func cut(text string, column int) (string, int) {
	if utf8.RuneCountInString(text) <= maxShown {
		return text, column
	}
	runes := []rune(text)
	from := min(max(column-maxShown/2, 0), len(runes)-maxShown)
	return string(runes[from : from+maxShown]), column - from
}

// blank returns white space as wide as the first n characters of text.
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
