//go:build slow && linux

package hosts

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// stopWithin is how long a process may take to end after SIGTERM.
const stopWithin = 30 * time.Second

// process is a program that runs on a host. It ends with the test, even if the test is killed.
type process struct {
	name string
	cmd  *exec.Cmd
	said tail
	done chan struct{} // closed when it has ended
}

// start starts a program in a namespace, in its own directory. It keeps the end of its output.
func (p *place) start(name, dir string, env []string, program string, args ...string) *process {
	p.net.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.net.Fatal(err)
	}
	r := &process{name: p.name + " " + name, cmd: exec.Command(program, args...), done: make(chan struct{})}
	r.cmd.Dir, r.cmd.Env = dir, env
	r.cmd.Stdout, r.cmd.Stderr = &r.said, &r.said
	// The death signal comes when the thread that started the process ends. So that thread waits for the process.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	r.cmd.WaitDelay = stopWithin
	started := make(chan error, 1)
	go func() {
		defer close(r.done)
		err := p.inside(func() error {
			err := r.cmd.Start()
			started <- err
			if err == nil {
				_ = r.cmd.Wait() // callers check how it ended
			}
			return nil
		})
		if err != nil {
			started <- err
		}
	}()
	if err := <-started; err != nil {
		p.net.Fatalf("%s: %v", r.name, err)
	}
	return r
}

// kill ends the process and its children at once, as a power failure does.
func (r *process) kill() {
	if !r.over() {
		_ = syscall.Kill(-r.cmd.Process.Pid, syscall.SIGKILL) // it may have ended just now
	}
	<-r.done
}

// stop asks the process to end and reports whether it did in time.
func (r *process) stop() bool {
	if r.over() {
		return true
	}
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended just now
	select {
	case <-r.done:
		return true
	case <-time.After(stopWithin):
		r.kill()
		return false
	}
}

func (r *process) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// tail keeps the last bytes of a process's output.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const most = 1 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - most; extra > 0 {
		t.text = t.text[extra:]
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.TrimSpace(t.text))
}

// environment returns the environment of programs on a host whose files are below dir.
func environment(dir string, more ...string) []string {
	return append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "TMPDIR=" + os.TempDir(), "XDG_STATE_HOME=" + filepath.Join(dir, "state"),
	}, more...)
}
