package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Systems do not give a process its own wall clock. So workers with a wrong clock run this program, rebuilt with a
// changed time package. Its Now is off by the value of an environment variable. Only the wall clock changes: the
// monotonic part of a Go time stays right, as when the system clock is set.

const wallShiftEnv = "SLUICE_FAULTS_WALL_SHIFT"

// shiftSource is added to the time package, which cannot import strconv.
const shiftSource = `package time

import "syscall"

// wallShift is by how many seconds the wall clock is off.
var wallShift = func() (n int64) {
	text, _ := syscall.Getenv("` + wallShiftEnv + `")
	negative := len(text) > 0 && text[0] == '-'
	if negative {
		text = text[1:]
	}
	for i := 0; i < len(text); i++ {
		n = n*10 + int64(text[i]-'0')
	}
	if negative {
		return -n
	}
	return n
}()
`

// shifted returns the source of the time package's Now with the shift.
func shifted(source string) (string, error) {
	const head, reads = "\nfunc Now() Time {\n", "\tsec, nsec, mono := runtimeNow()\n"
	before, after, ok := strings.Cut(source, head+reads)
	if !ok {
		return "", errors.New("time.Now of this version of Go is not as expected: its wall clock cannot be made wrong")
	}
	return before + head + reads + "\tsec += wallShift\n" + after, nil
}

// timePackage returns the directory of the time package of the Go in use.
func timePackage(ctx context.Context) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "src", "time"), nil
}

// buildShifted builds this program with a wall clock that can be wrong.
func buildShifted(ctx context.Context, dir string) (string, error) {
	pkg, err := timePackage(ctx)
	if err != nil {
		return "", err
	}
	source, err := os.ReadFile(filepath.Join(pkg, "time.go"))
	if err != nil {
		return "", err
	}
	text, err := shifted(string(source))
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range map[string]string{"time.go": text, "zshift.go": shiftSource} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(pkg, name)] = path
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	file, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "shifted")
	if err := os.WriteFile(file, overlay, 0o600); err != nil {
		return "", err
	}
	return program, goBuild(ctx, "", "-overlay", file, "-o", program, ".")
}

// buildCLI builds the sluice command.
func buildCLI(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sluicehq/sluice").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of sluice (run this in test/faults): %w", err)
	}
	program := filepath.Join(dir, "sluice")
	return program, goBuild(ctx, strings.TrimSpace(string(root)), "-o", program, "./cmd/sluice")
}

func goBuild(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, oneLine(string(out)))
	}
	return nil
}
