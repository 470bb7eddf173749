package main

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

// On a terminal one line shows what the command waits for, and is cleared at the end.
func TestWaitingShowsOnATerminal(t *testing.T) {
	store := "file:" + filepath.Join(t.TempDir(), "state")
	out, err := proctest.Command(t, "sluice", "pause", "github", "--for", "10m", "--reason", "a \x1b[31mtest", "--store", store).CombinedOutput()
	if err != nil || bytes.ContainsRune(out, '\x1b') {
		t.Fatalf("pause: %v: %q", err, out)
	}
	master, terminal := openTerminal(t)
	screen := proctest.Reader(master)
	var stdout bytes.Buffer
	cmd := exec.Command("sluice", "acquire", "github", "--agent", "a", "--wait", "1h", "--store", store)
	cmd.Stdout, cmd.Stderr = &stdout, terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	terminal.Close()
	var shown strings.Builder
	read := func() bool {
		some := make([]byte, 256)
		n, err := screen.Read(some) // an error when nobody has it open any more
		shown.Write(some[:n])
		return err == nil
	}
	const line = "\r\x1b[Kwaiting for github: paused, expected in 9m5"
	for !strings.Contains(shown.String(), line) && read() {
	}
	if out, err := proctest.Command(t, "sluice", "resume", "github", "--store", store).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for read() {
	}
	if err := proctest.Wait(cmd); err != nil {
		t.Errorf("%v; the screen shows %q", err, shown.String())
	}
	if got := shown.String(); !strings.HasPrefix(got, line) || !strings.HasSuffix(got, "\r\x1b[K") || strings.Contains(got, "\n") {
		t.Errorf("the screen shows %q", got)
	}
	if got := stdout.String(); !strings.HasPrefix(got, "granted github to a (p2) after ") {
		t.Errorf("it printed %q", got)
	}
}
