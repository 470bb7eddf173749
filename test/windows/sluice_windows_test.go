package windows

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/sys/windows"
)

func TestRunHasTheExitCodeOfItsCommand(t *testing.T) {
	b := newBench(t)
	if said := b.start("", "", "run", "--resource", "api", "--", "cmd", "/c", "echo hello& exit 7").ends(7); !strings.HasPrefix(said, "hello") {
		t.Errorf("it said %q", said)
	}
	b.start("", "", "run", "--", "no-such-program").ends(127)
}

// Whoever kills the gate of a command kills the command.
func TestAKilledRunTakesItsCommandWithIt(t *testing.T) {
	b := newBench(t)
	p := b.start("hold", b.file("id"), "run", "--resource", "api", "--", self(t))
	command := started(t, p, b.file("id"))
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if event, err := windows.WaitForSingleObject(command, uint32(patience.Milliseconds())); event != windows.WAIT_OBJECT_0 {
		t.Fatalf("the command lives on (%d, %v)", event, err)
	}
}

// The place of a process that is killed goes to the next, which waits in another process on the same files.
func TestThePlaceOfAKilledRunGoesToTheNext(t *testing.T) {
	b := newBench(t)
	first := b.start("hold", b.file("id"), "run", "--resource", "api", "--", self(t))
	started(t, first, b.file("id"))
	second := b.start("", "", "run", "--resource", "api", "--wait", "5m", "--agent", "second", "--", "cmd", "/c", "echo in")
	b.until("1 waiting")
	if err := first.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if said := second.ends(0); !strings.HasPrefix(said, "in") {
		t.Errorf("it said %q", said)
	}
}

// The console sends Ctrl-Break to the gate and to its command. The gate waits for the command, and gives its place back.
func TestAnInterruptedRunEndsAsItsCommandDoes(t *testing.T) {
	needsConsole(t)
	b := newBench(t)
	p := b.start("interrupt", b.file("id"), "run", "--resource", "api", "--", self(t))
	started(t, p, b.file("id"))
	p.interrupts()
	p.ends(9)
	b.until("0 waiting, 0 in flight")
}

// One that has not begun gives up its place in line.
func TestAnInterruptedRunThatWaitsGivesUp(t *testing.T) {
	needsConsole(t)
	b := newBench(t)
	first := b.start("hold", b.file("id"), "run", "--resource", "api", "--", self(t))
	started(t, first, b.file("id"))
	second := b.start("", "", "run", "--resource", "api", "--wait", "5m", "--agent", "second", "--", "cmd", "/c", "echo in")
	b.until("1 waiting")
	second.interrupts()
	second.ends(130)
	b.until("0 waiting")
}

func TestServeOnAFileStore(t *testing.T) {
	b := newBench(t)
	daemon := b.start("", "", "serve", "--listen", "127.0.0.1:0")
	line, err := daemon.out.ReadString('\n')
	at, ok := strings.CutPrefix(line, "sluice: listening on ")
	if !ok {
		t.Fatalf("it said %q, %v", line, err)
	}
	at, _, _ = strings.Cut(strings.TrimSpace(at), ";")
	w, err := http.Post(at+"/v1/tickets", "application/json", strings.NewReader(`{"resource":"api","agent":"a","wait_ms":0}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(w.Body)
	_ = w.Body.Close()
	if err != nil || w.StatusCode != http.StatusOK {
		t.Fatalf("%d %s %v", w.StatusCode, text, err)
	}
	b.until("1 in flight") // another process sees it in the files
	if said := b.start("", "", "status", "--store", at).ends(0); !strings.Contains(said, "1 in flight") {
		t.Errorf("the daemon says\n%s", said)
	}
	http.DefaultClient.CloseIdleConnections()
	if consoled() {
		daemon.interrupts()
		daemon.ends(0)
	}
}
