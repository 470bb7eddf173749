//go:build linux || darwin || windows

package filestore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/sluicehq/sluice/store"
	"github.com/sluicehq/sluice/store/filestore"
)

// The tests below need real processes: ones that can be killed. The test binary starts itself
// again; a variable in its environment says as what.

const roleVar = "SLUICE_FILESTORE_TEST_ROLE"

// roles are what such a process can be. Each gets its task as JSON, and ends the process.
var roles = map[string]func(task []byte){}

// role makes f what a process does that is started under a name.
func role[T any](name string, f func(task T)) struct{} {
	roles[name] = func(raw []byte) {
		var task T
		if err := json.Unmarshal(raw, &task); err != nil {
			giveUp("task of %s: %v", name, err)
		}
		f(task)
	}
	return struct{}{}
}

// TestChild is the entry point of processes that tests start. It does not return.
func TestChild(*testing.T) {
	name := os.Getenv(roleVar)
	if name == "" {
		return
	}
	go func() { // whoever started it has died
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(3)
	}()
	roles[name]([]byte(os.Getenv(roleVar + "_TASK")))
	os.Exit(0)
}

// giveUp ends a child that has found something wrong.
func giveUp(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
	os.Exit(2)
}

// say tells the test something, as a line of its own.
func say(format string, args ...any) { fmt.Printf("\x01"+format+"\n", args...) }

// child is a process that a test has started.
type child struct {
	t     testing.TB
	cmd   *exec.Cmd
	lines chan string // what it said
	errs  *bytes.Buffer
	stdin io.Closer
	done  chan struct{}
	once  sync.Once
}

// start starts the test binary in a role. The process is gone when the test is over.
func start(t testing.TB, name string, task any, change ...func(*exec.Cmd)) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, "-test.run=^TestChild$", "-test.timeout=5m")
	cmd.Env = append(os.Environ(), roleVar+"="+name, roleVar+"_TASK="+string(raw), "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = apart()
	c := &child{t: t, cmd: cmd, lines: make(chan string, 1024), errs: &bytes.Buffer{}, done: make(chan struct{})}
	cmd.Stderr = c.errs
	for _, f := range change {
		f(cmd)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.stdin = in
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(c.done)
		c.listen(out)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(c.kill)
	return c
}

// listen passes on what the process says, until it ends.
func (c *child) listen(out io.Reader) {
	defer close(c.lines)
	raw, rest := make([]byte, 64<<10), []byte(nil)
	for {
		n, err := out.Read(raw)
		rest = append(rest, raw[:n]...)
		for {
			line, after, ok := bytes.Cut(rest, []byte("\n"))
			if !ok {
				break
			}
			if said, ok := bytes.CutPrefix(line, []byte{1}); ok {
				c.lines <- string(said)
			}
			rest = after
		}
		if err != nil {
			return
		}
	}
}

// next returns what the process says next.
func (c *child) next() string {
	c.t.Helper()
	select {
	case s, ok := <-c.lines:
		if !ok {
			<-c.done
			c.t.Fatalf("the process ended without a word: %v\n%s", c.cmd.ProcessState, c.errs)
		}
		return s
	case <-time.After(patience):
		c.kill()
		c.t.Fatalf("the process says nothing\n%s", c.errs)
	}
	return ""
}

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

// kill ends the process and waits until it is gone.
func (c *child) kill() {
	c.once.Do(func() {
		c.killAll()
		go func() {
			for range c.lines { // nobody listens any more
			}
		}()
		<-c.done
		_ = c.stdin.Close()
	})
}

// wait waits until the process has ended by itself, and returns how.
func (c *child) wait() *os.ProcessState {
	c.t.Helper()
	go func() {
		for range c.lines {
		}
	}()
	select {
	case <-c.done:
	case <-time.After(patience):
		c.kill()
		c.t.Fatalf("the process does not end\n%s", c.errs)
	}
	c.kill()
	return c.cmd.ProcessState
}

// scaled scales the number of times that something is tried.
func scaled(t testing.TB, n int) int {
	t.Helper()
	if testing.Short() {
		n /= 10
	}
	if s := os.Getenv("SLUICE_TRACES"); s != "" {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatalf("SLUICE_TRACES: %v", err)
		}
		n = int(f * float64(n))
	}
	return max(n, 1)
}

// eventually waits until something is so.
func eventually(t testing.TB, within time.Duration, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(within); !so(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("after %v: not %s", within, what)
		}
	}
}

// inChild opens a pool in a process that has nobody to tell but its parent.
func inChild(dir string, spec store.Spec, opts ...filestore.Option) (*filestore.Store, store.Pool) {
	s, err := filestore.Open(dir, opts...)
	if err != nil {
		giveUp("open: %v", err)
	}
	p, err := s.Pool(context.Background(), spec)
	if err != nil {
		giveUp("pool: %v", err)
	}
	return s, p
}
