//go:build linux || darwin

package fleet_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one that a test has started.
type process struct {
	t     testing.TB
	task  task
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string   // what it said
	done  chan struct{} // closed: it has ended
	errs  bytes.Buffer  // to be read after that
	once  sync.Once
}

// start starts a process. It is gone when the test is over.
func start(t testing.TB, k task) *process {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, task: k, cmd: exec.Command(exe), lines: make(chan string, 8), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), taskVar+"="+string(text), "GORACE=atexit_sleep_ms=0")
	p.cmd.Stderr = &p.errs
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.listen(out)
		_ = p.cmd.Wait() // how it ended is in ProcessState
	}()
	t.Cleanup(p.end)
	return p
}

// listen passes on what the process says, until it ends.
func (p *process) listen(out io.Reader) {
	defer close(p.lines)
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		p.lines <- line[:len(line)-1]
	}
}

// next returns what the process says next.
func (p *process) next() string {
	p.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case s, ok := <-p.lines:
		if !ok {
			<-p.done
			p.t.Fatalf("process %s ended without a word: %v\n%s", p.task.Name, p.cmd.ProcessState, &p.errs)
		}
		return s
	case <-timer.C:
		p.dump()
		p.t.Fatalf("process %s says nothing\n%s", p.task.Name, &p.errs)
	}
	return ""
}

// expect waits until the process says a certain word.
func (p *process) expect(word string) {
	p.t.Helper()
	if s := p.next(); s != word {
		p.t.Fatalf("process %s says %.300q, not %q", p.task.Name, s, word)
	}
}

// begin lets the process begin.
func (p *process) begin() {
	p.t.Helper()
	if _, err := p.in.Write([]byte{'\n'}); err != nil {
		p.t.Fatalf("process %s: %v", p.task.Name, err)
	}
}

// stop tells the process to come to an end. Its outcome is next.
func (p *process) stop() {
	if err := p.in.Close(); err != nil && !errors.Is(err, os.ErrClosed) {
		p.t.Errorf("process %s: %v", p.task.Name, err)
	}
}

// outcome waits for what a stopped process has to tell, and until it is gone.
func (p *process) outcome() (o outcome) {
	p.t.Helper()
	text := p.next()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		p.t.Fatalf("process %s says %.300q: %v", p.task.Name, text, err)
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.t.Errorf("process %s does not end", p.task.Name)
		p.end()
	}
	if !p.cmd.ProcessState.Success() {
		p.t.Errorf("process %s: %v\n%s", p.task.Name, p.cmd.ProcessState, &p.errs)
	}
	return o
}

// dump ends the process, and has it tell first what its goroutines do.
func (p *process) dump() {
	_ = p.cmd.Process.Signal(syscall.SIGQUIT) // it may have gone by itself
	timer := time.NewTimer(5 * time.Second)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
	}
	p.end()
}

// end ends the process if it lives, and waits until it is gone.
func (p *process) end() {
	p.once.Do(func() {
		_ = p.in.Close()
		_ = p.cmd.Process.Kill() // it may have gone by itself
		for range p.lines {
		}
		<-p.done
	})
}
