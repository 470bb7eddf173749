// Command sluice is one gate that all callers of a shared API quota pass through.
package main

import (
	"io"
	"log"
	"os"
)

func main() {
	// net/http prints bytes that an upstream sent unasked through the default logger. Nothing else here uses it.
	log.SetOutput(io.Discard)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
