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
	againAfter    = 200 * time.Millisecond // delay before an ended process is started again
	termWithin    = 30 * time.Second       // time for a process to end after SIGTERM
	chaosDrain    = "3s"
	maxStarts     = 200 // of one process in a run
	exitNoStore   = 69
	exitBadConfig = 78
)

// daemonProcess is a sluice serve that is restarted whenever it ends, as a service manager would.
type daemonProcess struct {
	name   string
	listen string // unix:PATH or HOST:PORT
	config string
	env    []string
	base   string // prefix of its URLs
	client *http.Client
	broke  func(format string, args ...any)

	wake    chan struct{}
	stopped chan struct{} // closed when the supervisor has ended

	mu      sync.Mutex
	program string
	cmd     *exec.Cmd     // nil: not running
	done    chan struct{} // closed when cmd has ended
	said    *tailBuffer
	asked   bool      // it was told to end, or may crash for lack of memory
	until   time.Time // not started before this time
	closing bool
	starts  int
}

func newDaemonProcess(name, program, listen, config string, env []string, broke func(string, ...any)) *daemonProcess {
	d := &daemonProcess{name: name, program: program, listen: listen, config: config, env: env, broke: broke, wake: make(chan struct{}, 1), stopped: make(chan struct{})}
	if d.base = "http://" + listen; strings.HasPrefix(listen, "unix:") {
		d.base = "http://gate" // any host name works on a socket
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

// supervise keeps the process running until stop is called.
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
		_ = cmd.Wait() // ended checks the result
		close(d.done)
	}()
	return nil
}

// ended checks how the process has ended, and schedules its restart.
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
	case status.Signaled() && status.Signal() == syscall.SIGHUP: // killed before it could handle SIGHUP
	default:
		d.broke("%s ended by itself: %v: %s", d.name, state, oneLine(said))
	}
}

// pid returns the process's current id, or 0 if it does not run.
func (d *daemonProcess) pid() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd == nil {
		return 0
	}
	return d.cmd.Process.Pid
}

// mayEnd allows the running process to crash.
func (d *daemonProcess) mayEnd() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = true
}

// signal sends a signal to the process if it runs.
func (d *daemonProcess) signal(s syscall.Signal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cmd != nil {
		_ = d.cmd.Process.Signal(s) // it may have ended just now
	}
}

// replace ends the process with a signal and lets the supervisor start program after the given time. An empty program
// means the same one as before.
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

// stop ends the process and its supervisor. It returns an error if the process does not end cleanly.
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
		_ = cmd.Process.Signal(syscall.SIGCONT) // it may still be stopped if the run was interrupted
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

// describe returns the state of the process, for people.
func (d *daemonProcess) describe() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	said := ""
	if d.said != nil {
		said = d.said.String()
	}
	return fmt.Sprintf("%s: %s, runs %v, started %d times, says: %s", d.name, filepath.Base(d.program), d.cmd != nil, d.starts, said[max(0, len(said)-1500):])
}

// ready reports whether the gate accepts requests.
func (d *daemonProcess) ready() bool {
	resp, err := d.client.Get(d.base + "/readyz")
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// reload makes the process load its configuration now.
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

// descriptors returns the number of files that the process has open, or -1 if it is unknown.
func (d *daemonProcess) descriptors() int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", d.pid()))
	if err != nil {
		return -1
	}
	return len(entries)
}
