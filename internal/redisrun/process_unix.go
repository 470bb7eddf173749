//go:build unix

package redisrun

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"time"
)

// process is one child.
type process struct {
	pid    int
	handle *os.Process
	done   chan struct{}      // closed when it has ended and was collected
	stops  chan struct{}      // holds a token after it was seen to stand still
	status syscall.WaitStatus // valid once done is closed
	lost   error              // why there is no status
}

// launch starts a program that writes to the log.
//
// Linux sends the signal of dieWithParent when the thread that started the child ends,
// not the process. So one goroutine keeps its thread from the start of the child to
// its end, and waits for it there.
func launch(path string, args []string, dir string, log *os.File) (*process, error) {
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

// wait collects the child, and tells of each stop.
func (p *process) wait() {
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(p.pid, &status, syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // somebody else collected it
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

// ended says how the process ended. Call it after done was closed.
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

// failed says whether it ended with an error. Call it after done was closed.
func (p *process) failed() bool {
	return p.lost != nil || p.status.Signaled() || p.status.ExitStatus() != 0
}

func (p *process) kill() { _ = p.handle.Signal(syscall.SIGKILL) } // it may have ended just now

// term asks it to end; a stopped process cannot hear that.
func (p *process) term() {
	_ = p.handle.Signal(syscall.SIGTERM)
	_ = p.handle.Signal(syscall.SIGCONT)
}

func (p *process) resume() error { return p.handle.Signal(syscall.SIGCONT) }

// pause returns when the process stands still.
func (p *process) pause() error {
	select {
	case <-p.stops: // left from an earlier time
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
