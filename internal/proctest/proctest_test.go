//go:build unix

package proctest

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

const roleVar = "PROCTEST_ROLE"

func TestMain(m *testing.M) {
	if os.Getenv(roleVar) != "" {
		DefaultSignals()
		for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT} {
			_ = syscall.Kill(os.Getpid(), sig) // it ignores them still
		}
		cmd := exec.Command("sh", "-c", "kill -HUP $$; echo survived HUP")
		if os.Getenv(roleVar) == "INT" {
			cmd = exec.Command("sh", "-c", "kill -INT $$; echo survived INT")
		}
		cmd.Stdout = os.Stdout
		err := cmd.Run()
		os.Stdout.WriteString("child: " + err.Error())
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// A test run under nohup ignores SIGHUP, and one in the background of a script SIGINT. Its children must not.
func TestChildrenOfATestUnderNohupHaveTheirSignals(t *testing.T) {
	for _, c := range []struct{ sig, want string }{{"HUP", "child: signal: hangup"}, {"INT", "child: signal: interrupt"}} {
		cmd := Command(t, "sh", "-c", `trap "" HUP INT; exec "$0"`, os.Args[0])
		cmd.Env = append(os.Environ(), roleVar+"="+c.sig)
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("SIG%s: %v: %q, want %q", c.sig, err, got, c.want)
		}
	}
}

// What a process never says, and an end that never comes, fail a test instead of hanging it.
func TestWaitsForAProcessAreBounded(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := reader(out, 10*time.Millisecond).ReadString('\n'); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("reading: %v", err)
	}
	if err := wait(cmd, 10*time.Millisecond); err == nil || !strings.Contains(err.Error(), "did not end within 10ms and was killed") {
		t.Errorf("waiting: %v", err)
	}
}
