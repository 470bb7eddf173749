package purity

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var (
	outside = []string{"net", "os", "syscall"}
	core    = []string{"internal/flat", "internal/pause", "internal/meter", "internal/oplog", "internal/order", "internal/policy", "internal/pool"}
)

func rules() []Rule {
	all := []Rule{
		// A program chooses its store by importing it; the library must not choose.
		{Dir: ".", Never: storeImplementations()},
		{Dir: "sim", Never: []string{"net"}},
		{Dir: "lab/world", Never: outside},
		{Dir: "retry", Only: []string{}, Never: outside, NoClock: true},
		{Dir: "provider", Only: []string{Module, Module + "/store", Module + "/retry"}, Never: outside, NoClock: true},
		{Dir: "store", Only: []string{}, Never: outside, NoClock: true},
		// What entries of a log mean is decided without knowing which engine keeps it, and the store on it knows none either.
		{Dir: "internal/sharedlog", Only: paths("store"), Never: outside, NoClock: true},
		{Dir: "internal/replica", Only: paths("internal/flat", "internal/oplog", "internal/pool", "internal/sharedlog", "store"), Never: outside, NoClock: true},
		{
			Dir:   "store/logstore",
			Only:  append(paths("internal/meter", "internal/policy", "internal/pool", "internal/replica", "internal/sharedlog", "internal/sleep", "internal/statedir", "store"), "golang.org/x/sys/unix"),
			Never: []string{"net"},
		},
	}
	for _, dir := range core {
		all = append(all, Rule{Dir: dir, Only: paths(append(core, "store")...), Never: outside, NoClock: true})
	}
	return all
}

// paths are the import paths of directories.
func paths(dirs ...string) (all []string) {
	for _, dir := range dirs {
		all = append(all, Module+"/"+dir)
	}
	return all
}

func storeImplementations() []string {
	var paths []string
	for _, name := range []string{"memstore", "filestore", "logstore", "redisstore", "remotestore"} {
		paths = append(paths, Module+"/store/"+name)
	}
	return paths
}

func TestThatWhichDecidesIsPure(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, rule := range rules() {
		dir := filepath.Join("..", "..", filepath.FromSlash(rule.Dir))
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			source, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			complaints, err := rule.Check(name, source)
			if err != nil {
				t.Fatal(err)
			}
			for _, complaint := range complaints {
				t.Errorf("%s:%s", strings.TrimPrefix(filepath.ToSlash(name), "../../"), complaint)
			}
			checked++
		}
	}
	if checked == 0 {
		t.Error("no file was checked: have the directories moved?")
	}
}

func TestCheckSeesWhatItForbids(t *testing.T) {
	t.Parallel()
	rule := Rule{Only: []string{Module + "/store"}, Never: outside, NoClock: true}
	tests := []struct {
		name, source string
		want         []string
	}{
		{"pure", "import \"time\"\nvar d = time.Second\nfunc f(t time.Time) bool { return t.After(t) }", nil},
		{"contract", `import "` + Module + `/store"`, nil},
		{"implementation", `import "` + Module + `/store/memstore"`, []string{"2: imports " + Module + "/store/memstore"}},
		{"dependency", `import "example.com/x"`, []string{"2: imports example.com/x"}},
		{"below a refused package", `import "net/http"`, []string{"2: imports net/http"}},
		{"only its prefix is refused", `import "ossify"`, nil},
		{"clock", "import \"time\"\nvar now = time.Now", []string{"3: uses time.Now"}},
		{"clock by another name", "import c \"time\"\nfunc f() { c.Sleep(1) }", []string{"3: uses time.Sleep"}},
		{"dot", "import . \"time\"\nvar now = Now", []string{"1: imports time with a dot, which hides the clock"}},
	}
	for _, test := range tests {
		got, err := rule.Check("x.go", "package x\n"+test.source)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, %v; want %q", test.name, got, err, test.want)
		}
	}
}

// The library brings no server with it: whoever imports it gets neither the MCP SDK nor what the daemon needs.
func TestTheLibraryDependsOnLittle(t *testing.T) {
	t.Parallel()
	list := func(packages ...string) []string {
		out, err := exec.Command("go", append([]string{"list", "-deps"}, packages...)...).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.Fields(string(out))
	}
	servers := []string{
		"github.com/modelcontextprotocol/", "github.com/google/jsonschema-go/", "google.golang.org/grpc", "github.com/prometheus/", "github.com/spf13/cobra", Module + "/daemon", Module + "/cmd",
	}
	for _, path := range list(Module, Module+"/store/memstore", Module+"/store/filestore", Module+"/store/redisstore", Module+"/store/remotestore", Module+"/sluicehttp") {
		if path == Module+"/daemon/storeapi" || path == Module+"/daemon/api" {
			continue
		}
		for _, server := range servers {
			if strings.HasPrefix(path, server) {
				t.Errorf("the library depends on %s", path)
			}
		}
	}
	if !slices.ContainsFunc(list(Module+"/daemon"), func(path string) bool { return strings.HasPrefix(path, servers[0]) }) {
		t.Error("the daemon does not depend on the MCP SDK: has it moved?")
	}
}
