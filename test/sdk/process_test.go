//go:build linux || darwin

package sdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// patience is how long a test waits for what must come.
	patience = 5 * time.Minute
	// stopWithin is how long a server may take to end.
	stopWithin = 15 * time.Second
)

// plainEnv is the environment without what would lead a client or the gate elsewhere.
func plainEnv(home string, more ...string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + home, "TMPDIR=" + os.TempDir()}
	return append(env, more...)
}

// serve starts a server of ours and returns the line of JSON with which it says where it is. It is stopped when the test ends.
func serve(t *testing.T, home string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(sluiceBinary, append(args, "--json")...)
	cmd.Env = plainEnv(home)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan []byte, 1)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		r := bufio.NewReader(stdout)
		line, _ := r.ReadBytes('\n')
		lines <- line
		_, _ = io.Copy(io.Discard, r)
	}()
	t.Cleanup(func() {
		if err := stop(cmd, drained); err != nil {
			t.Errorf("sluice %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
		}
	})
	select {
	case line := <-lines:
		if !json.Valid(line) { // it prints why on stderr
			t.Fatalf("sluice %s did not start", strings.Join(args, " "))
		}
		return line
	case <-time.After(patience):
		t.Fatalf("sluice %s does not say where it is", strings.Join(args, " "))
		return nil
	}
}

// stop ends a server as its users would, and if that does not help, for good.
func stop(cmd *exec.Cmd, drained <-chan struct{}) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	late := time.AfterFunc(stopWithin, func() { _ = cmd.Process.Kill() })
	<-drained
	err := cmd.Wait()
	if !late.Stop() {
		return errors.Join(errors.New("it did not end when it was told to"), err)
	}
	return err
}

// output runs a program to its end and returns what it prints.
func output(t *testing.T, env []string, dir, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = env, dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that sluice run ends its command
	cmd.WaitDelay = stopWithin
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, stdout.Bytes(), stderr.Bytes())
	}
	return stdout.Bytes()
}

// decode reads JSON.
func decode[T any](t *testing.T, text []byte) (v T) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %.2000s", err, text)
	}
	return v
}
