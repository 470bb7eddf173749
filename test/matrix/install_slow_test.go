//go:build slow && linux

package matrix_test

import (
	"archive/zip"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Managers of packages.
const (
	fromNPM   = "npm"
	fromPyPI  = "pypi"
	fromGo    = "go"
	fromAPT   = "apt"
	fromCargo = "cargo"
	fromMaven = "maven"
)

// source is where a client comes from: a package, which has its version, and others that it needs.
type source struct {
	manager string
	name    string
	with    []string
	// program is what it is called; empty: programs with a library, from testdata.
	program string
}

const (
	installWithin = 20 * time.Minute
	// keptFor is how long an installed client counts as current.
	keptFor = 20 * time.Hour
	// olderToo is how many versions before the latest are tried if that cannot be installed.
	olderToo = 6
)

// cache is the directory of installed clients.
var cache = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv("SLUICE_CLIENTS_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	return filepath.Join(dir, "sluice-clients"), err
})

// product is an installed client of some version.
type product struct {
	tool
	version string
}

// installed has what became of each source.
var installed sync.Map

// install installs a client, unless it is there, and returns it.
func (s source) install() (*product, error) {
	id := strings.Join([]string{s.manager, s.name, s.program}, " ")
	once, _ := installed.LoadOrStore(id, sync.OnceValues(s.bring))
	return once.(func() (*product, error))()
}

func (s source) bring() (*product, error) {
	base, err := cache()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(base, s.manager, strings.NewReplacer("/", "-", "@", "").Replace(s.name))
	if s.manager == fromGo {
		dir = filepath.Join(base, s.manager, "ask") // one program has all modules
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	mark := filepath.Join(dir, ".installed") // written last
	info, err := os.Stat(mark)
	if err != nil || time.Since(info.ModTime()) > keptFor {
		if err := s.fetch(dir); err != nil {
			return nil, err
		}
		if err := os.WriteFile(mark, nil, 0o600); err != nil {
			return nil, err
		}
	}
	return s.find(dir)
}

// fetch installs the latest version into a directory.
func (s source) fetch(dir string) error {
	switch s.manager {
	case fromNPM:
		return s.npm(dir)
	case fromPyPI:
		if err := command(dir, "python3", "-m", "venv", "--clear", dir); err != nil {
			return err
		}
		return command(dir, filepath.Join(dir, "bin", "pip"), append([]string{"install", "--quiet", "--disable-pip-version-check", s.name}, s.with...)...)
	case fromGo:
		if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module ask\n\ngo 1.26\n"), 0o600); err != nil {
			return err
		}
		if err := copyFrom("testdata/go", dir); err != nil {
			return err
		}
		var latest []string
		for _, module := range append([]string{s.name}, s.with...) {
			latest = append(latest, module+"@latest")
		}
		if err := command(dir, "go", append([]string{"get"}, latest...)...); err != nil {
			return err
		}
		return command(dir, "go", "build", "-o", "ask", ".")
	case fromCargo:
		if err := copyFrom("testdata/rust", dir); err != nil {
			return err
		}
		if err := command(dir, "cargo", "update"); err != nil {
			return err
		}
		return command(dir, "cargo", "build", "--release")
	case fromMaven:
		if err := copyFrom("testdata/java", dir); err != nil {
			return err
		}
		return command(dir, "mvn", "-q", "-B", "-U", "-DskipTests", "package")
	case fromAPT:
		return command("../..", "scripts/need-intercept-tools", s.program)
	}
	return fmt.Errorf("nothing is known of %s", s.manager)
}

