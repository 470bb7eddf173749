package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
)

// lateGC puts the first garbage collection at a heap of 16 MiB instead of 4. Commands that end at once need a few megabytes, and a collection
// costs them more than their own work.
const lateGC = 400

// collectLate puts off the first garbage collection of a command that probably ends at once. From then on garbage is collected as usual, so
// that a command which needs much memory has no more of it than before. GOGC in the environment decides alone.
func collectLate(args []string) {
	if os.Getenv("GOGC") != "" || slices.ContainsFunc(args, func(arg string) bool { return arg == "serve" || arg == "run" }) {
		return
	}
	usual := debug.SetGCPercent(lateGC)
	first := new([32]byte) // garbage from now on
	runtime.AddCleanup(first, func(percent int) { debug.SetGCPercent(percent) }, usual)
}
