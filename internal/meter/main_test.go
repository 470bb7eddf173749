package meter

import (
	"flag"
	"os"
	"testing"
)

// Runs are short and corner cases are many, so check more of them than rapid does by default. The command line can
// override the number.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}
