//go:build slow && linux

package install

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func sums(t *testing.T, dir string) []string {
	t.Helper()
	do(t, dir, "sha256sum", "-c", "--quiet", "SHA256SUMS")
	text, err := os.ReadFile(filepath.Join(dir, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// What is compiled anew from another clone, with an empty cache, another time zone and other rights for new files, is the same to the byte.
func TestReleaseIsReproducible(t *testing.T) {
	dist := native(t)
	said := do(t, dist, "./linux_"+runtime.GOARCH+"/sluice", "--version")
	if !strings.HasPrefix(said, "sluice "+version+" ") {
		t.Errorf("it says that it is %q", said)
	}
	other := clone(t, "in a much longer place")
	doWith(t, other, []string{"GOCACHE=" + t.TempDir(), "TZ=Asia/Kolkata", "GOFLAGS=", "LC_ALL=C"},
		"sh", "-c", `umask 077 && exec go run ./scripts/release "$@"`, "sh", "-version", version, "-targets", "linux/"+runtime.GOARCH)
	first, second := sums(t, dist), sums(t, filepath.Join(other, "dist"))
	if len(first) != 2 { // an archive and its bill of materials
		t.Errorf("there are %d files: %s", len(first), first)
	}
	if !slices.Equal(first, second) {
		t.Errorf("two builds differ:\n%s\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
}

// The archive holds the licences of everything that its bill of materials lists, and the bill names them.
func TestArchiveHasAllLicences(t *testing.T) {
	name := filepath.Join(native(t), "sluice_"+strings.TrimPrefix(version, "v")+"_linux_"+runtime.GOARCH)
	from := filepath.Base(name)
	texts := do(t, ".", "tar", "-xzOf", name+".tar.gz", from+"/LICENSE", from+"/THIRD_PARTY_LICENSES.txt")
	text, err := os.ReadFile(name + ".cdx.json")
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		Components []struct {
			Name, Version string
			Licenses      []struct{ Expression string }
		}
	}
	if err := json.Unmarshal(text, &bill); err != nil || len(bill.Components) < 50 {
		t.Fatalf("%d components (%v)", len(bill.Components), err)
	}
	for _, c := range bill.Components {
		if len(c.Licenses) != 1 || !strings.Contains(texts, "\n"+c.Name+" "+c.Version+": "+c.Licenses[0].Expression+"\n") ||
			!strings.Contains(texts, "\n"+c.Name+" "+c.Version+": LICEN") {
			t.Errorf("%s %s: %v in the bill, and no such text", c.Name, c.Version, c.Licenses)
		}
	}
}

// Ruby takes the formula, and its install and test blocks work with the archive of this platform, which stands in for all of them here.
// Homebrew itself is not run.
func TestFormula(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "deploy", "homebrew", "sluice.rb.in"))
	if err != nil {
		t.Fatal(err)
	}
	number, dir := strings.TrimPrefix(version, "v"), t.TempDir()
	archive, err := os.ReadFile(filepath.Join(native(t), "sluice_"+number+"_linux_"+runtime.GOARCH+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	formula := strings.ReplaceAll(string(text), "@VERSION@", number)
	for _, platform := range []string{"darwin_amd64", "darwin_arm64", "linux_amd64", "linux_arm64"} {
		if err := os.WriteFile(filepath.Join(dir, "sluice_"+number+"_"+platform+".tar.gz"), archive, 0o600); err != nil {
			t.Fatal(err)
		}
		formula = strings.ReplaceAll(formula, "@SHA256_"+platform+"@", fmt.Sprintf("%x", sha256.Sum256(archive)))
	}
	file := filepath.Join(dir, "sluice.rb")
	if err := os.WriteFile(file, []byte(formula), 0o600); err != nil {
		t.Fatal(err)
	}
	arch := map[string]string{"amd64": "intel", "arm64": "arm"}[runtime.GOARCH]
	do(t, ".", "ruby", "-c", file)
	t.Log(strings.TrimSpace(do(t, ".", "ruby", "testdata/homebrew.rb", file, dir, t.TempDir(), arch)))
}

const checkBill = `
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read())
sys.exit(str(fault) if fault else 0)
`

// The bill of materials fits the schema of CycloneDX, as its own library has it.
func TestBillFitsItsSchema(t *testing.T) {
	bills, err := filepath.Glob(filepath.Join(native(t), "*.cdx.json"))
	if err != nil || len(bills) != 1 {
		t.Fatalf("%v, %v", bills, err)
	}
	dir := t.TempDir()
	do(t, dir, "python3", "-m", "venv", "env")
	python := filepath.Join(dir, "env", "bin", "python")
	do(t, dir, python, "-m", "pip", "install", "-q", "cyclonedx-python-lib[json-validation]==11.12.0")
	do(t, dir, python, "-c", checkBill, bills[0])
	text, err := os.ReadFile(bills[0])
	if err != nil {
		t.Fatal(err)
	}
	wrong := filepath.Join(dir, "wrong.json")
	if err := os.WriteFile(wrong, []byte(strings.Replace(string(text), `"type": "application"`, `"type": "program"`, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := attempt(t.Context(), dir, nil, python, "-c", checkBill, wrong); err == nil {
		t.Errorf("a wrong bill is taken: %s", out)
	}
}
