package main

import (
	"context"
	_ "embed" // for the source of the shim
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// clockEnv names the file that sets the wall clock of a process: of C programs through the shim, of Go programs that
// were built with a changed time package.
const clockEnv = "SLUICE_FAULTS_CLOCK"

//go:embed shim/stepclock.c
var shimSource []byte

// buildShim compiles the shim.
func buildShim(ctx context.Context, dir string) (string, error) {
	source, shim := filepath.Join(dir, "stepclock.c"), filepath.Join(dir, "stepclock.so")
	if err := os.WriteFile(source, shimSource, 0o600); err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "cc", "-O2", "-shared", "-fPIC", "-o", shim, source).CombinedOutput(); err != nil {
		return "", fmt.Errorf("cc: %w: %s", err, oneLine(string(out)))
	}
	return shim, nil
}

// stepClock is a wall clock that can be set and made to drift. Processes that map its file follow it at once.
type stepClock struct {
	path string
	mem  []byte
	set  *[4]atomic.Int64 // see shim/stepclock.c
}

func newStepClock(path string) (*stepClock, error) {
	if err := os.WriteFile(path, make([]byte, 32), 0o600); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it stays mapped
	mem, err := unix.Mmap(int(file.Fd()), 0, 32, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, os.NewSyscallError("mmap", err)
	}
	return &stepClock{path: path, mem: mem, set: (*[4]atomic.Int64)(unsafe.Pointer(&mem[0]))}, nil
}

func (c *stepClock) close() error { return unix.Munmap(c.mem) }

func (c *stepClock) env() string { return clockEnv + "=" + c.path }

// ahead returns how far the clock is ahead now.
func (c *stepClock) ahead() time.Duration {
	return time.Duration(c.set[1].Load() + int64(now()-stamp(c.set[3].Load()))/1_000_000*c.set[2].Load())
}

// put makes the clock ahead by d from now on, with a drift in millionths.
func (c *stepClock) put(d time.Duration, drift int64) {
	c.set[0].Add(1)
	c.set[1].Store(int64(d))
	c.set[2].Store(drift)
	c.set[3].Store(int64(now()))
	c.set[0].Add(1)
}

// step sets the clock forward, or back if d is negative.
func (c *stepClock) step(d time.Duration) { c.put(c.ahead()+d, c.set[2].Load()) }

// drift makes the clock gain, or lose, so many millionths of the time.
func (c *stepClock) drift(millionths int64) { c.put(c.ahead(), millionths) }

// randomStep returns a step of 0.1 s to an hour, in either direction. Small ones are as likely as large ones.
func randomStep(r *rand.Rand) time.Duration {
	d := time.Duration(float64(100*time.Millisecond) * math.Pow(36_000, r.Float64()))
	if r.IntN(2) == 0 {
		return -d
	}
	return d
}
