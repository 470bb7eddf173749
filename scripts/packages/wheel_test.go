package main

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// wheelOf builds a wheel around a file in place of the binary.
func wheelOf(t *testing.T, binary string, age time.Duration) []byte {
	t.Helper()
	b := &build{version: "v1.2.3-rc.1", made: time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC), dir: t.TempDir()}
	b.targets = []target{{"linux", "amd64", filepath.Join(b.dir, "linux_amd64")}}
	if err := os.Mkdir(b.targets[0].dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"sluice": binary, "THIRD_PARTY_LICENSES.txt": "texts"} {
		file := filepath.Join(b.targets[0].dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.wheels(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(b.dir, "sluice_gate-1.2.3rc1-py3-none-manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64.whl"))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// A wheel depends on its content alone. Its record has every file, and it has the version, the licences and the extras.
func TestWheel(t *testing.T) {
	t.Chdir("../..")
	wheel := wheelOf(t, "a program", 0)
	if !bytes.Equal(wheel, wheelOf(t, "a program", time.Hour)) || bytes.Equal(wheel, wheelOf(t, "another", 0)) {
		t.Error("the content alone does not make the wheel")
	}
	r, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
		if executable := f.Mode().Perm() == 0o755; executable != strings.HasSuffix(f.Name, "/scripts/sluice") {
			t.Errorf("%s has mode %v", f.Name, f.Mode())
		}
	}
	const info = "sluice_gate-1.2.3rc1.dist-info/"
	for name, want := range map[string]string{
		"sluice/__init__.py": `__version__ = "1.2.3rc1"`, "sluice/py.typed": "", "sluice/httpx.py": "import httpx", "sluice_gate-1.2.3rc1.data/scripts/sluice": "a program",
		info + "METADATA": "\nProvides-Extra: httpx\nRequires-Dist: httpx>=", info + "WHEEL": "\nTag: py3-none-musllinux_1_1_x86_64\n", info + "licenses/LICENSE": "Apache License",
		info + "licenses/THIRD_PARTY_LICENSES.txt": "texts", info + "entry_points.txt": "sluice-gate = sluice.__main__:main",
	} {
		if text, there := files[name]; !there || !strings.Contains(text, want) {
			t.Errorf("%s has not %q: %.500s", name, want, text)
		}
	}
	rows, err := csv.NewReader(strings.NewReader(files[info+"RECORD"])).ReadAll()
	if err != nil || len(rows) != len(files) {
		t.Errorf("the record has %d rows for %d files (%v)", len(rows), len(files), err)
	}
}

func TestPythonVersions(t *testing.T) {
	for version, want := range map[string]string{"v0.1.0": "0.1.0", "v1.2.3-rc.1": "1.2.3rc1", "v1.0.0-beta2": "1.0.0b2", "v0.0.0-0123456789ab": "0.0.0+0123456789ab", "v1.0.0-My-Fix": "1.0.0+my.fix"} {
		if got := pythonVersion(version); got != want {
			t.Errorf("%s is %s, not %s", version, got, want)
		}
	}
}

func TestUnknownPackagesAreRefused(t *testing.T) {
	if err := run(t.Context(), []string{"-only", "rpm", "-built"}); err == nil || !strings.Contains(err.Error(), "rpm") {
		t.Error(err)
	}
}
