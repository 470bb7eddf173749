// Command sluice is one gate that all callers of a shared API quota pass through.
package main

import (
	"io"
	"log"
	"os"

	_ "golang.org/x/crypto/x509roots/fallback" // roots for machines without any, such as an image from scratch
)

func main() {
	// net/http prints bytes that an upstream sent unasked through the default logger. Nothing else here uses it.
	log.SetOutput(io.Discard)
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
