//go:build linux || darwin

package agents_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
)

const (
	patience  = 60 * time.Second // for anything to happen
	pollEvery = 50 * time.Millisecond
)

// sluiceBinary is what is run.
var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

var watched = sync.OnceValue(func() error { return built.Watch() })

// rig is a file store, a configuration, and a daemon on it.
type rig struct {
	*testing.T
	home string
	url  string
}

func begin(t *testing.T, config string) *rig {
	t.Helper()
	if err := watched(); err != nil {
		t.Fatal(err)
	}
	r := &rig{T: t, home: t.TempDir()}
	text := "store: file:" + filepath.Join(r.home, "state") + "\n" + config
	if err := os.WriteFile(filepath.Join(r.home, "sluice.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.serve()
	return r
}

func (r *rig) command(args ...string) *exec.Cmd {
	cmd := exec.Command(sluiceBinary, args...)
	cmd.Env = built.Env(r.home, "SLUICE_CONFIG="+filepath.Join(r.home, "sluice.yaml"))
	return cmd
}

// serve starts the daemon. It is stopped when the test ends.
func (r *rig) serve() {
	r.Helper()
	line, _ := built.Serve(r.T, r.command("serve", "--listen", "127.0.0.1:0", "--json"))
	var said struct{ Listen []string }
	if err := json.Unmarshal(line, &said); err != nil || len(said.Listen) == 0 {
		r.Fatalf("sluice serve says %q", line)
	}
	r.url = said.Listen[0]
}

// process is a command that runs.
type process struct {
	*rig
	cmd    *exec.Cmd
	stderr bytes.Buffer
	done   chan struct{} // it has ended
	err    error         // how; after done
}

// start starts a command in a group of its own, which is killed when the test ends.
func (r *rig) start(args ...string) *process {
	r.Helper()
	p := &process{rig: r, cmd: r.command(args...), done: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = built.StopWithin // a child of its may have its output open
	if err := p.cmd.Start(); err != nil {
		r.Fatal(err)
	}
	go func() {
		defer close(p.done)
		p.err = p.cmd.Wait()
	}()
	r.Cleanup(func() {
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // it may have ended
		<-p.done
	})
	return p
}

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// ends waits for the end of a process, and wants it to be good.
func (p *process) ends() {
	p.Helper()
	select {
	case <-p.done:
		if p.err != nil {
			p.Errorf("%v: %v\n%s", p.cmd.Args, p.err, p.stderr.Bytes())
		}
	case <-time.After(patience):
		p.Fatalf("%v does not end", p.cmd.Args)
	}
}

// sluice runs a command to its end and reads the JSON that it prints.
func (r *rig) sluice(exit int, out any, args ...string) {
	r.Helper()
	cmd := r.command(args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Start(); err != nil {
		r.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	late.Stop()
	var failed *exec.ExitError
	if code := cmd.ProcessState.ExitCode(); code != exit || err != nil && !errors.As(err, &failed) {
		r.Fatalf("sluice %s exits with %d, want %d: %v\n%s", strings.Join(args, " "), code, exit, err, stderr.Bytes())
	}
	if out == nil {
		return
	}
	if err := json.Unmarshal(stdout.Bytes(), out); err != nil {
		r.Fatalf("sluice %s prints %q: %v", strings.Join(args, " "), stdout.Bytes(), err)
	}
}

var client = sync.OnceValue(func() *http.Client { return &http.Client{Timeout: patience} })

// call calls the daemon's API and reads what it answers; it returns the status.
func (r *rig) call(out any, method, path, body string) int {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), method, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client().Do(req)
	if err != nil {
		r.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Fatal(err)
	}
	if out != nil && resp.StatusCode < 300 {
		if err := json.Unmarshal(text, out); err != nil {
			r.Fatalf("%s %s answers %q: %v", method, path, text, err)
		}
	}
	return resp.StatusCode
}

// until waits for something to become true.
func (r *rig) until(what string, is func() bool) {
	r.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(pollEvery) {
		if time.Now().After(end) {
			r.Fatalf("after %v it is still not so: %s", patience, what)
		}
	}
}
