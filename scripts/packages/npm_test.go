package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// packedFiles returns the files of a tarball with their modes.
func packedFiles(t *testing.T, place string) (content map[string][]byte, modes map[string]int64) {
	t.Helper()
	data, err := os.ReadFile(place)
	if err != nil {
		t.Fatal(err)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	content, modes = map[string][]byte{}, map[string]int64{}
	for r := tar.NewReader(unzipped); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return content, modes
		}
		if err != nil {
			t.Fatal(err)
		}
		if content[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.Mode
	}
}

// The packages are the same whenever they are built. Each platform's brings its binary and all licences, and the package that people install
// names them all.
func TestNPMPackages(t *testing.T) {
	t.Chdir("../..")
	binaries := t.TempDir()
	for name, text := range map[string]string{"sluice": "a binary", "sluice.exe": "a binary", "THIRD_PARTY_LICENSES.txt": "licences"} {
		if err := os.WriteFile(filepath.Join(binaries, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	made := time.Date(2026, 11, 20, 1, 2, 3, 0, time.UTC)
	var first map[string][]byte
	for range 2 {
		b := build{version: "v1.2.3", made: made, dir: t.TempDir(), targets: []target{{"linux", "amd64", binaries}, {"windows", "arm64", binaries}}}
		if err := b.npm(); err != nil {
			t.Fatal(err)
		}
		names, err := filepath.Glob(filepath.Join(b.dir, "*.tgz"))
		if err != nil || len(names) != 3 {
			t.Fatal(names, err)
		}
		all := map[string][]byte{}
		for _, name := range names {
			if all[filepath.Base(name)], err = os.ReadFile(name); err != nil {
				t.Fatal(err)
			}
		}
		if first == nil {
			first = all
			check(t, b.dir)
		}
		for name, data := range all {
			if !bytes.Equal(data, first[name]) {
				t.Errorf("%s differs the second time", name)
			}
		}
	}
}

func check(t *testing.T, dir string) {
	t.Helper()
	content, modes := packedFiles(t, filepath.Join(dir, "sluicehq-sluice-linux-x64-1.2.3.tgz"))
	if string(content["package/bin/sluice"]) != "a binary" || modes["package/bin/sluice"] != 0o755 || string(content["package/THIRD_PARTY_LICENSES.txt"]) != "licences" || len(content["package/LICENSE"]) == 0 {
		t.Errorf("the package of a platform has %v", modes)
	}
	var about struct {
		Name, Version, License string
		OS, CPU                []string
		Optional               map[string]string `json:"optionalDependencies"`
	}
	if err := json.Unmarshal(content["package/package.json"], &about); err != nil || about.Name != "@sluicehq/sluice-linux-x64" || about.Version != "1.2.3" || about.License != "Apache-2.0" || !slices.Equal(about.OS, []string{"linux"}) || !slices.Equal(about.CPU, []string{"x64"}) {
		t.Errorf("%+v %v", about, err)
	}
	if content, _ := packedFiles(t, filepath.Join(dir, "sluicehq-sluice-win32-arm64-1.2.3.tgz")); content["package/bin/sluice.exe"] == nil {
		t.Error("the package for Windows has no sluice.exe")
	}
	content, modes = packedFiles(t, filepath.Join(dir, "sluicehq-sluice-1.2.3.tgz"))
	if err := json.Unmarshal(content["package/package.json"], &about); err != nil || about.Name != "@sluicehq/sluice" || about.Version != "1.2.3" || len(about.Optional) != len(npmPlatforms) || about.Optional["@sluicehq/sluice-darwin-arm64"] != "1.2.3" {
		t.Errorf("%+v %v", about, err)
	}
	for _, name := range []string{"LICENSE", "README.md", "index.js", "index.mjs", "index.d.ts", "index.d.mts", "lib/fetch.js", "lib/binary.js"} {
		if len(content["package/"+name]) == 0 {
			t.Errorf("%s is missing", name)
		}
	}
	if modes["package/bin/sluice.js"] != 0o755 || content["package/test/fetch.test.mjs"] != nil {
		t.Errorf("the package has %v", modes)
	}
}
