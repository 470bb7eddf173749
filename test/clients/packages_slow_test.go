//go:build slow && linux

package clients_test

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
)

// Checkers of types and packages, as they were when the clients were last changed for them.
var (
	fromPyPI = []string{"build==1.6.1", "mypy==2.4.1", "pyright==1.1.414", "setuptools==84.2.1", "twine==7.0.0", "wheel==0.47.0"}
	// What adapters are for, for the checkers of types.
	adapted = []string{"aiohttp==3.14.5", "celery==5.7.0", "httpx==0.28.1", "httpx2==2.16.2", "langchain-core==1.7.2", "litellm==1.83.0", "llama-index-core==0.14.25", "pydantic-ai-slim==2.68.0", "requests==2.34.2", "temporalio==1.35.0", "types-requests"}
	fromNPM = []string{"@arethetypeswrong/cli@0.18.5", "@types/node@26.6.6", "publint@0.3.25", "typescript@7.0.2"}
)

// oldNode cannot require ES modules. Later ones of 20 can.
const oldNode = "20.9.0"

// do runs a program in a directory and returns what it prints.
func do(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.WaitDelay = dir, built.StopWithin
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// copied copies directories of this repository to an empty one.
func copied(t *testing.T, from ...string) string {
	t.Helper()
	dir := t.TempDir()
	do(t, ".", "cp", append(append([]string{"-r"}, from...), dir)...)
	return dir
}

// found is the one file of a pattern.
func found(t *testing.T, pattern ...string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(pattern...))
	if err != nil || len(files) != 1 {
		t.Fatalf("%v: %v, %v", pattern, files, err)
	}
	return files[0]
}

func same(t *testing.T, a, b string) {
	t.Helper()
	if !bytes.Equal(read(t, a), read(t, b)) {
		t.Errorf("%s is not %s", a, b)
	}
}

// The Python client builds as a package without a warning. It has its licence and its types, and type checkers are content with it, with its
// tests and with a program that uses it.
func TestPythonPackage(t *testing.T) {
	dir := copied(t, filepath.Join(clients, "python"), "testdata/types")
	source, types := filepath.Join(dir, "python"), filepath.Join(dir, "types")
	do(t, dir, "python3", "-m", "venv", "env")
	bin := filepath.Join(dir, "env", "bin")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH")) // pyright looks for packages with the python that is there
	do(t, dir, "pip", append([]string{"install", "-q", "--disable-pip-version-check"}, fromPyPI...)...)
	if said := do(t, dir, "python", "-m", "build", "--no-isolation", "--outdir", "built", source); strings.Contains(strings.ToLower(said), "deprecat") {
		t.Errorf("it builds, but says:\n%s", said)
	}
	wheel := found(t, dir, "built", "sluice_gate-*.whl")
	do(t, dir, "twine", "check", "--strict", wheel, found(t, dir, "built", "sluice_gate-*.tar.gz"))
	do(t, dir, "pip", "install", "-q", "--no-deps", wheel)
	info := found(t, dir, "env/lib/python3*/site-packages/sluice_gate-*.dist-info")
	same(t, filepath.Join(info, "licenses", "LICENSE"), "../../LICENSE")
	if meta := read(t, info, "METADATA"); !bytes.Contains(meta, []byte("\nLicense-Expression: Apache-2.0\n")) {
		t.Errorf("it has no licence that tools can read:\n%s", meta)
	}

	do(t, dir, "pip", append([]string{"install", "-q", "--disable-pip-version-check"}, adapted...)...)
	do(t, source, "mypy", "--strict", "sluice", "tests")
	do(t, source, "pyright", "sluice", "tests")
	do(t, types, "mypy", "--strict", "program.py")
	do(t, types, "pyright", "program.py")
	if said := do(t, types, "pyright", "--verifytypes", "sluice", "--ignoreexternal"); !strings.Contains(said, "Type completeness score: 100%") {
		t.Errorf("not everything has a type:\n%s", said)
	}
}

// The TypeScript client packs as a package that its checkers find no fault with. It has its licence and its types, which need no others; it
// is imported, and required also by a Node without require(esm).
func TestTypeScriptPackage(t *testing.T) {
	dir := copied(t, filepath.Join(clients, "typescript"), "testdata/types")
	source, app := filepath.Join(dir, "typescript"), filepath.Join(dir, "types")
	tarball := filepath.Join(dir, do(t, source, "npm", "pack", "--silent", "--pack-destination", dir))
	do(t, app, "npm", "init", "-y")
	node := "node-linux-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	do(t, app, "npm", append([]string{"install", "--ignore-scripts", "--no-audit", "--no-fund", tarball, node + "@" + oldNode}, fromNPM...)...)
	same(t, filepath.Join(app, "node_modules/@sluicehq/sluice/LICENSE"), "../../LICENSE")
	tool := func(name string, args ...string) {
		t.Helper()
		do(t, app, filepath.Join(app, "node_modules", ".bin", name), args...)
	}
	tool("publint", "run", tarball, "--strict")
	tool("attw", tarball)
	for _, with := range [][]string{
		{"--lib", "es2022", "--types", "", "program.mts", "required.cts"},
		{"--lib", "es2022,dom", "--types", "", "program.mts", "required.cts", "fetching.mts"},
		{"--lib", "es2022", "--types", "node", "program.mts", "required.cts", "fetching.mts", "nodes.mts"},
	} {
		tool("tsc", append([]string{"--noEmit", "--strict", "--exactOptionalPropertyTypes", "--skipLibCheck", "false", "--module", "nodenext", "--target", "es2022"}, with...)...)
	}
	const program = "if (new sluice.Client({ url: 'http://127.0.0.1:1' }).url !== 'http://127.0.0.1:1') process.exit(1)"
	for _, node := range []string{"node", filepath.Join(app, "node_modules", node, "bin", "node")} {
		do(t, app, node, "--input-type=module", "-e", "import * as sluice from '@sluicehq/sluice'; "+program)
		do(t, app, node, "--input-type=commonjs", "-e", "const sluice = require('@sluicehq/sluice'); "+program)
	}
}
