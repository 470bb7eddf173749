// Package built has the command built for tests that run it as users do.
package built

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

// root is where the module is, from a package in test.
var root = filepath.Join("..", "..")

// binaryVar names a command that is built already. make test builds one for all packages: linking takes seconds each time.
const binaryVar = "SLUICE_TEST_BINARY"

// Main runs the tests of a package in test and tells them where the command is. It returns the exit code.
func Main(m *testing.M, binary *string) int {
	remove, err := Command(binary)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer remove()
	return m.Run()
}

// Command builds the command, unless it is built already, and tells where it is. remove removes what was built.
func Command(binary *string) (remove func(), err error) {
	proctest.DefaultSignals()
	if *binary = os.Getenv(binaryVar); *binary != "" {
		return func() {}, nil
	}
	dir, err := os.MkdirTemp("", "sluice-built-")
	if err != nil {
		return nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) } // it is temporary
	*binary = filepath.Join(dir, "sluice")
	build := exec.Command("go", "build", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", *binary, "./cmd/sluice") // without what debuggers need it is linked sooner
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		remove()
		return nil, fmt.Errorf("sluice cannot be built: %w\n%s", err, out)
	}
	return remove, nil
}

// Watch looks at every file that the command is built from, and at those below some other directories. What a test looks at is what
// makes the go command run it again instead of showing what it remembers.
func Watch(also ...string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin" || name == "__pycache__") {
				return fs.SkipDir
			}
			return nil
		}
		wanted := strings.HasSuffix(name, ".go")
		for _, dir := range also {
			wanted = wanted || strings.HasPrefix(path, filepath.Join(root, dir))
		}
		if wanted {
			_, err = os.Stat(path)
		}
		return err
	})
}
