package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestMain lets the test binary be one of the processes that share a file.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == roleChild {
		os.Exit(childMain(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// admitted returns how many of many concurrent calls pass.
func admitted(t *testing.T, callers, each int, open func() (take func() (bool, error), done func() error)) int {
	t.Helper()
	var passed atomic.Int64
	var all sync.WaitGroup
	for range callers {
		take, done := open()
		all.Go(func() {
			for range each {
				ok, err := take()
				if err != nil {
					t.Error(err)
					return
				}
				if ok {
					passed.Add(1)
				}
			}
			if err := done(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	return int(passed.Load())
}

func TestWindowHoldsItsLimit(t *testing.T) {
	for _, keep := range []bool{false, true} {
		dir := t.TempDir()
		at := time.Unix(1_000_000, 0)
		open := func() (func() (bool, error), func() error) {
			w, err := openWindow(dir, keep, 20, time.Minute, func([]time.Time) time.Time { return at })
			if err != nil {
				t.Fatal(err)
			}
			return w.take, w.close
		}
		if got := admitted(t, 4, 10, open); got != 20 {
			t.Errorf("kept open %v: %d let in, want 20", keep, got)
		}
		at = at.Add(time.Minute - 1)
		if got := admitted(t, 1, 1, open); got != 0 {
			t.Errorf("kept open %v: %d let in before the window is over", keep, got)
		}
		at = at.Add(1)
		if got := admitted(t, 4, 10, open); got != 20 {
			t.Errorf("kept open %v: %d let in by the next window, want 20", keep, got)
		}
	}
}

// The JSON window stays full in the benchmark, but accepts every call.
func TestWindowStaysFull(t *testing.T) {
	dir := t.TempDir()
	if err := prepareJSON(dir); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		text, err := os.ReadFile(filepath.Join(dir, "window.json"))
		if n := bytes.Count(text, []byte(",")) + 1; err != nil || n != jsonEntries {
			t.Fatalf("%d entries, want %d: %v", n, jsonEntries, err)
		}
		taker, err := openJSON(true)(dir)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := taker.take(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		if err := taker.done(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSQLiteBucketHoldsItsLimit(t *testing.T) {
	dir := t.TempDir()
	if err := prepareSQLite(dir, 20); err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1_000_000, 0)
	open := func() (func() (bool, error), func() error) {
		b, err := openSQLite(dir, 10, 20, func() time.Time { return at })
		if err != nil {
			t.Fatal(err)
		}
		return b.take, b.close
	}
	if got := admitted(t, 4, 10, open); got != 20 {
		t.Errorf("%d let in, want 20", got)
	}
	at = at.Add(time.Second / 2)
	if got := admitted(t, 4, 10, open); got != 5 {
		t.Errorf("%d let in after half a second at 10 a second, want 5", got)
	}
}

// Every contender works in separate processes and accepts every call.
func TestProcessesShareAFile(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, c := range fileContenders {
		results, err := runFile(t.Context(), c, 2, 2*time.Millisecond)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		row := judgeFile(results)
		if row.Failed != 0 || len(results) != 2 {
			t.Errorf("%s: %+v", c.name, results)
		}
	}
	empty(t)
}

// empty checks that nothing is left in the directory for temporary files.
func empty(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(os.TempDir())
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestChildThatFails(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	_, err := runFile(t.Context(), fileContender{name: "no such"}, 1, time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "no such") {
		t.Errorf("%v", err)
	}
	empty(t)
	for _, args := range [][]string{nil, {nameBare, t.TempDir(), "soon"}} {
		if err := child(args, strings.NewReader(""), io.Discard); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
}

// An interrupted run leaves no processes or directories behind.
func TestInterrupted(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	c := fileContenders[0]
	c.prepare = func(string) error { cancel(); return nil }
	if _, err := runFile(ctx, c, 2, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	empty(t)

	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	p := atWork(ctx, t)
	cancel()
	// Its input is open, so only the interrupt can have ended it.
	if err := p.cmd.Wait(); p.cmd.ProcessState.ExitCode() != -1 {
		t.Errorf("not killed: %v", err)
	}
}

// A process ends when its parent has been killed.
func TestOrphan(t *testing.T) {
	p := atWork(t.Context(), t)
	if p.wait(); p.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v", p.cmd.ProcessState)
	}
}

// atWork returns a process that has started and would run for an hour.
func atWork(ctx context.Context, t *testing.T) *fileChild {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := startChild(ctx, self, nameBare, t.TempDir(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if line, err := p.line(); line != childReady {
		t.Fatal(line, p.failed(err))
	}
	if _, err := fmt.Fprintln(p.in, int64(monotonic())); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestJudgeFile(t *testing.T) {
	row := judgeFile([]fileResult{
		{Asked: 100, Passed: 100, Timed: time.Second, Took: spread{slotOf(time.Microsecond): 100}},
		{Asked: 100, Passed: 50, Timed: time.Second / 2, Took: spread{slotOf(time.Millisecond): 4}},
	})
	if row.Rate != 200 || row.Failed != 0.25 || row.P50 < 0.98 || row.P50 > 1.02 || row.P99 < 980 || row.P99 > 1020 {
		t.Errorf("%+v", row)
	}
	if row.Least < 0.66 || row.Least > 0.67 {
		t.Errorf("50 of 75 is %v", row.Least)
	}
}

func TestFileRowsCompareWithTheBareLock(t *testing.T) {
	turn := func(n int, name string, rates ...float64) *fileTurn {
		x := &fileTurn{fileContender: fileContender{name: name}, processes: n}
		for _, r := range rates {
			x.seen = append(x.seen, FileRow{Rate: r, Least: r / 100})
		}
		return x
	}
	rows := fileRows([]*fileTurn{turn(1, nameBare, 90, 80, 100), turn(1, nameFileAcquire, 45), turn(8, nameBare, 60), turn(8, nameFileAcquire, 20, 30, 40)})
	if one, many := findFile(rows, 1, nameFileAcquire), findFile(rows, 8, nameFileAcquire); one.Ratio != 2 || many.Ratio != 2 || many.Worst != 0.2 || many.Least != 0.3 || many.Best != 40 {
		t.Errorf("%+v, %+v", one, many)
	}
	verdicts := map[string]bool{}
	for _, b := range fileBars(rows) {
		verdicts[b.What] = b.Pass
	}
	if len(verdicts) != 10 || !verdicts["file, 1 process: acquire, times the bare lock's cost"] || verdicts["file, 8 processes: acquire, least of the mean, worst round"] {
		t.Errorf("%v", verdicts)
	}
}

func TestNoBareLockIsNoPass(t *testing.T) {
	for _, b := range fileBars([]FileRow{{Processes: 1, Name: nameFileAcquire, Rate: 100}}) {
		if b.Pass {
			t.Errorf("%+v", b)
		}
	}
}

func TestSpread(t *testing.T) {
	for d := time.Duration(0); d < time.Minute; d += 1 + d/3 {
		if got := fromSlot(slotOf(d)); got < d-d/64 || got > d+d/64 {
			t.Errorf("%d comes back as %d", int64(d), int64(got))
		}
	}
	if got := (spread{}).quantile(0.5); got != 0 {
		t.Errorf("nothing has a median of %v", got)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	good := Options{Rounds: 1, Slice: 1, Wait: 1, File: 1, Processes: 8, Redis: 1, Proxy: 1, Crowd: 1000}
	if err := good.check(); err != nil || !good.has(partFile) {
		t.Error(err)
	}
	for _, bad := range []func(*Options){
		func(o *Options) { o.Rounds = 0 },
		func(o *Options) { o.File = 0 },
		func(o *Options) { o.Redis = 0 },
		func(o *Options) { o.Crowd = minCrowd - 1 },
		func(o *Options) { o.Crowd = maxCrowd + 1 },
		func(o *Options) { o.Processes = 0 },
		func(o *Options) { o.Processes = maxProcesses + 1 },
		func(o *Options) { o.Only = []string{"file", "disk"} },
	} {
		o := good
		bad(&o)
		if o.check() == nil {
			t.Errorf("%+v", o)
		}
	}
	good.Only = []string{partFile}
	if good.has(partAllow) {
		t.Error("only means only")
	}
}
