// Package light_test checks what keeps the command small and quick to start.
package light_test

import (
	"bytes"
	"debug/buildinfo"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/built"
)

// binary is the command, without what debuggers need.
var binary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &binary)) }

// mostBytes bounds the stripped binary for Linux on amd64. docs/install.md says what it consists of.
const mostBytes = 31_000_000

func TestSize(t *testing.T) {
	t.Parallel()
	info, err := os.Stat(binary)
	if err != nil {
		t.Fatal(err)
	}
	if n := info.Size(); n > mostBytes && runtime.GOOS == "linux" && runtime.GOARCH == "amd64" {
		t.Errorf("the binary has %d bytes, at most %d are allowed: go tool nm -size -sort size shows what is in it", n, mostBytes)
	}
}

// A package that looks for methods by a name which it learns at run time makes the linker keep every exported method of the program: a third
// more bytes. The templates do so when they are executed. Nothing calls these three methods, so they are there only if all are.
func TestMethodsThatNothingCallsAreLeftOut(t *testing.T) {
	t.Parallel()
	program, err := os.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(program, []byte("\x00net/http.(*Client).Do\x00")) {
		t.Fatal("names of functions are not found as they are written")
	}
	for _, name := range []string{"net/http.(*Client).PostForm", "math/big.(*Int).Binomial", "text/template.(*Template).ExecuteTemplate"} {
		if bytes.Contains(program, []byte("\x00"+name+"\x00")) {
			t.Errorf("%s is linked in: go build -ldflags=-dumpdep prints <ReflectMethod> after the functions that can cause it", name)
		}
	}
}

// No package of the command imports a template, or what has one, besides cobra: it needs them only for help that the caller words.
func TestTemplatesAreNotImported(t *testing.T) {
	t.Parallel()
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-tags=grpcnotrace", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./cmd/sluice")
	list.Dir = filepath.Join("..", "..")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string][]string{"text/template": {"github.com/spf13/cobra", "html/template"}}
	seen := 0
	for line := range strings.Lines(string(out)) {
		seen++
		words := strings.Fields(line)
		for _, heavy := range []string{"html/template", "text/template", "golang.org/x/net/trace", "github.com/kedacore/keda/v2/pkg/scalers/externalscaler", "testing"} {
			if slices.Contains(words[1:], heavy) && !slices.Contains(allowed[heavy], words[0]) {
				t.Errorf("%s imports %s", words[0], heavy)
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d packages were listed", seen)
	}
}

// Everything that builds the command sets its tag. This file and the builder of older versions are left out.
func TestTheTagIsSet(t *testing.T) {
	t.Parallel()
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "-tags", Value: "grpcnotrace"}) {
		t.Errorf("the binary of tests was built with %v", info.Settings)
	}
	builds, found := regexp.MustCompile(`(?i)build\b.*cmd/sluice\b`), 0
	root := os.DirFS(filepath.Join("..", ".."))
	err = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || path == "bin" || path == "dist" || path == "docs" || path == "test/light") {
				return fs.SkipDir
			}
			return nil
		}
		if path == "scripts/previous" || name != "Makefile" && filepath.Ext(name) != ".go" && !strings.HasPrefix(path, "scripts/") {
			return nil
		}
		text, err := fs.ReadFile(root, path)
		for line := range strings.Lines(string(text)) {
			if builds.MatchString(line) {
				found++
				if !strings.Contains(line, "grpcnotrace") && !strings.Contains(line, "$(TAGS)") && !strings.Contains(line, `"-tags", tags`) {
					t.Errorf("%s builds the command without its tag: %s", path, line)
				}
			}
		}
		return err
	})
	if err != nil || found < 10 {
		t.Errorf("%d places that build the command, %v", found, err)
	}
}

// Most of what packages set up before main is for other commands than the one that runs. This counts bytes and not time, so a busy machine
// changes nothing.
func TestLittleIsSetUpBeforeMain(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), binary, "version")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	all := 0
	for _, m := range regexp.MustCompile(`(?m)^init (\S+) @.* ([0-9]+) bytes, [0-9]+ allocs$`).FindAllStringSubmatch(said.String(), -1) {
		n, err := strconv.Atoi(m[2])
		if err != nil {
			t.Fatal(err)
		}
		all += n
		if n > 100<<10 && strings.HasPrefix(m[1], "github.com/sluicehq/") {
			t.Errorf("%s allocates %d bytes before main: do it when it is needed (sync.OnceValue, internal/lazyregexp)", m[1], n)
		}
	}
	if all < 100<<10 || all > 2<<20 {
		t.Errorf("%d bytes are allocated before main, want at most 2 MB", all)
	}
}

// A command that ends at once collects no garbage.
func TestOneShotCommandsCollectNoGarbage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := filepath.Join(dir, "sluice.yaml")
	if err := os.WriteFile(config, []byte("resources: {api: {limits: [{name: minute, size: 100/min}]}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"acquire", "api"}, {"status"}, {"--help"}} {
		cmd := exec.CommandContext(t.Context(), binary, append(args, "--config", config, "--store", "file:"+filepath.Join(dir, "store"))...)
		cmd.Env = built.Env(dir, "GODEBUG=gctrace=1")
		out, err := cmd.CombinedOutput()
		if err != nil || bytes.Contains(out, []byte("gc 1 @")) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}
