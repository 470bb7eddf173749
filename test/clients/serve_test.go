//go:build linux || darwin

package clients_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	patience   = 60 * time.Second // for a daemon to start
	stopWithin = 15 * time.Second
)

// What the tests' tokens are. Bob's is for one agent and the lowest class.
const (
	anyToken = "test-token-of-anybody"
	lowToken = "test-token-of-bob"
)

// gate is the configuration. Each case has resources of its own.
const gate = `
resources:
  wide: {limits: [{name: inflight, concurrency: 1000}]}
  hourly: {limits: [{name: hour, size: 2/h}], light: "off", breaker: "off"}
  rule: {limits: [{name: inflight, concurrency: 1}, {name: hour, size: 1000/h}], guard: "off", light: "off", breaker: "off"}
  place: {limits: [{name: inflight, concurrency: 1}]}
  aborted: {limits: [{name: inflight, concurrency: 1}]}
  crowd: {limits: [{name: inflight, concurrency: 3}]}
  tasks: {limits: [{name: inflight, concurrency: 2}]}
  paused: {limits: [{name: inflight, concurrency: 10}]}
  throttled: {limits: [{name: inflight, concurrency: 10}]}
  hub: {provider: github, limits: [{name: inflight, concurrency: 10}]}
  models: {provider: anthropic, limits: [{name: inflight, concurrency: 10}]}
budgets: [{name: each, per: agent, size: 100 usd/day}]
routes: {simple: [wide/small]}
shares: "off"
`

func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

const bearers = "tokens: [{name: any, hash: %any%}, {name: low, hash: %low%, agent: bob, class: p2}]\n"

func guarded() string {
	return gate + strings.NewReplacer("%any%", hash(anyToken), "%low%", hash(lowToken)).Replace(bearers)
}

// daemon is one that runs.
type daemon struct {
	url  string
	home string // of its configuration and state
	stop func()
}

// serve starts a daemon with a file store of its own. It is stopped when the test ends, if not before.
func serve(t *testing.T, config string, more ...string) *daemon {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "sluice.yaml")
	if err := os.WriteFile(file, []byte("store: file:"+filepath.Join(home, "state")+"\n"+config), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"serve", "--config", file, "--listen", "127.0.0.1:0", "--json"}, more...)
	cmd := exec.Command(sluiceBinary, args...)
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
	d := &daemon{home: home, stop: sync.OnceFunc(func() {
		if err := end(cmd, drained); err != nil {
			t.Errorf("sluice serve: %v\n%s", err, stderr.Bytes())
		}
	})}
	t.Cleanup(d.stop)
	select {
	case line := <-lines:
		var said struct{ Listen []string }
		if err := json.Unmarshal(line, &said); err != nil || len(said.Listen) == 0 {
			t.Fatalf("sluice serve did not start: %q", line) // what it prints on stderr follows
		}
		d.url = said.Listen[0]
	case <-time.After(patience):
		t.Fatal("sluice serve does not say where it is")
	}
	return d
}

// end stops a daemon as its users would, and if that does not help, for good.
func end(cmd *exec.Cmd, drained <-chan struct{}) error {
	_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	late := time.AfterFunc(stopWithin, func() { _ = cmd.Process.Kill() })
	<-drained
	err := cmd.Wait()
	if !late.Stop() {
		return errors.Join(errors.New("it did not end when it was told to"), err)
	}
	return err
}

// plainEnv is the environment without what would lead a client or the gate elsewhere.
func plainEnv(home string, more ...string) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_STATE_HOME=" + home, "TMPDIR=" + os.TempDir()}
	return append(env, more...)
}
