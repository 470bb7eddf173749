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

// Bounds for workers.
const (
	readyWithin = 2 * time.Minute  // starting may take a while on a busy machine
	endWithin   = 30 * time.Second // after the order to stop
	maxStderr   = 16 << 10
)

// fleet is the set of workers of a run.
type fleet struct {
	dir    string // directory of the run
	self   string // path of this program
	ledger *ledger
	seed   uint64

	mu    sync.Mutex
	procs []*process // including those that have ended
}

// post describes how to start a worker.
type post struct {
	url     string
	mode    string        // on_store_failure
	machine int           // workers of the same machine share a state directory
	program string        // "": this program
	wrap    []string      // words before the program on the command line
	env     []string      // added to this process's environment
	shift   time.Duration // shift of its monotonic clock
	wall    time.Duration // shift of its wall clock
	events  bool
	lease   time.Duration // 0: the default
}

// process is one worker.
type process struct {
	number int
	post   post
	cmd    *exec.Cmd
	in     io.WriteCloser
	began  stamp        // time before it was started
	ready  chan arrival // receives the time at which it was ready
	done   chan struct{}
	stderr tailBuffer
	err    error // how it ended; valid when done is closed

	mu     sync.Mutex
	killed stamp // when the campaign killed it; 0: not killed
}

// start starts a worker, which then waits for begin.
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

// all returns all workers, including those that have ended.
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

// arrival is when a worker reported that it is ready: said by its own clock, heard by ours.
type arrival struct{ said, heard stamp }

// off returns the least amount by which the worker's clock must be off. The worker reports after began and before the
// report is heard. So off returns 0 if the clocks agree, however long anything takes.
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

// begin tells the worker to start acquiring.
func (w *process) begin() error {
	_, err := io.WriteString(w.in, "\n")
	return err
}

// kill ends the worker like kill -9.
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

// stop tells all workers to end. It kills those that do not end in time, and returns an error for each that did not end
// cleanly.
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

// fault returns how a worker ended.
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

// cpu returns the processor time of all workers that have ended.
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

// tailBuffer keeps the last bytes that are written to it.
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
