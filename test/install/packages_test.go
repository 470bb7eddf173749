//go:build slow && linux

package install

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
