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

// Systems do not give a process its own wall clock. So processes with a wrong clock run a program that was built with a
// changed time package. Its Now is off by the seconds in an environment variable, and by what a file says that others
// change (clockEnv). Only the wall clock changes: the monotonic part of a Go time stays right, as when the system clock
// is set.

const wallShiftEnv = "SLUICE_FAULTS_WALL_SHIFT"

// shiftSource is added to the time package, which cannot import strconv.
const shiftSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

// wallSeconds is by how many seconds the wall clock is off from the start.
var wallSeconds = func() (n int64) {
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

// wallSet is the file of a stepClock; nil: there is none.
var wallSet = func() *[4]atomic.Int64 {
	path, ok := syscall.Getenv("` + clockEnv + `")
	if !ok {
		return nil
	}
	fd, err := syscall.Open(path, syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		panic("the clock " + path + " cannot be read")
	}
	mem, err := syscall.Mmap(fd, 0, 32, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("the clock " + path + " cannot be mapped")
	}
	syscall.Close(fd)
	return (*[4]atomic.Int64)(unsafe.Pointer(&mem[0]))
}()

func wallShift(sec int64, nsec int32) (int64, int32) {
	sec += wallSeconds
	if wallSet == nil {
		return sec, nsec
	}
	for {
		count, ahead, drift, since := wallSet[0].Load(), wallSet[1].Load(), wallSet[2].Load(), wallSet[3].Load()
		if count%2 != 0 || count != wallSet[0].Load() {
			continue
		}
		if drift != 0 {
			ahead += (runtimeNano() - since) / 1000000 * drift
		}
		ahead += int64(nsec)
		sec += ahead / 1e9
		if ahead %= 1e9; ahead < 0 {
			sec, ahead = sec-1, ahead+1e9
		}
		return sec, int32(ahead)
	}
}
`

// shifted returns the source of the time package's Now with the shift.
func shifted(source string) (string, error) {
	const head, reads = "\nfunc Now() Time {\n", "\tsec, nsec, mono := runtimeNow()\n"
	before, after, ok := strings.Cut(source, head+reads)
	if !ok {
		return "", errors.New("time.Now of this version of Go is not as expected: its wall clock cannot be made wrong")
	}
	return before + head + reads + "\tsec, nsec = wallShift(sec, nsec)\n" + after, nil
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
	overlay, err := writeOverlay(ctx, dir)
	if err != nil {
		return "", err
	}
	program := filepath.Join(dir, "shifted")
	return program, goBuild(ctx, "", "-overlay", overlay, "-o", program, ".")
}

// writeOverlay writes the changed time package, and the file that tells go build to use it.
func writeOverlay(ctx context.Context, dir string) (string, error) {
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
	file := filepath.Join(dir, "overlay.json")
	return file, os.WriteFile(file, overlay, 0o600)
}

// buildCLI builds the sluice command. more are further arguments of go build.
func buildCLI(ctx context.Context, dir string, more ...string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sluicehq/sluice").Output()
	if err != nil {
		return "", fmt.Errorf("find the module of sluice (run this in test/faults): %w", err)
	}
	program := filepath.Join(dir, "sluice")
	return program, goBuild(ctx, strings.TrimSpace(string(root)), append(more, "-tags=grpcnotrace", "-o", program, "./cmd/sluice")...)
}

// buildClocked builds the sluice command with a wall clock that can be set.
func buildClocked(ctx context.Context, dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	overlay, err := writeOverlay(ctx, dir)
	if err != nil {
		return "", err
	}
	return buildCLI(ctx, dir, "-overlay", overlay)
}

func goBuild(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w: %s", err, oneLine(string(out)))
	}
	return nil
}
