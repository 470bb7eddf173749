package main

import (
	"io"
	"os"

	"github.com/sluicehq/sluice/internal/show"
)

// styleOf returns how to show text on w: in colours only on a terminal whose user has not turned them off.
func styleOf(w io.Writer) show.Style {
	return show.Style{Colour: isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", ASCII: !show.UTF8(os.Getenv)}
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
