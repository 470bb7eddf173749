//go:build unix

package redisrun

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
)

// process is one child process.
type process struct {
	pid    int
	handle *os.Process
	done   chan struct{}      // closed when it has ended and was reaped
	stops  chan struct{}      // holds a token after the process was seen to stop
	status syscall.WaitStatus // valid once done is closed
	lost   error              // why there is no status
}

// launch starts a program that writes to the log. env is added to its environment.
//
// Linux sends the signal of dieWithParent when the thread that started the child ends, not the process. So one
// goroutine keeps its thread until the child ends, and waits for it there.
func launch(path string, args []string, dir string, log *os.File, env []string) (*process, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	p := &process{done: make(chan struct{}), stops: make(chan struct{}, 1)}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		handle, err := os.StartProcess(path, append([]string{path}, args...), &os.ProcAttr{
			Dir:   dir,
			Env:   append(os.Environ(), env...),
			Files: []*os.File{null, log, log},
			Sys:   dieWithParent(),
		})
		if err != nil {
			started <- err
			return
		}
		p.pid, p.handle = handle.Pid, handle
		started <- nil
		p.wait()
		_ = handle.Release()
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// wait reaps the child, and reports each stop.
func (p *process) wait() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // other code reaped it
			p.lost = err
			return
		case status.Stopped():
			select {
			case p.stops <- struct{}{}:
			default:
			}
		case status.Exited(), status.Signaled():
			p.status = status
			return
		}
	}
}

// ended says how the process ended. Call it only after done is closed.
func (p *process) ended() string {
	switch {
	case p.lost != nil:
		return p.lost.Error()
	case p.status.Signaled():
		return "signal: " + p.status.Signal().String()
	case p.status.ExitStatus() != 0:
		return "exit status " + itoa(p.status.ExitStatus())
	default:
		return "without an error"
	}
}

// failed reports whether the process ended with an error. Call it only after done is closed.
func (p *process) failed() bool {
	return p.lost != nil || p.status.Signaled() || p.status.ExitStatus() != 0
}

func (p *process) kill() { _ = p.handle.Signal(syscall.SIGKILL) } // it may have just ended

// term asks the process to end. SIGCONT wakes a stopped process, which would not handle SIGTERM.
func (p *process) term() {
	_ = p.handle.Signal(syscall.SIGTERM)
	_ = p.handle.Signal(syscall.SIGCONT)
}

func (p *process) resume() error { return p.handle.Signal(syscall.SIGCONT) }

// pause stops the process and returns when it has stopped.
func (p *process) pause() error {
	select {
	case <-p.stops: // left from an earlier pause
	default:
	}
	if err := p.handle.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case <-p.stops:
		return nil
	case <-p.done:
		return errors.New("it ended")
	case <-timer.C:
		return errors.New("it goes on")
	}
}
