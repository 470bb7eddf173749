package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"
)

// Bounds on what workers may take.
const (
	readyWithin = 2 * time.Minute  // a busy machine may take a while to start them
	endWithin   = 30 * time.Second // after they were told to stop
	maxStderr   = 16 << 10
)

// fleet is all workers of a run.
type fleet struct {
	dir    string // of the run
	self   string // this program
	ledger *ledger
	seed   uint64

	mu    sync.Mutex
	procs []*process // also those that have ended
}

// post says how a worker is started.
type post struct {
	url     string
	mode    string        // what to do without the store
	machine int           // workers of one machine share a state directory
	program string        // "": this one
	wrap    []string      // what comes before the program on the command line
	env     []string      // on top of ours
	shift   time.Duration // of the process's monotonic clock
	wall    time.Duration // and of its wall clock
	events  bool
	lease   time.Duration // 0: the usual
}

// process is one worker.
type process struct {
	number int
	post   post
	cmd    *exec.Cmd
	in     io.WriteCloser
	began  stamp        // before it was started
	ready  chan arrival // when it was
	done   chan struct{}
	stderr tailBuffer
	err    error // how it ended, when done

	mu     sync.Mutex
	killed stamp // when it was killed by the campaign; 0: it was not
}

// start starts a worker. It waits for the word to begin.
func (f *fleet) start(p post) (*process, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	w := &process{number: len(f.procs), post: p, ready: make(chan arrival, 1), done: make(chan struct{})}
	program := p.program
	if program == "" {
		program = f.self
	}
	args := append(append([]string{}, p.wrap...), program, roleWorker, "-url", p.url, "-name", fmt.Sprintf("w%d", w.number),
		"-seed", fmt.Sprint(f.seed+uint64(w.number)), "-shift", p.shift.String(), "-wall", p.wall.String())
	if p.mode != "" {
		args = append(args, "-mode", p.mode)
	}
	if p.lease != 0 {
		args = append(args, "-lease", p.lease.String())
	}
	if p.events {
		args = append(args, "-events")
	}
	w.cmd = exec.Command(args[0], args[1:]...)
	w.cmd.Env = append(append(os.Environ(), "XDG_STATE_HOME="+f.stateHome(p.machine)), p.env...)
	w.cmd.Stderr = &w.stderr
	w.cmd.WaitDelay = endWithin
	in, err := w.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	w.in = in
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	w.began = now()
	if err := w.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a worker: %w", err)
	}
	f.procs = append(f.procs, w)
	go func() {
		f.ledger.read(w.number, out, func(at stamp) { w.ready <- arrival{said: at, heard: now()} })
		w.err = w.cmd.Wait()
		close(w.done)
	}()
	return w, nil
}

func (f *fleet) stateHome(machine int) string {
	return filepath.Join(f.dir, fmt.Sprintf("machine-%d", machine))
}

// all returns the workers, also those that have ended.
func (f *fleet) all() []*process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]*process(nil), f.procs...)
}

// alive returns the workers that have not been killed.
func (f *fleet) alive() []*process {
	var list []*process
	for _, w := range f.all() {
		if w.killedAt() == 0 {
			list = append(list, w)
		}
	}
	return list
}

// arrival is the moment at which a worker said that it is ready, by its clock, and at which that was heard, by ours.
type arrival struct{ said, heard stamp }

// off returns by how much the worker's clock is off at least: it said so after it began, and before it was heard. However long
// anything took, this is 0 if the clocks agree.
func (a arrival) off(began stamp) time.Duration {
	switch {
	case a.said < began:
		return a.said.sub(began)
	case a.said > a.heard:
		return a.said.sub(a.heard)
	default:
		return 0
	}
}

// awaitReady waits until the worker has opened its gate.
func (w *process) awaitReady(ctx context.Context) error {
	timer := time.NewTimer(readyWithin)
	defer timer.Stop()
	select {
	case a := <-w.ready:
		if off := a.off(w.began); off != 0 {
			return fmt.Errorf("worker %d: its stamps are off by at least %v", w.number, off)
		}
		return nil
	case <-w.done:
		return fmt.Errorf("worker %d ended before it was ready: %w", w.number, w.fault())
	case <-timer.C:
		return fmt.Errorf("worker %d was not ready after %v", w.number, readyWithin)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// begin lets the worker ask.
func (w *process) begin() error {
	_, err := io.WriteString(w.in, "\n")
	return err
}

// kill ends the worker as kill -9 does.
func (w *process) kill() {
	w.mu.Lock()
	if w.killed == 0 {
		w.killed = now()
	}
	w.mu.Unlock()
	_ = w.cmd.Process.Kill() // it may have ended just now
	<-w.done
	_ = w.in.Close()
}

func (w *process) killedAt() stamp {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.killed
}

// stop tells every worker to end, and returns what went wrong with those that do not do so in order. None is
// left running.
func (f *fleet) stop() (errs []error) {
	for _, w := range f.alive() {
		_ = w.in.Close()
	}
	timer := time.NewTimer(endWithin)
	defer timer.Stop()
	late := false
	for _, w := range f.alive() {
		if !late {
			select {
			case <-w.done:
			case <-timer.C:
				late = true
			}
		}
		select {
		case <-w.done:
			if w.err != nil {
				errs = append(errs, fmt.Errorf("worker %d: %w", w.number, w.fault()))
			}
		default:
			errs = append(errs, fmt.Errorf("worker %d did not end within %v after it was told to", w.number, endWithin))
			w.kill()
		}
	}
	return errs
}

// fault says how a worker ended.
func (w *process) fault() error {
	if said := w.stderr.String(); said != "" {
		return fmt.Errorf("%w: %s", orEnded(w.err), oneLine(said))
	}
	return orEnded(w.err)
}

func orEnded(err error) error {
	if err == nil {
		return errors.New("it ended")
	}
	return err
}

// cpu is the processor time that all workers took that have ended.
func (f *fleet) cpu() (total time.Duration) {
	for _, w := range f.all() {
		select {
		case <-w.done:
			if s := w.cmd.ProcessState; s != nil {
				total += s.UserTime() + s.SystemTime()
			}
		default:
		}
	}
	return total
}

// tailBuffer keeps the end of what is written to it.
type tailBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (t *tailBuffer) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if over := len(t.b) - maxStderr; over > 0 {
		t.b = bytes.Clone(t.b[over:])
	}
	return len(p), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}
