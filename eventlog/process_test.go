package eventlog

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

const (
	childEvents = 300
	childFile   = 60_000 // bytes: all children together fill some of them, and none is rotated away
)

// child writes a number of events, or endlessly if it is to be killed.
func child(dir string) {
	agent, endless := os.Getenv("EVENTLOG_TEST_AGENT"), os.Getenv("EVENTLOG_TEST_ENDLESS") != ""
	f := newFiles(dir)
	f.max = childFile
	for n := 0; endless || n < childEvents; n++ {
		if err := f.append(line(send(agent, n))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if n == 50 {
			fmt.Println("begun")
		}
	}
}

func start1(t *testing.T, dir, agent string, endless bool) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "EVENTLOG_TEST_CHILD="+dir, "EVENTLOG_TEST_AGENT="+agent)
	if endless {
		cmd.Env = append(cmd.Env, "EVENTLOG_TEST_ENDLESS=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, proctest.Reader(out)
}

// Processes that write and rotate at the same time lose nothing and tear no line.
func TestManyProcesses(t *testing.T) {
	dir := t.TempDir()
	const processes = 6
	var running []*exec.Cmd
	for i := range processes {
		cmd, _ := start1(t, dir, fmt.Sprint("a", i), false)
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := proctest.Wait(cmd); err != nil {
			t.Error(err)
		}
	}
	newCollector(dir).check(t, processes, childEvents)
}

// A process killed while it writes and rotates leaves a log that others can write and read.
func TestKilledProcess(t *testing.T) {
	dir := t.TempDir()
	for i := range 5 {
		cmd, out := start1(t, dir, fmt.Sprint("a", i), true)
		if text, err := out.ReadString('\n'); err != nil || strings.TrimSpace(text) != "begun" {
			t.Fatalf("it said %q, %v", text, err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = proctest.Wait(cmd) // it was killed
		w := small(dir, childFile)
		w.Add(send("survivor", i))
		shut(t, w)
		got, garbage := all(t, dir)
		if last := got[len(got)-1]; last.Agent != "survivor" || garbage > i+1 {
			t.Fatalf("the last is %+v, and %d lines are garbage", last, garbage)
		}
	}
}
