package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The processes that share a file run this program. A process prints "ready" when it has opened its contender, reads
// the start time, works for the duration on its command line, and prints its result.

const (
	roleChild   = "child" // first argument of such a process
	childReady  = "ready"
	fileWarmUp  = 30 * time.Millisecond
	startMargin = 5 * time.Millisecond // for all processes to read the start time
)

// fileResult is the result of one process.
type fileResult struct {
	Asked  int
	Passed int
	Timed  time.Duration // since the common start, without untimed parts
	Took   spread
}

// runFile runs processes at the same time for a while, in a new directory.
func runFile(outer context.Context, c fileContender, processes int, length time.Duration) (_ []fileResult, err error) {
	dir, err := os.MkdirTemp("", "sluice-bench-")
	if err != nil {
		return nil, err
	}
	defer func() {
		if outer.Err() != nil {
			err = outer.Err() // instead of the errors of killed processes
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}()
	if c.prepare != nil {
		if err := c.prepare(dir); err != nil {
			return nil, err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(outer)
	var children []*fileChild
	defer func() {
		cancel() // kills processes that still run, before the directory is removed
		for _, p := range children {
			p.wait()
		}
	}()
	for range processes {
		p, err := startChild(ctx, self, c.name, dir, length)
		if err != nil {
			return nil, err
		}
		children = append(children, p)
	}
	for _, p := range children {
		if line, err := p.line(); err != nil || line != childReady {
			return nil, p.failed(err)
		}
	}
	start := monotonic() + startMargin
	for _, p := range children {
		if _, err := fmt.Fprintln(p.in, int64(start)); err != nil {
			return nil, p.failed(err)
		}
	}
	results := make([]fileResult, len(children))
	for i, p := range children {
		line, err := p.line()
		if err == nil {
			err = json.Unmarshal([]byte(line), &results[i])
		}
		if err != nil {
			return nil, p.failed(err)
		}
	}
	return results, nil
}

// fileChild is a process, for its parent.
type fileChild struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer
}

func startChild(ctx context.Context, self, name, dir string, length time.Duration) (*fileChild, error) {
	p := &fileChild{cmd: exec.CommandContext(ctx, self, roleChild, name, dir, length.String())}
	p.cmd.Stderr = &p.err
	p.cmd.WaitDelay = time.Second
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(out)
	return p, p.cmd.Start()
}

func (p *fileChild) line() (string, error) {
	line, err := p.out.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

// failed waits for a process that did not work, and returns an error with its output.
func (p *fileChild) failed(err error) error {
	p.wait()
	return errors.Join(fmt.Errorf("process: %v: %s", p.cmd.ProcessState, bytes.TrimSpace(p.err.Bytes())), err)
}

func (p *fileChild) wait() {
	_ = p.in.Close() // makes it end
	_ = p.cmd.Wait() // a second call has no effect
}

// childMain is the main function of such a process.
func childMain(args []string) int {
	if err := child(args, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func child(args []string, in io.Reader, out io.Writer) (err error) {
	if len(args) != 3 {
		return fmt.Errorf("%s takes a contender, a directory and a time", roleChild)
	}
	at := slices.IndexFunc(fileContenders, func(c fileContender) bool { return c.name == args[0] })
	length, err := time.ParseDuration(args[2])
	if at < 0 || err != nil {
		return errors.Join(fmt.Errorf("contender %q for %q", args[0], args[2]), err)
	}
	c := fileContenders[at]
	t, err := c.open(args[1])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.done()) }()
	began := time.Now()
	if _, err := work(t, c.every, began, min(length, fileWarmUp)); err != nil {
		return err
	}
	runtime.GC()
	fmt.Fprintln(out, childReady)
	lines := bufio.NewReader(in)
	line, err := lines.ReadString('\n')
	if err != nil {
		return err
	}
	start, err := strconv.ParseInt(strings.TrimSuffix(line, "\n"), 10, 64)
	if err != nil {
		return err
	}
	done := make(chan struct{})
	defer close(done)
	go func() { // ends the process when its parent has died
		_, _ = io.Copy(io.Discard, lines)
		select {
		case <-done:
		default:
			os.Exit(1)
		}
	}()
	wait := time.Duration(start) - monotonic()
	began = time.Now().Add(wait)
	time.Sleep(wait)
	result, err := work(t, c.every, began, length)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(result)
}

// work takes until length has passed since began.
func work(t fileTaker, every int, began time.Time, length time.Duration) (fileResult, error) {
	r := fileResult{Took: spread{}}
	var untimed time.Duration
	one := func() error {
		ok, err := t.take()
		if err != nil {
			return err
		}
		r.Asked++
		if ok {
			r.Passed++
		}
		return nil
	}
	before := time.Since(began)
	for before < length {
		if err := one(); err != nil {
			return r, err
		}
		after := time.Since(began)
		r.Took.add(after - before)
		for range every - 1 {
			if err := one(); err != nil {
				return r, err
			}
		}
		before = time.Since(began)
		if t.rest == nil || r.Asked%fileBlock != 0 {
			continue
		}
		if err := t.rest(); err != nil {
			return r, err
		}
		after = before
		before = time.Since(began)
		untimed += before - after
	}
	r.Timed = before - untimed
	if t.rest != nil && r.Asked%fileBlock != 0 {
		return r, t.rest()
	}
	return r, nil
}

// monotonic returns the time of the system's monotonic clock, which all processes share and none can set.
func monotonic() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic("the system has no monotonic clock: " + err.Error())
	}
	return time.Duration(t.Nano())
}