// npm installs the latest version that can be installed: a package for this platform may be missing at first.
func (s source) npm(dir string) error {
	if _, err := nodeDir(); err != nil {
		return err
	}
	versions := []string{"latest"}
	out, err := exec.Command("npm", "view", s.name, "versions", "--json").Output()
	if err == nil {
		var all []string
		if json.Unmarshal(out, &all) == nil {
			all = slices.DeleteFunc(all, func(v string) bool { return strings.Contains(v, "-") })
			slices.Reverse(all)
			versions = append(versions, all[min(1, len(all)):min(olderToo, len(all))]...)
		}
	}
	var errs []error
	for _, v := range versions {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		err := npmInstall(dir, append([]string{s.name + "@" + v}, s.with...)...)
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errs[0]
}

// find returns an installed client.
func (s source) find(dir string) (*product, error) {
	t := &product{tool: tool{path: dir}}
	var err error
	ask := func(program, file string) { t.argv, t.dir = []string{program, file}, dir }
	switch s.manager {
	case fromNPM:
		var node string
		if node, err = nodeDir(); err != nil {
			return nil, err
		}
		t.path = node
		var manifest struct{ Version string }
		text, err := os.ReadFile(filepath.Join(dir, "node_modules", s.name, "package.json"))
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &manifest); err != nil {
			return nil, err
		}
		t.version = manifest.Version
		if s.program != "" {
			t.argv = []string{filepath.Join(dir, "node_modules", ".bin", s.program)}
			return t, nil
		}
		ask(filepath.Join(node, "node"), "ask.mjs")
		text, err = os.ReadFile("testdata/node/ask.mjs")
		if err != nil {
			return nil, err
		}
		return t, os.WriteFile(filepath.Join(dir, "ask.mjs"), text, 0o600)
	case fromPyPI:
		name, _, _ := strings.Cut(s.name, "[")
		python := filepath.Join(dir, "bin", "python")
		t.path = filepath.Join(dir, "bin")
		if t.version, err = lineOf(python, "-c", "import importlib.metadata as m; print(m.version('"+name+"'))"); err != nil {
			return nil, err
		}
		if s.program != "" {
			t.argv = []string{filepath.Join(dir, "bin", s.program)}
			return t, nil
		}
		if err := os.MkdirAll(filepath.Join(dir, "ask"), 0o700); err != nil {
			return nil, err
		}
		ask(python, filepath.Join(dir, "ask", "ask.py"))
		return t, copyFrom("testdata/python", filepath.Join(dir, "ask"))
	case fromGo:
		t.version, err = lineOf("go", "list", "-C", dir, "-m", "-f", "{{.Version}}", s.name)
		t.argv, t.dir = []string{filepath.Join(dir, "ask")}, dir
	case fromCargo:
		t.version, err = lineOf("sh", "-c", "grep -A1 '^name = \""+s.name+"\"' "+filepath.Join(dir, "Cargo.lock")+" | tail -1 | cut -d'\"' -f2")
		t.argv, t.dir = []string{filepath.Join(dir, "target", "release", "ask")}, dir
	case fromMaven:
		t.argv, t.dir = []string{"java", "-jar", filepath.Join(dir, "target", "ask.jar")}, dir
		t.version, err = jarVersion(filepath.Join(dir, "target", "ask.jar"), s.name)
	case fromAPT:
		t.argv = []string{s.program}
		t.version, err = lineOf("dpkg-query", "-W", "-f", "${Version}", s.name)
	}
	return t, err
}

// nodeDir returns the directory of a current Node, from npm: that of the system may be too old for clients.
func nodeDir() (string, error) {
	base, err := cache()
	if err != nil {
		return "", err
	}
	pkg := nodePackage()
	dir := filepath.Join(base, fromNPM, "node")
	bin := filepath.Join(dir, "node_modules", pkg, "bin")
	if _, err := os.Stat(filepath.Join(bin, "node")); err == nil {
		return bin, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return bin, npmInstall(dir, pkg+"@24")
}

// npmInstall installs packages of npm, with the current Node if it is there: some do not install with an older one.
func npmInstall(dir string, packages ...string) error {
	return command(dir, "env", slices.Concat([]string{
		"PATH=" + filepath.Join(filepath.Dir(dir), "node", "node_modules", nodePackage(), "bin") + string(os.PathListSeparator) + os.Getenv("PATH"),
		"npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", dir,
	}, packages)...)
}

// nodePackage is Node for this machine. npm says x64.
func nodePackage() string { return "node-linux-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1) }

// command runs an installer.
func command(dir, name string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, tail(string(out)))
	}
	return nil
}

// lineOf returns the line that a program prints.
func lineOf(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).Output()
	return strings.TrimSpace(string(out)), err
}

// copyFrom copies the files of a directory, over those that are there.
func copyFrom(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.Join(to, strings.TrimPrefix(path, from))
		if d.IsDir() {
			return os.MkdirAll(at, 0o700)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(at, text, 0o600)
	})
}

// jarVersion returns the version of a library in a program's archive.
func jarVersion(file, library string) (string, error) {
	archive, err := zip.OpenReader(file)
	if err != nil {
		return "", err
	}
	defer func() { _ = archive.Close() }() // it was only read
	for _, f := range archive.File {
		if rest, ok := strings.CutPrefix(path.Base(f.Name), library+"-"); ok {
			return strings.TrimSuffix(rest, ".jar"), nil
		}
	}
	return "", fmt.Errorf("%s has no %s", file, library)
}
