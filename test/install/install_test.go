//go:build slow && linux

package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

// version is what the releases of these tests are. docs/install.md has the same.
const version = "v0.1.0"

// scratch is a directory for what several tests use. checkout in it is a clone of the commit that all of them test.
var scratch, checkout string

func TestMain(m *testing.M) {
	proctest.DefaultSignals()
	dir, err := os.MkdirTemp("", "sluice-install-")
	if err != nil {
		panic(err)
	}
	scratch, checkout = dir, filepath.Join(dir, "checkout")
	code := 1
	if out, err := attempt(context.Background(), ".", nil, "git", "clone", "-q", "../..", checkout); err == nil {
		code = m.Run()
	} else {
		fmt.Fprintf(os.Stderr, "git clone: %v\n%s", err, out)
	}
	_ = os.RemoveAll(dir) // it is temporary
	os.Exit(code)
}

// attempt runs a command, with what it has started, for at most 25 minutes: with an empty cache a busy machine needs many.
func attempt(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 25*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = proctest.Patience
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func doWith(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	out, err := attempt(t.Context(), dir, env, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return out
}

func do(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	return doWith(t, dir, nil, name, args...)
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// clone makes another checkout in a directory of that name.
func clone(t *testing.T, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	do(t, ".", "git", "clone", "-q", checkout, dir)
	return dir
}

// native makes a release for this machine's platform, once for all tests, and returns its directory.
func native(t *testing.T) string {
	t.Helper()
	dir, err := nativeOnce()
	if err != nil {
		t.Fatalf("%v\n%s", err, dir)
	}
	return dir
}

var nativeOnce = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(scratch, "dist")
	out, err := attempt(context.Background(), checkout, nil, "go", "run", "./scripts/release", "-version", version, "-targets", "linux/"+runtime.GOARCH, "-out", dir)
	if err != nil {
		return out, err
	}
	return dir, nil
})

// block returns the shell commands below a heading of a page, for the platform that runs this.
func block(t *testing.T, page, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+heading+"\n")
	rest, _, _ = strings.Cut(rest, "\n## ")
	_, rest, _ = strings.Cut(rest, "\n```sh\n")
	rest, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatalf("%s has no commands below %s", page, heading)
	}
	return strings.ReplaceAll(rest, "linux_amd64", "linux_"+runtime.GOARCH)
}

// podman is the command that runs containers here: crun, its default, fails where cgroups of both kinds are.
func podman(t *testing.T, args ...string) string {
	t.Helper()
	return do(t, ".", "podman", append([]string{"--runtime", "/usr/sbin/runc"}, args...)...)
}

// limits are arguments of podman run for hosts that cannot raise the limits of processes.
var limits = []string{"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"}
