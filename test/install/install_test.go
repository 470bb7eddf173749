//go:build slow

// Package install follows docs/install.md: what is published is built, compared, installed and run.
package install

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

func do(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Two clones in different places give the same bytes, for every platform.
func TestReleaseIsReproducible(t *testing.T) {
	var sums []string
	for _, place := range []string{"here", "in a much longer place"} {
		dir := filepath.Join(t.TempDir(), place)
		do(t, ".", "git", "clone", "-q", root(t), dir)
		do(t, dir, "go", "run", "./scripts/release", "-version", "v0.1.0-test")
		do(t, filepath.Join(dir, "dist"), "sha256sum", "-c", "--quiet", "SHA256SUMS")
		text, err := os.ReadFile(filepath.Join(dir, "dist", "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
		if n := strings.Count(string(text), "\n"); n != 13 { // six archives, six bills of materials, a formula
			t.Errorf("%d files are published, want 13:\n%s", n, text)
		}
		formula, err := os.ReadFile(filepath.Join(dir, "dist", "sluice.rb"))
		if err != nil || strings.Contains(string(formula), "@") {
			t.Errorf("the formula is not filled in (%v):\n%s", err, formula)
		}
		said := do(t, dir, "./dist/linux_"+runtime.GOARCH+"/sluice", "--version")
		if !strings.HasPrefix(said, "sluice v0.1.0-test ") {
			t.Errorf("it says that it is %q", said)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds differ:\n%s\n%s", sums[0], sums[1])
	}
}

// The image runs without root, on a read-only file system, and reports that it is healthy.
func TestImage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "clone")
	do(t, ".", "git", "clone", "-q", root(t), dir)
	const image = "localhost/sluice-install-test"
	podman := func(args ...string) string {
		return do(t, dir, "podman", append([]string{"--runtime", "/usr/sbin/runc"}, args...)...)
	}
	do(t, dir, "make", "image", "PODMAN=podman --runtime /usr/sbin/runc", "IMAGE="+image)
	t.Cleanup(func() { _ = exec.Command("podman", "rmi", "-f", image).Run() })
	limits := []string{"--network", "host", "--read-only", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024"}
	if said := podman(append(append([]string{"run", "--rm"}, limits...), image, "version")...); !strings.Contains(said, "sluice v") {
		t.Errorf("it says %q", said)
	}
	const name, address = "sluice-install-test", "127.0.0.1:17987"
	t.Cleanup(func() { _ = exec.Command("podman", "rm", "-f", "-t", "1", name).Run() })
	podman(append(append([]string{"run", "-d", "--name", name}, limits...), image, "serve", "--listen", address)...)
	healthy := func() error {
		return exec.Command("podman", "--runtime", "/usr/sbin/runc", "exec", name, "/sluice", "ping", "--gate", "http://"+address).Run()
	}
	for end := time.Now().Add(time.Minute); healthy() != nil; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it is not healthy after a minute:\n%s", podman("logs", name))
		}
	}
	if user := strings.TrimSpace(podman("inspect", "--format", "{{.Config.User}}", name)); user != "65532:65532" {
		t.Errorf("it runs as %q", user)
	}
	if check := podman("inspect", "--format", "{{.Config.Healthcheck}}", name); !strings.Contains(check, "--gate") {
		t.Errorf("its health check is %q", check)
	}
	podman("stop", "-t", "30", name)
	if code := strings.TrimSpace(podman("inspect", "--format", "{{.State.ExitCode}}", name)); code != "0" {
		t.Errorf("it ends with %s:\n%s", code, podman("logs", name))
	}
}

func TestUnitIsSoundAndHardened(t *testing.T) {
	unit := filepath.Join(root(t), "deploy", "systemd", "sluice.service")
	said := do(t, ".", "systemd-analyze", "security", "--offline=true", "--threshold=20", unit)
	if !strings.Contains(said, "Overall exposure level") {
		t.Errorf("it says\n%s", said)
	}
}

// go install puts a working program into GOBIN.
func TestGoInstall(t *testing.T) {
	bin := t.TempDir()
	cmd := exec.Command("go", "install", "./cmd/sluice")
	cmd.Dir, cmd.Env = root(t), append(os.Environ(), "GOBIN="+bin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if said := do(t, bin, "./sluice", "--version"); !strings.HasPrefix(said, "sluice ") {
		t.Errorf("it says %q", said)
	}
}

// The clients build as packages, and what is built can be installed and used. Both have the same version.
func TestClientPackages(t *testing.T) {
	dir := t.TempDir()
	do(t, ".", "cp", "-r", filepath.Join(root(t), "clients"), dir)
	python := filepath.Join(dir, "env", "bin", "python")
	do(t, dir, "python3", "-m", "venv", "env")
	do(t, dir, python, "-m", "pip", "install", "-q", "build")
	do(t, dir, python, "-m", "build", "--outdir", filepath.Join(dir, "built"), filepath.Join(dir, "clients", "python"))
	wheels, err := filepath.Glob(filepath.Join(dir, "built", "sluice-*.whl"))
	sources, err2 := filepath.Glob(filepath.Join(dir, "built", "sluice-*.tar.gz"))
	if err != nil || err2 != nil || len(wheels) != 1 || len(sources) != 1 {
		t.Fatalf("it built %v and %v", wheels, sources)
	}
	do(t, dir, python, "-m", "pip", "install", "-q", wheels[0])
	py := strings.TrimSpace(do(t, dir, python, "-c", "import sluice, importlib.resources as r; assert r.files('sluice').joinpath('py.typed').is_file(); print(sluice.__version__)"))

	tarball := strings.TrimSpace(do(t, filepath.Join(dir, "clients", "typescript"), "npm", "pack", "--silent", "--pack-destination", filepath.Join(dir, "built")))
	app := filepath.Join(dir, "app")
	if err := os.Mkdir(app, 0o700); err != nil {
		t.Fatal(err)
	}
	do(t, app, "npm", "init", "-y")
	do(t, app, "npm", "install", "--silent", "--no-audit", "--no-fund", filepath.Join(dir, "built", tarball))
	do(t, app, "node", "--input-type=module", "-e", "import * as sluice from '@sluicehq/client'; if (Object.keys(sluice).length === 0) process.exit(1)")
	for _, file := range []string{"index.d.ts", "README.md"} {
		if _, err := os.Stat(filepath.Join(app, "node_modules", "@sluicehq", "client", file)); err != nil {
			t.Error(err)
		}
	}
	ts := strings.TrimSpace(do(t, app, "node", "-p", "require('./node_modules/@sluicehq/client/package.json').version"))
	if py != ts {
		t.Errorf("the Python client is %s, the TypeScript client %s", py, ts)
	}
}
