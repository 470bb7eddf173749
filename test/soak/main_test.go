//go:build linux || darwin

package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// sluiceBinary is what is served.
var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(prepared(m)) }

func prepared(m *testing.M) int {
	dir, err := os.MkdirTemp("", "sluice-soak-test-")
	if err != nil {
		return complain(err)
	}
	defer os.RemoveAll(dir)
	sluiceBinary = filepath.Join(dir, "sluice")
	build := exec.Command("go", "build", "-o", sluiceBinary, "../../cmd/sluice")
	if out, err := build.CombinedOutput(); err != nil {
		return complain(fmt.Errorf("sluice cannot be built: %w\n%s", err, out))
	}
	return m.Run()
}

func complain(err error) int {
	fmt.Fprintln(os.Stderr, "test/soak:", err)
	return 1
}

// watched looks at every file that the binary is built from. What a test looks at is what makes the go command run it again
// instead of showing what it remembers.
var watched = sync.OnceValue(func() error {
	return filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != "../.." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin") {
				return fs.SkipDir
			}
			return nil
		}
		if strings.HasSuffix(name, ".go") {
			_, err = os.Stat(path)
		}
		return err
	})
})
