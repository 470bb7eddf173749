//go:build linux || darwin

package clients_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
	"github.com/sluicehq/sluice/internal/proctest"
)

// testsWithin is how long the tests of one client may take. They take seconds.
const testsWithin = 4 * time.Minute

func TestPython(t *testing.T) {
	t.Parallel()
	python := need(t, "python3", "install Python 3.9 or later, so that python3 is in the PATH")
	out, err := proctest.Command(t, python, "-c", "import sys; print(sys.version_info >= (3, 9))").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != "True" {
		t.Fatalf("python3 is too old, or does not run: install Python 3.9 or later (%v, %s)", err, out)
	}
	suite(t, "../../clients/python", python, "-B", "-W", "error::ResourceWarning", "-m", "unittest", "discover", "-s", "tests", "-t", ".")
}

func TestTypeScript(t *testing.T) {
	t.Parallel()
	node := need(t, "node", "install Node.js 18 or later; scripts/need-node does it")
	out, err := proctest.Command(t, node, "--version").Output()
	major, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(string(out)), "v"), ".")
	if n, bad := strconv.Atoi(major); err != nil || bad != nil || n < 18 {
		t.Fatalf("node is too old, or does not run: install Node.js 18 or later; scripts/need-node does it (%v, %s)", err, out)
	}
	tests, err := filepath.Glob("../../clients/typescript/test/*.test.[cm]js")
	if err != nil || len(tests) == 0 {
		t.Fatalf("there are no tests: %v", err)
	}
	args := []string{"--test"}
	for _, name := range tests {
		args = append(args, filepath.Join("test", filepath.Base(name)))
	}
	suite(t, "../../clients/typescript", node, args...)
}

func need(t *testing.T, program, how string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("%s is missing: %s", program, how)
	}
	return path
}

// suite runs the tests of a client against daemons of its own: one that wants tokens, one that does not, and one that is gone.
func suite(t *testing.T, dir, program string, args ...string) {
	t.Helper()
	if err := watched(); err != nil {
		t.Fatal(err)
	}
	sockets, err := os.MkdirTemp("", "sluice") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sockets) })
	socket := "unix:" + filepath.Join(sockets, "s")
	closed := serve(t, keeping(t), "--listen", socket)
	open := serve(t, gate)
	gone := serve(t, gate)
	gone.stop()

	ctx, cancel := context.WithTimeout(t.Context(), testsWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	cmd.WaitDelay = built.StopWithin
	cmd.Env = built.Env(t.TempDir(),
		"SLUICE_URL="+closed.url, "SLUICE_TOKEN="+anyToken, "SLUICE_AGENT=tester", "TEST_LOW_TOKEN="+lowToken,
		"TEST_OPEN_URL="+open.url, "TEST_GONE_URL="+gone.url, "TEST_SOCKET_URL="+socket, "TEST_SLUICE="+sluiceBinary)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	t.Logf("%s", out)
	closed.stop()
	closed.replay(t)
}
