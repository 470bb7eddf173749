// Command sluice is one gate that all callers of a shared API quota pass through.
package main

import "os"

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}
