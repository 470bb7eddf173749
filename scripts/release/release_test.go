package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// What is published depends on the commit alone.
func TestArchivesDependOnTheirContentAlone(t *testing.T) {
	made := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	pack := func(name string, age time.Duration) (tarred, zipped []byte) {
		file := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(file, []byte("a program"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, time.Now().Add(-age), time.Now().Add(-age)); err != nil {
			t.Fatal(err)
		}
		content := []entry{{"sluice", file, 0o755}}
		var a, b bytes.Buffer
		if err := packTar(&a, "sluice_1", content, made); err != nil {
			t.Fatal(err)
		}
		if err := packZip(&b, "sluice_1", content, made); err != nil {
			t.Fatal(err)
		}
		return a.Bytes(), b.Bytes()
	}
	tar1, zip1 := pack("x", 0)
	tar2, zip2 := pack("y", time.Hour)
	if !bytes.Equal(tar1, tar2) || !bytes.Equal(zip1, zip2) {
		t.Error("the same content gives different archives")
	}
	zr, err := gzip.NewReader(bytes.NewReader(tar1))
	if err != nil {
		t.Fatal(err)
	}
	tr := tar.NewReader(zr)
	head, err := tr.Next()
	if err != nil || head.Name != "sluice_1/sluice" || head.Mode != 0o755 || !head.ModTime.Equal(made) {
		t.Errorf("the archive has %+v (%v)", head, err)
	}
	if text, _ := io.ReadAll(tr); string(text) != "a program" {
		t.Errorf("it has %q", text)
	}
	r, err := zip.NewReader(bytes.NewReader(zip1), int64(len(zip1)))
	if err != nil || len(r.File) != 1 || r.File[0].Mode().Perm() != 0o755 {
		t.Errorf("the zip has %v (%v)", r.File, err)
	}
}

func TestBillNamesEveryModule(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	r := release{version: "v1.2.3", made: time.Unix(0, 0).UTC()}
	if err := billOf(&out, self, nil, &r); err == nil || !strings.Contains(err.Error(), "licence") {
		t.Errorf("there is a bill with components whose licence is not known (%v)", err)
	}
	std := linked{name: "std", version: strings.TrimPrefix(runtime.Version(), "go"), licence: "BSD-3-Clause"}
	out.Reset()
	if err := billOf(&out, self, []linked{std}, &r); err != nil {
		t.Fatal(err)
	}
	var b bill
	if err := json.Unmarshal(out.Bytes(), &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Metadata.Component.Version != "1.2.3" || len(b.Components) == 0 || b.Components[0].Name != "std" || b.Components[0].Licences[0].Expression != "BSD-3-Clause" {
		t.Errorf("the bill is %s", out.String())
	}
}

func TestVersionsAreChecked(t *testing.T) {
	for _, version := range []string{"1.2.3", "v1", "v1.2.3 --x"} {
		if err := run(t.Context(), []string{"-out", t.TempDir(), "-version", version}); err == nil {
			t.Errorf("%q is taken for a version", version)
		}
	}
	if err := run(t.Context(), []string{"-out", t.TempDir(), "-targets", "linux"}); err == nil {
		t.Error("a target without an architecture is taken")
	}
}

// The formula has the version and the checksum of every archive that it names. Without one of them there is none.
func TestFormulaIsFilledIn(t *testing.T) {
	t.Chdir("../..") // where the template is
	r := release{version: "v1.2.3", dir: t.TempDir()}
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64"} {
		if err := r.formula(); err != nil || slices.Contains(r.files, "sluice.rb") {
			t.Fatalf("there is a formula without the archive of %s (%v)", platform, err)
		}
		if err := r.write("sluice_1.2.3_"+platform+".tar.gz", func(f *os.File) error { _, err := f.WriteString(platform); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.formula(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.dir, "sluice.rb"))
	if err != nil || strings.Contains(string(text), "@") || !strings.Contains(string(text), `version "1.2.3"`) {
		t.Errorf("the formula is not filled in (%v):\n%s", err, text)
	}
	for _, name := range r.files[:4] {
		if sum, err := r.sum(name); err != nil || strings.Count(string(text), sum) != 1 {
			t.Errorf("the sum of %s is not in the formula (%v)", name, err)
		}
	}
}
