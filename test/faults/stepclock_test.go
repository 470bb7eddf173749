//go:build linux

package main

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A C program under the shim follows the clock: at once, in both directions, and as it drifts. Its monotonic clock stays.
func TestTheShimSetsTheClockOfAProgram(t *testing.T) {
	dir := t.TempDir()
	shim, err := buildShim(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	c, err := newStepClock(filepath.Join(dir, "clock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, d := range []time.Duration{0, 100 * time.Millisecond, time.Hour, -2 * time.Hour, time.Second} {
		c.step(d)
		cmd := exec.Command("date", "+%s%N")
		cmd.Env = append(os.Environ(), "LD_PRELOAD="+shim, c.env())
		before := time.Now().UnixNano()
		said, err := cmd.Output()
		after := time.Now().UnixNano()
		if err != nil {
			t.Fatal(err)
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(said)), 10, 64)
		if off := n - int64(c.ahead()); err != nil || off < before || off > after {
			t.Errorf("%v ahead: it says %d, between %d and %d", c.ahead(), n, before, after)
		}
	}
}

func TestADriftingClockKeepsWhatItHasGained(t *testing.T) {
	c, err := newStepClock(filepath.Join(t.TempDir(), "clock"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	c.put(time.Minute, 10_000)
	c.set[3].Store(int64(now()) - int64(100*time.Second)) // it drifts since then
	if got := c.ahead() - time.Minute; got < time.Second || got > time.Minute {
		t.Errorf("1%% of 100 s is %v", got)
	}
	c.drift(-10_000)
	if got := c.ahead(); got < time.Minute {
		t.Errorf("it has lost what it had: %v", got)
	}
}

func TestStepsAreOfAllSizes(t *testing.T) {
	r, small, large, back := rand.New(rand.NewPCG(1, 1)), 0, 0, 0
	for range 1000 {
		d := randomStep(r)
		if d.Abs() < 100*time.Millisecond || d.Abs() > time.Hour {
			t.Fatal(d)
		}
		if d < 0 {
			back++
		}
		if d.Abs() < 5*time.Second {
			small++
		} else if d.Abs() > 5*time.Minute {
			large++
		}
	}
	if small < 200 || large < 150 || back < 400 {
		t.Errorf("%d small, %d large, %d back", small, large, back)
	}
}
