//go:build linux || darwin

package sdk_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
)

// offlineVar leaves the tests out if it is 1.
const offlineVar = "SLUICE_OFFLINE"

// sluiceBinary is what is tested.
var sluiceBinary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(prepared(m))
}

// prepared runs the tests when all that they need is there.
func prepared(m *testing.M) int {
	if os.Getenv(offlineVar) == "1" {
		fmt.Printf("test/sdk: left out, because %s=1: no official client was run\n", offlineVar)
		fmt.Println("testing: warning: no tests to run") // go test says so then, even where it shows no output
		return only(m, "TestLeftOut")
	}
	if err := install(); err != nil {
		return complain(err)
	}
	remove, err := built.Command(&sluiceBinary)
	if err != nil {
		return complain(err)
	}
	defer remove()
	if err := widen(); err != nil {
		return complain(err)
	}
	return m.Run()
}

func only(m *testing.M, test string) int {
	if err := flag.Set("test.run", "^"+test+"$"); err != nil {
		return complain(err)
	}
	return m.Run()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "test/sdk:", err)
	return 1
}

// atOnce is how many tests run at the same time: they mostly wait for others, and for time to pass.
const atOnce = "6"

// widen lets so many run, unless the command line says how many.
func widen() error {
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if said {
		return nil
	}
	return flag.Set("test.parallel", atOnce)
}

// watched looks at what the outcome of the tests depends on behind the go command's back: the variable, and every directory that
// the binary is built from. What a test looks at, and TestMain alone does not, is what makes the go command run it again
// instead of showing what it remembers.
var watched = sync.OnceValue(func() error {
	_ = os.Getenv(offlineVar)
	return filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != "../.." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin") {
			return fs.SkipDir
		}
		return nil
	})
})

// TestLeftOut is all that runs without a network. It remembers by which variable.
func TestLeftOut(t *testing.T) {
	if err := watched(); err != nil {
		t.Fatal(err)
	}
}
