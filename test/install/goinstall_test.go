//go:build slow && linux

package install

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// A checkout builds with make.
func TestMakeBuild(t *testing.T) {
	dir := clone(t, "clone")
	do(t, dir, "make", "build")
	if said := do(t, dir, "bin/sluice", "--version"); !strings.HasPrefix(said, "sluice ") {
		t.Errorf("it says %q", said)
	}
}

// The command of the README, as it stands there, installs Sluice on a bare Debian that has Go and nothing else: no git, no compiler, no
// make. The go command takes the module as a stranger gets it, from a proxy that has it from a repository.
func TestGoInstallOnABareDebian(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(root(t), "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	install := regexp.MustCompile(`(?m)^go install \S+@latest`).FindString(string(readme))
	if install == "" {
		t.Fatal("the README does not say how to install it")
	}
	dir := clone(t, "clone")
	do(t, dir, "git", "tag", version)
	modules, empty := filepath.Join(t.TempDir(), "modules"), t.TempDir()
	published := []string{
		"GOMODCACHE=" + modules, "GOFLAGS=-modcacherw", "GOPRIVATE=github.com/sluicehq/*", "GOWORK=off",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url.file://" + dir + ".insteadOf", "GIT_CONFIG_VALUE_0=https://github.com/sluicehq/sluice",
	}
	doWith(t, empty, published, "go", "list", "-m", "-versions", "github.com/sluicehq/sluice")
	doWith(t, empty, published, "go", "mod", "download", "github.com/sluicehq/sluice@latest")

	do(t, root(t), "go", "mod", "download") // what it depends on
	goroot, have, cache := strings.TrimSpace(do(t, ".", "go", "env", "GOROOT")), strings.TrimSpace(do(t, ".", "go", "env", "GOMODCACHE")), strings.TrimSpace(do(t, ".", "go", "env", "GOCACHE"))
	args := append([]string{
		"run", "--rm", "--network", "none",
		"-v", goroot + ":/usr/local/go:ro", "-v", filepath.Join(modules, "cache/download") + ":/published:ro",
		"-v", filepath.Join(have, "cache/download") + ":/others:ro", "-v", cache + ":/cache",
		// The cache of this machine saves minutes. Paths would keep it from being used. It must not remember the files of the module:
		// each commit is published under the same version here.
		"-e", "GOCACHE=/cache", "-e", "GODEBUG=goindex=0", "-e", "GOFLAGS=-trimpath", "-e", "GOPROXY=file:///published,file:///others", "-e", "GOSUMDB=off", "-e", "GOTOOLCHAIN=local",
	}, limits...)
	said := podman(t, append(args, debian(t), "sh", "-euc", `export PATH="$PATH:/usr/local/go/bin:$HOME/go/bin"
! command -v git && ! command -v cc && ! command -v make
`+install+`
sluice --version
sluice run -- sh -c 'echo "$ANTHROPIC_BASE_URL"'
sluice simulate --help >/dev/null`)...)
	if !strings.Contains(said, "sluice "+version+" ") || !strings.Contains(said, "http://127.0.0.1:") {
		t.Errorf("it says %s", said)
	}
}
