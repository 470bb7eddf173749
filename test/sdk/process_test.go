//go:build linux || darwin

package sdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
)

// patience is how long a test waits for what must come.
const patience = 5 * time.Minute

// serve starts a server of ours and returns the line of JSON with which it says where it is. It is stopped when the test ends.
func serve(t *testing.T, home string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(sluiceBinary, append(args, "--json")...)
	cmd.Env = built.Env(home)
	line, _ := built.Serve(t, cmd)
	return line
}

// output runs a program to its end and returns what it prints.
func output(t *testing.T, env []string, dir, name string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env, cmd.Dir = env, dir
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // so that sluice run ends its command
	cmd.WaitDelay = built.StopWithin
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
