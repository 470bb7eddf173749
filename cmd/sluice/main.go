// Command sluice is one gate that all callers of a shared API quota pass through.
package main

import (
	"io"
	"log"
	"os"

	"github.com/sluicehq/sluice/internal/roots"
)

func main() {
	collectLate(os.Args[1:])
	// net/http prints bytes that an upstream sent unasked through the default logger. Nothing else here uses it.
	log.SetOutput(io.Discard)
	roots.Fallback(os.Getenv)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
