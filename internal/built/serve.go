package built

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

// StopWithin is how long a server may take to end.
const StopWithin = 15 * time.Second

// Env is the environment without what would lead a client or the gate elsewhere.
func Env(home string, more ...string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + home, "TMPDIR=" + os.TempDir()}
	return append(env, more...)
}

// Serve starts a server of ours and returns the line of JSON with which it says where it is. The server ends when stop is called, and at the
// latest when the test ends.
func Serve(t *testing.T, cmd *exec.Cmd) (line []byte, stop func()) {
	t.Helper()
	name := strings.Join(append([]string{"sluice"}, cmd.Args[1:]...), " ")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines, drained := make(chan []byte, 1), make(chan struct{})
	go func() {
		defer close(drained)
		r := bufio.NewReader(stdout)
		line, _ := r.ReadBytes('\n')
		lines <- line
		_, _ = io.Copy(io.Discard, r)
	}()
	stop = sync.OnceFunc(func() {
		if err := end(cmd, drained); err != nil {
			t.Errorf("%s: %v\n%s", name, err, stderr.Bytes())
		}
	})
	t.Cleanup(stop)
	select {
	case line = <-lines:
		if len(line) == 0 { // it prints why on stderr
			t.Fatalf("%s did not start", name)
		}
	case <-time.After(proctest.Patience):
		t.Fatalf("%s does not say where it is", name)
	}
	return line, stop
}

// end stops a server as its users would, and if that does not help, for good.
func end(cmd *exec.Cmd, drained <-chan struct{}) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	late := time.AfterFunc(StopWithin, func() { _ = cmd.Process.Kill() })
	<-drained
	err := cmd.Wait()
	if !late.Stop() {
		return errors.Join(errors.New("it did not end when it was told to"), err)
	}
	return err
}
