//go:build linux || darwin

package clients_test

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
	dir, err := os.MkdirTemp("", "sluice-clients-")
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
	fmt.Fprintln(os.Stderr, "test/clients:", err)
	return 1
}

// watched looks at every file that the binary is built from and at the clients. What a test looks at is what makes the go
// command run it again instead of showing what it remembers.
var watched = sync.OnceValue(func() error {
	return filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != "../.." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "bin" || name == "__pycache__") {
				return fs.SkipDir
			}
			return nil
		}
		if client := strings.Contains(path, "clients"); client || strings.HasSuffix(name, ".go") {
			_, err = os.Stat(path)
		}
		return err
	})
})
