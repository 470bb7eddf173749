package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	againAfter    = 200 * time.Millisecond // a process that has ended is started again
	termWithin    = 30 * time.Second       // a process has so long to end when it is asked to
	chaosDrain    = "3s"
	maxStarts     = 200 // of one process, in a run
	exitNoStore   = 69
	exitBadConfig = 78
)

// daemonProcess is a sluice serve that is started again whenever it ends, as a service is.
type daemonProcess struct {
	name   string
	listen string // unix:PATH or HOST:PORT
	config string
	env    []string
	base   string // of its URLs
	client *http.Client
	broke  func(format string, args ...any)

	wake    chan struct{}
	stopped chan struct{} // the supervisor has ended

	mu      sync.Mutex
	program string
	cmd     *exec.Cmd     // nil: it does not run
	done    chan struct{} // of cmd
	said    *tailBuffer
	asked   bool      // to end, or it may for want of memory
	until   time.Time // it is not started before
	closing bool
	starts  int
}

func newDaemonProcess(name, program, listen, config string, env []string, broke func(string, ...any)) *daemonProcess {
	d := &daemonProcess{name: name, program: program, listen: listen, config: config, env: env, broke: broke, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	if d.base = "http://" + listen; strings.HasPrefix(listen, "unix:") {
		d.base = "http://gate" // any name is right on a socket
	}
	d.client = &http.Client{Timeout: 8 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 32, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var dialer net.Dialer
		if path, ok := strings.CutPrefix(listen, "unix:"); ok {
			return dialer.DialContext(ctx, "unix", path)
		}
		return dialer.DialContext(ctx, "tcp", listen)
	}}}
	go d.supervise()
	return d
}

// supervise keeps the process running.
func (d *daemonProcess) supervise() {
	defer close(d.stopped)
	for {
		d.mu.Lock()
		closing, wait := d.closing, time.Until(d.until)
		d.mu.Unlock()
		if closing {
			return
		}
		if wait > 0 {
			select {
			case <-time.After(wait):
			case <-d.wake:
			}
			continue
		}
		if err := d.start(); err != nil {
			d.broke("%s: %v", d.name, err)
			return
		}
		<-d.done
		d.ended()
	}
}

func (d *daemonProcess) start() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.starts++; d.starts > maxStarts {
		return fmt.Errorf("it was started %d times: %s", maxStarts, oneLine(d.said.String()))
	}
	d.said, d.done, d.asked = &tailBuffer{}, make(chan struct{}), false
	cmd := exec.Command(d.program, "serve", "--config", d.config, "--listen", d.listen, "--drain", chaosDrain)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = d.env, d.said, d.said, termWithin
	cmd.SysProcAttr = dieWithUs()
	if err := cmd.Start(); err != nil {
		return err
	}
	d.cmd = cmd
	go func() {
		_ = cmd.Wait() // ended looks how
		close(d.done)
	}()
	return nil
}

// ended looks how the process has ended, and has it started again in a moment.
func (d *daemonProcess) ended() {
	d.mu.Lock()
	defer d.mu.Unlock()
	state, said := d.cmd.ProcessState, d.said.String()
	d.cmd = nil
	if earliest := time.Now().Add(againAfter); d.until.Before(earliest) {
		d.until = earliest
	}
	status, _ := state.Sys().(syscall.WaitStatus)
	code := state.ExitCode()
	switch {
	case d.asked || code == exitNoStore || code == exitBadConfig || code == 0:
	case status.Signaled() && status.Signal() == syscall.SIGHUP: // it had only just begun
	default:
		d.broke("%s ended by itself: %v: %s", d.name, state, oneLine(said))
	}
}

// pid is the process's number now, 0 if it does not run.
func (d *daemonProcess) pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return 0
	}
	return d.cmd.Process.Pid
}

// mayEnd says that the process that runs now may end without a word.
func (d *daemonProcess) mayEnd() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = true
}

// signal sends a signal to the process, if it runs.
func (d *daemonProcess) signal(s syscall.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd != nil {
		_ = d.cmd.Process.Signal(s) // it may have ended just now
	}
}

// replace ends the process with a signal, and has a program started in its place, after a time. "" is the same program.
func (d *daemonProcess) replace(program string, s syscall.Signal, after time.Duration) error {
	d.mu.Lock()
	if program != "" {
		d.program = program
	}
	d.until = time.Now().Add(after)
	done := d.done
	if d.cmd == nil {
		d.mu.Unlock()
		return nil
	}
	d.asked = true
	_ = d.cmd.Process.Signal(s) // it may have ended just now
	d.mu.Unlock()
	if s == syscall.SIGTERM {
		select {
		case <-done:
		case <-time.After(termWithin):
			return fmt.Errorf("%s did not end within %v after SIGTERM", d.name, termWithin)
		}
	}
	return nil
}

// stop ends the process and its supervisor, and returns what is wrong with that.
func (d *daemonProcess) stop() error {
	d.mu.Lock()
	d.closing = true
	cmd, done, said := d.cmd, d.done, d.said
	d.asked = true
	d.mu.Unlock()
	select {
	case d.wake <- struct{}{}:
	default:
	}
	var err error
	if cmd != nil {
		_ = cmd.Process.Signal(syscall.SIGCONT) // in case the run was broken off
		_ = cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-done:
			if code := cmd.ProcessState.ExitCode(); code != 0 {
				err = fmt.Errorf("%s: exit code %d at the end: %s", d.name, code, oneLine(said.String()))
			}
		case <-time.After(termWithin):
			_ = cmd.Process.Kill()
			err = fmt.Errorf("%s did not end within %v after SIGTERM: %s", d.name, termWithin, oneLine(said.String()))
		}
	}
	<-d.stopped
	d.client.CloseIdleConnections()
	return err
}

// describe says how the process is, for people.
func (d *daemonProcess) describe() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	said := ""
	if d.said != nil {
		said = d.said.String()
	}
	return fmt.Sprintf("%s: %s, runs %v, started %d times, says: %s", d.name, filepath.Base(d.program), d.cmd != nil, d.starts, said[max(0, len(said)-1500):])
}

// ready reports whether the gate takes requests.
func (d *daemonProcess) ready() bool {
	resp, err := d.client.Get(d.base + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// reload has the process read its configuration now.
func (d *daemonProcess) reload() error {
	resp, err := d.client.Post(d.base+"/-/reload", "application/json", http.NoBody)
	if err != nil {
		return err
	}
	said, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, oneLine(string(said)))
	}
	return err
}

// descriptors are how many files the process has open; -1 if that cannot be told.
func (d *daemonProcess) descriptors() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.pid()))
	if err != nil {
		return -1
	}
	return len(entries)
}
