package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sluicehq/sluice/internal/proctest"
)

// terminal is a terminal with a shell's job in its foreground.
type terminal struct {
	t      *testing.T
	keys   *os.File
	screen *bufio.Reader
	job    *exec.Cmd
	sluice int // its process
}

func openTerminal(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { master.Close() })
	var n int
	control(t, master, func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return master, slave
}

// control calls do with a file's descriptor. It does not use Fd, after which the file would have no deadlines.
func control(t *testing.T, f *os.File, do func(fd int) error) {
	t.Helper()
	raw, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := raw.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil || failed != nil {
		t.Fatal(err, failed)
	}
}

// inTerminal runs sluice as the foreground job of a shell.
func inTerminal(t *testing.T, args ...string) *terminal {
	t.Helper()
	sluice, err := exec.LookPath("sluice")
	if err != nil {
		t.Fatal(err)
	}
	proctest.DefaultSignals()
	master, slave := openTerminal(t)
	term := &terminal{t: t, keys: master, screen: proctest.Reader(master)}
	term.job = exec.Command(child(t), append([]string{"shell", sluice}, args...)...)
	term.job.Stdin, term.job.Stdout, term.job.Stderr = slave, slave, slave
	term.job.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "SLUICE_STORE=mem:")
	term.job.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	err = term.job.Start()
	slave.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = term.job.Process.Kill() // the others get SIGHUP
		_ = proctest.Wait(term.job)
	})
	line, err := term.screen.ReadString('\n')
	if _, bad := fmt.Sscanf(line, "job %d", &term.sluice); bad != nil {
		t.Fatalf("the terminal shows %q, %v", line, err)
	}
	return term
}

// shows reads lines up to one that contains want, and returns the text before it.
func (term *terminal) shows(want string) (before string) {
	term.t.Helper()
	for {
		line, err := term.screen.ReadString('\n')
		if strings.Contains(line, want) {
			return before
		}
		before += line
		if err != nil {
			term.t.Fatalf("the terminal shows %q (%v), want %q", before, err, want)
		}
	}
}

func (term *terminal) types(keys string) {
	term.t.Helper()
	if _, err := term.keys.WriteString(keys); err != nil {
		term.t.Fatal(err)
	}
}

// Ctrl-C reaches the command directly. If it were passed on as well, the command would get it twice, which many
// programs treat differently.
func TestKeysReachTheCommandOnce(t *testing.T) {
	term := inTerminal(t, "run", "--quiet", "--", child(t), "signals")
	term.shows("ready")
	term.types("\x03")
	term.shows(syscall.SIGINT.String())
	term.types("\x1c")
	term.shows(syscall.SIGQUIT.String())
	size := &unix.Winsize{Row: 33, Col: 77}
	control(t, term.keys, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, size) })
	before := term.shows(syscall.SIGWINCH.String())
	// What is sent later is handled later: by now a second one would have come.
	if err := syscall.Kill(term.sluice, syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	before += term.shows(syscall.SIGUSR1.String())
	if strings.Contains(before, "interrupt") || strings.Contains(before, "quit") || strings.Contains(before, "window") {
		t.Errorf("something came twice: %q", before)
	}
	if err := syscall.Kill(term.sluice, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	term.shows("job ended with 7")
}

// After Ctrl-Z the shell has the terminal, and the command continues with fg.
func TestJobControl(t *testing.T) {
	term := inTerminal(t, "run", "--quiet", "--", child(t), "line")
	term.shows("ready")
	term.types("\x1a")
	term.shows("job stopped")
	term.types("hello\n")
	term.shows(`read "hello\n"`)
	term.shows("job ended with 0")
}

// Programs that read Ctrl-Z as a key stop themselves; the process that the shell watches must stop too.
func TestCommandStopsItself(t *testing.T) {
	term := inTerminal(t, "run", "--quiet", "--", child(t), "stop")
	term.shows("ready")
	term.shows("job stopped")
	term.shows("goes on")
	term.shows("job ended with 0")
}

// A command ends with its gate.
func TestCommandEndsWithItsGate(t *testing.T) {
	p := start(t, nil, "run", "--quiet", "--", child(t), "signals")
	p.says("ready")
	p.signal(syscall.SIGKILL)
	p.says(syscall.SIGTERM.String())
}
