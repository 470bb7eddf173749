//go:build linux || darwin

package sdk_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// offlineVar leaves the tests out.
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
		fmt.Fprintf(os.Stderr, "test/sdk: left out, because %s=1: no official client was run\n", offlineVar)
		if err := flag.Set("test.run", "^$"); err != nil { // then go test says that no tests were run
			return complain(err)
		}
		return m.Run()
	}
	if err := watchSources(); err != nil {
		return complain(err)
	}
	if err := install(); err != nil {
		return complain(err)
	}
	dir, err := os.MkdirTemp("", "sluice-sdk-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	sluiceBinary = filepath.Join(dir, "sluice")
	build := exec.Command("go", "build", "-o", sluiceBinary, "../../cmd/sluice")
	if out, err := build.CombinedOutput(); err != nil {
		return complain(fmt.Errorf("sluice cannot be built: %w\n%s", err, out))
	}
	if err := widen(); err != nil {
		return complain(err)
	}
	return m.Run()
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

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "test/sdk:", err)
	return 1
}

// watchSources looks at every directory of the module, so that the go command runs the tests again when a file in one
// of them has changed: the binary is built from them behind its back.
func watchSources() error {
	return filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if name := d.Name(); err == nil && d.IsDir() && path != "../.." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin") {
			return fs.SkipDir
		}
		return err
	})
}
