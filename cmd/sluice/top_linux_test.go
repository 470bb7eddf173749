package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/sluicehq/sluice/inspect"
	"github.com/sluicehq/sluice/internal/proctest"
)

// In a terminal top draws, acts on keys, and leaves the terminal as it was.
func TestTopInATerminal(t *testing.T) {
	store := "file:" + filepath.Join(t.TempDir(), "state")
	file := filepath.Join(t.TempDir(), "sluice.yaml")
	if err := os.WriteFile(file, []byte("resources: {github: {provider: github}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, terminal := openTerminal(t)
	control(t, keys, func(fd int) error { return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 100}) })
	screen := proctest.Reader(keys)
	before, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	proctest.DefaultSignals()
	cmd := exec.Command("sluice", "top", "--store", store)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8", "SLUICE_CONFIG="+file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	var shown strings.Builder
	read := func() bool {
		some := make([]byte, 4096)
		n, err := screen.Read(some) // an error when nobody has it open any more
		shown.Write(some[:n])
		return err == nil
	}
	until := func(want string) {
		t.Helper()
		for !strings.Contains(shown.String(), want) {
			if !read() {
				t.Fatalf("it has not shown %q but %q", want, shown.String())
			}
		}
	}
	until("github")
	if _, err := os.Stat(strings.TrimPrefix(store, "file:")); !errors.Is(err, os.ErrNotExist) {
		t.Error("to look has created the store:", err)
	}
	press := func(key string) {
		t.Helper()
		if _, err := keys.WriteString(key); err != nil {
			t.Fatal(err)
		}
	}
	press("py")
	until("paused in sluice top") // the reason, which the store was told
	out, err := proctest.Command(t, "sluice", "status", "--json", "--store", store, "--config", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	var st inspect.Status
	if err := json.Unmarshal(out, &st); err != nil || len(st.Resources) != 1 || st.Resources[0].PausedUntil == nil {
		t.Errorf("%v: %s", err, out)
	}
	other := filepath.Join(t.TempDir(), "other.yaml")
	if err := os.WriteFile(other, []byte("resources: {newcomer: {limits: [{name: jobs, concurrency: 5}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := proctest.Command(t, "sluice", "acquire", "newcomer", "--store", store, "--config", other).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	until("newcomer") // a pool that came since, and that the configuration does not name
	press("q")
	until("\x1b[?1049l") // the screen that was there before
	go func() {
		for read() { // or it could not write to the end
		}
	}()
	if err := proctest.Wait(cmd); err != nil {
		t.Errorf("%v", err)
	}
	after, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil || *after != *before {
		t.Errorf("the terminal is not as it was: %+v, %+v, %v", before, after, err)
	}
	terminal.Close()
}
