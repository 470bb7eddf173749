package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluicehq/sluice/sim"
	"github.com/sluicehq/sluice/sim/plot"
)

// checkPlot finds out whether file can be written at all, before anybody waits for it.
func checkPlot(file string) error {
	switch info, err := os.Stat(file); {
	case err == nil && info.IsDir():
		return noPlace(fmt.Errorf("%s is a directory", file))
	case err == nil && !info.Mode().IsRegular(): // a device would be replaced by the picture
		return noPlace(fmt.Errorf("%s is not a file", file))
	}
	dir := filepath.Dir(file)
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return noPlace(err)
	}
	return nil
}

// writePlot draws the report. The file is there as a whole or not at all; a link stays one.
func writePlot(file string, sc *sim.Scenario, rep *sim.Report) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	f, err := os.CreateTemp(filepath.Dir(file), ".sluice-*.svg")
	if err != nil {
		return noPlace(err)
	}
	err = errors.Join(plot.SVG(f, sc, rep), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), file)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // what went wrong before matters more
	}
	return written(err)
}

// noPlace is the error for a picture that was wanted where none can be.
func noPlace(err error) error {
	return &failure{
		code: exitUsage, message: "no picture can be written there: " + err.Error(),
		hint: "--plot takes the name of a file, in a directory that is there and can be written to",
	}
}
