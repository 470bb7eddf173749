//go:build unix

package main

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

// childName is the name under which the test binary is a command for run to run.
const childName = "testchild"

func init() {
	if filepath.Base(os.Args[0]) == childName {
		os.Exit(testChild(os.Args[1:]))
	}
}

// testChild is a command that prints what happens to it.
func testChild(args []string) int {
	switch args[0] {
	case "signals": // says which it gets, and ends at SIGTERM
		ch := make(chan os.Signal, 16)
		signal.Notify(ch, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
			syscall.SIGALRM, syscall.SIGWINCH, syscall.SIGCONT)
		fmt.Println("ready")
		for sig := range ch {
			fmt.Println(sig)
			if sig == syscall.SIGTERM {
				return 7
			}
		}
	case "hold": // runs until its input ends
		fmt.Println("ready")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "line": // runs until it has read a line
		fmt.Println("ready")
		line, _ := bufio.NewReader(os.Stdin).ReadString('\n')
		fmt.Printf("read %q\n", line)
	case "stop": // stops itself, as programs do that take Ctrl-Z as a key
		fmt.Println("ready")
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
		fmt.Println("goes on")
	case "tempfail": // asks to be tried again when it is told to end
		ch := make(chan os.Signal, 1)
		signal.Notify(ch, syscall.SIGINT)
		fmt.Println("ready")
		<-ch
		fmt.Println("told to end")
		return exitNotYet
	case "calls": // calls a provider, and runs until its input ends
		got, err := postTwice(os.Getenv("ANTHROPIC_BASE_URL"))
		if err != nil {
			got = err.Error()
		}
		fmt.Println(got)
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "get": // gets URLs, with variables in them, and prints what comes back
		if err := proctest.TrustBundle(); err != nil {
			fmt.Println(err)
			return 1
		}
		for _, at := range args[1:] {
			resp, err := http.Get(os.ExpandEnv(at)) //nolint:noctx // it is a command of its own
			if err != nil {
				fmt.Println(err)
				continue
			}
			body, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			fmt.Println(resp.StatusCode, string(body))
		}
	case "shell":
		return testShell(args[1:])
	}
	return 0
}

// testShell runs one job in the foreground as shells do, and prints what happens to it.
func testShell(args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Foreground: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println("job", cmd.Process.Pid)
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			fmt.Println(err)
			return 1
		case status.Stopped():
			fmt.Println("job stopped")
			_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGCONT)
		default:
			fmt.Println("job ended with", status.ExitStatus())
			return 0
		}
	}
}

// child returns the path of the command.
func child(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), childName)
	if err := os.Symlink(self, name); err != nil {
		t.Fatal(err)
	}
	return name
}

// process is a sluice that runs.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *bufio.Reader
	ended  bool
}

// start starts sluice without a terminal.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	return startCommand(t, env, "sluice", args...)
}

func startCommand(t *testing.T, env []string, name string, args ...string) *process {
	t.Helper()
	proctest.DefaultSignals()
	p := &process{t: t, cmd: exec.Command(name, args...)}
	p.cmd.Env = append(append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "SLUICE_STORE=mem:"), env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var err error
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.cmd.Stdout, p.stdout = output(t)
	p.cmd.Stderr, p.stderr = output(t)
	err = p.cmd.Start()
	p.cmd.Stdout.(*os.File).Close()
	p.cmd.Stderr.(*os.File).Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.stdin.Close()
		if !p.ended {
			_ = p.cmd.Process.Kill()
			_ = proctest.Wait(p.cmd)
		}
	})
	return p
}

// output is a pipe that stays open after the command has ended: other processes may write to it too. A read that waits too long
// fails.
func output(t *testing.T) (io.Writer, *bufio.Reader) {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { read.Close() })
	return write, proctest.Reader(read)
}

// says reads a line and checks it.
func (p *process) says(want string) {
	p.t.Helper()
	line, err := p.stdout.ReadString('\n')
	if got := strings.TrimSuffix(line, "\n"); got != want {
		told := ""
		if err != nil { // it has ended
			rest, _ := io.ReadAll(p.stderr)
			told = string(rest)
		}
		p.t.Fatalf("it said %q (%v), want %q; on stderr %q", got, err, want, told)
	}
}

// tells reads lines up to one that begins with want, and returns the rest of that line.
func (p *process) tells(want string) string {
	p.t.Helper()
	for said := ""; ; {
		line, err := p.stdout.ReadString('\n')
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), want); ok {
			return rest
		}
		if said += line; err != nil {
			told, _ := io.ReadAll(p.stderr)
			p.t.Fatalf("it said %q (%v), want %q; on stderr %q", said, err, want, told)
		}
	}
}

// warns reads lines of stderr up to one that contains want.
func (p *process) warns(want string) {
	p.t.Helper()
	for said := ""; ; {
		line, err := p.stderr.ReadString('\n')
		if strings.Contains(line, want) {
			return
		}
		if said += line; err != nil {
			p.t.Fatalf("it said %q (%v), want %q", said, err, want)
		}
	}
}

func (p *process) signal(sig os.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end and checks the exit code.
func (p *process) ends(want int) {
	p.t.Helper()
	_ = proctest.Wait(p.cmd)
	p.ended = true
	if got := p.cmd.ProcessState.ExitCode(); got != want {
		said, _ := p.stderr.Peek(p.stderr.Buffered())
		p.t.Fatalf("exit code %d (%v), want %d; it said %q", got, p.cmd.ProcessState, want, said)
	}
}
