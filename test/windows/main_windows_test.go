package windows

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

// patience is how long a test waits for what must come.
const patience = 60 * time.Second

// The test binary is also the command that sluice runs. A variable says what it does.
const roleVar = "SLUICE_WINDOWS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role, file := os.Getenv(roleVar), os.Getenv(roleVar+"_FILE"); role {
	case "":
		allocConsole() // where there is none, nobody could send Ctrl-Break
		os.Exit(m.Run())
	case "hold": // until it is killed
		tell(file)
		time.Sleep(10 * patience)
	case "interrupt": // until Ctrl-Break comes
		got := make(chan os.Signal, 1)
		signal.Notify(got, os.Interrupt)
		tell(file)
		select {
		case <-got:
			os.Exit(9)
		case <-time.After(10 * patience):
		}
	}
	os.Exit(3)
}

// allocConsole makes a console for this process and those that it starts, unless it has one.
func allocConsole() {
	_, _, _ = windows.NewLazySystemDLL("kernel32.dll").NewProc("AllocConsole").Call()
}

// tell writes this process's id to a file.
func tell(file string) {
	if err := os.WriteFile(file+".new", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if err := os.Rename(file+".new", file); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// program is sluice.exe: the one that SLUICE_EXE names, or else a new one.
var program = sync.OnceValues(func() (string, error) {
	if exe := os.Getenv("SLUICE_EXE"); exe != "" {
		return filepath.Abs(exe)
	}
	dir, err := os.MkdirTemp("", "sluice")
	if err != nil {
		return "", err
	}
	exe := filepath.Join(dir, "sluice.exe")
	out, err := exec.Command("go", "build", "-tags=grpcnotrace", "-o", exe, "github.com/sluicehq/sluice/cmd/sluice").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return exe, nil
})

// bench is a directory with a configuration: one place, in a file store.
type bench struct {
	*testing.T
	exe, dir string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	exe, err := program()
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{T: t, exe: exe, dir: t.TempDir()}
	text := "resources:\n  api:\n    limits:\n      - {name: places, concurrency: 1}\n"
	if err := os.WriteFile(b.file("sluice.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) file(name string) string { return filepath.Join(b.dir, name) }

// process is a sluice that a test has started, in a console group of its own.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	out  *bufio.Reader
	errs *bytes.Buffer
	done chan error
}

// start starts sluice on the bench's configuration and store.
func (b *bench) start(role, file string, args ...string) *process {
	b.Helper()
	cmd := exec.Command(b.exe, args...)
	cmd.Env = append(os.Environ(), "SLUICE_CONFIG="+b.file("sluice.yaml"), "SLUICE_STORE=file:"+b.file("state"), roleVar+"="+role, roleVar+"_FILE="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
	p := &process{T: b.T, cmd: cmd, errs: &bytes.Buffer{}, done: make(chan error, 1)}
	cmd.Stderr = p.errs
	read, write, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	cmd.Stdout, p.out = write, bufio.NewReader(read)
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	_ = write.Close()
	go func() { p.done <- cmd.Wait() }()
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = read.Close()
	})
	return p
}

// ends waits for the end of a process, and checks its exit code.
func (p *process) ends(code int) string {
	p.Helper()
	said := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(p.out)
		said <- string(text)
	}()
	select {
	case <-p.done:
	case <-time.After(patience):
		p.Fatalf("it does not end")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != code {
		p.Fatalf("exit code %d, want %d\n%s", got, code, p.errs)
	}
	select {
	case text := <-said:
		return text
	case <-time.After(patience):
		p.Fatal("another process has its output")
		return ""
	}
}

// consoled reports whether there is a console, which could send Ctrl-Break. Under Wine without a display there is none.
func consoled() bool {
	pages, _, _ := windows.NewLazySystemDLL("kernel32.dll").NewProc("GetConsoleCP").Call()
	return pages != 0
}

func needsConsole(t *testing.T) {
	t.Helper()
	if !consoled() {
		t.Fatal("there is no console that could send Ctrl-Break; run it in one")
	}
}

// interrupts sends Ctrl-Break to the process and its group. Ctrl-C goes to whole consoles only.
func (p *process) interrupts() {
	p.Helper()
	if err := windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.cmd.Process.Pid)); err != nil {
		p.Fatal(err)
	}
}

// self is the command that runs this test binary.
func self(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

// started waits for the id of a process in a file, and opens the process.
func started(t *testing.T, p *process, file string) windows.Handle {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		text, err := os.ReadFile(file)
		if err == nil {
			id, err := strconv.Atoi(string(text))
			if err != nil {
				t.Fatal(err)
			}
			h, err := windows.OpenProcess(windows.SYNCHRONIZE|windows.PROCESS_TERMINATE, false, uint32(id))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = windows.TerminateProcess(h, 1)
				_ = windows.CloseHandle(h)
			})
			return h
		}
		if time.Now().After(end) {
			t.Fatalf("the command does not begin\n%s", p.errs)
		}
	}
}

// until waits until the status of the store says something.
func (b *bench) until(text string) {
	b.Helper()
	for end := time.Now().Add(patience); ; {
		said := b.start("", "", "status").ends(0)
		if strings.Contains(said, text) {
			return
		}
		if time.Now().After(end) {
			b.Fatalf("not %q in\n%s", text, said)
		}
	}
}
