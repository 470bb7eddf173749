package main

import (
	"io"
	"os"
)

// painter colours text if it is true.
type painter bool

const (
	bold  = "\x1b[1m"
	red   = "\x1b[31m"
	green = "\x1b[32m"
	plain = ""
	reset = "\x1b[0m"
)

// painterFor returns a painter that colours only text on a terminal whose user has not turned colours off.
func painterFor(w io.Writer) painter {
	return painter(isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb")
}

func (p painter) paint(style, s string) string {
	if !p || style == plain {
		return s
	}
	return style + s + reset
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
