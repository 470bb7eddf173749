package main

import (
	"archive/zip"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// client is the Python client, whose wheel brings the binary.
const client = "clients/python"

// platforms are the tags of wheels. The binary for Linux is static, so one wheel is for any C library. The versions of macOS are
// those that Go supports.
var platforms = map[string]string{
	"linux/amd64":   "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64",
	"linux/arm64":   "manylinux_2_17_aarch64.manylinux2014_aarch64.musllinux_1_1_aarch64",
	"darwin/amd64":  "macosx_12_0_x86_64",
	"darwin/arm64":  "macosx_12_0_arm64",
	"windows/amd64": "win_amd64",
	"windows/arm64": "win_arm64",
}

// wheels writes a wheel for each platform.
func (b *build) wheels() error {
	p, err := readProject(filepath.Join(client, "pyproject.toml"))
	if err != nil {
		return err
	}
	modules, err := b.modules()
	if err != nil {
		return err
	}
	for _, t := range b.targets {
		tag := platforms[t.system+"/"+t.arch]
		if tag == "" {
			return fmt.Errorf("%s/%s: wheels have no tag for this platform", t.system, t.arch)
		}
		name := fmt.Sprintf("%s-%s-py3-none-%s.whl", p.file(), pythonVersion(b.version), tag)
		if err := b.wheel(filepath.Join(b.dir, name), p, t, tag, modules); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Println(filepath.Join(b.dir, name))
	}
	return nil
}

// member is a file of a wheel.
type member struct {
	name string
	data []byte
	mode fs.FileMode
}

// modules are the files of the package, with the version of the release.
func (b *build) modules() ([]member, error) {
	var list []member
	err := fs.WalkDir(os.DirFS(client), "sluice", func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || path.Ext(name) != ".py" && path.Base(name) != "py.typed" {
			return err
		}
		data, err := os.ReadFile(filepath.Join(client, filepath.FromSlash(name)))
		if name == "sluice/__init__.py" {
			data = versionLine.ReplaceAll(data, []byte(`__version__ = "`+pythonVersion(b.version)+`"`))
		}
		list = append(list, member{name, data, 0o644})
		return err
	})
	return list, err
}

var versionLine = regexp.MustCompile(`(?m)^__version__ = ".*"$`)

func (b *build) wheel(file string, p *project, t target, tag string, modules []member) error {
	binary, err := os.ReadFile(filepath.Join(t.dir, t.binary()))
	if err != nil {
		return err
	}
	licence, err := os.ReadFile("LICENSE")
	if err != nil {
		return err
	}
	others, err := os.ReadFile(filepath.Join(t.dir, "THIRD_PARTY_LICENSES.txt"))
	if err != nil {
		return err
	}
	readme, err := os.ReadFile(filepath.Join(client, "README.md"))
	if err != nil {
		return err
	}
	version := pythonVersion(b.version)
	info, scripts := p.file()+"-"+version+".dist-info/", p.file()+"-"+version+".data/scripts/"
	list := append(slices.Clone(modules), []member{
		{scripts + t.binary(), binary, 0o755},
		{info + "METADATA", p.metadata(version, readme), 0o644},
		{info + "WHEEL", []byte("Wheel-Version: 1.0\nGenerator: sluice\nRoot-Is-Purelib: false\n" + tagLines(tag)), 0o644},
		{info + "entry_points.txt", []byte("[console_scripts]\n" + strings.Join(p.scripts, "\n") + "\n"), 0o644},
		{info + "licenses/LICENSE", licence, 0o644},
		{info + "licenses/THIRD_PARTY_LICENSES.txt", others, 0o644},
	}...)
	slices.SortStableFunc(list, func(a, b member) int { // dist-info last, as the specification asks
		return cmp.Or(cmp.Compare(strings.Count(a.name, info), strings.Count(b.name, info)), strings.Compare(a.name, b.name))
	})
	var record strings.Builder
	for _, m := range list {
		sum := sha256.Sum256(m.data)
		fmt.Fprintf(&record, "%s,sha256=%s,%d\n", m.name, base64.RawURLEncoding.EncodeToString(sum[:]), len(m.data))
	}
	fmt.Fprintf(&record, "%sRECORD,,\n", info)
	list = append(list, member{info + "RECORD", []byte(record.String()), 0o644})

	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, m := range list {
		head := zip.FileHeader{Name: m.name, Method: zip.Deflate, Modified: b.made}
		head.SetMode(m.mode)
		f, err := w.CreateHeader(&head)
		if err != nil {
			return err
		}
		if _, err := f.Write(m.data); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644) //nolint:gosec // it is published
}

// tagLines names each platform of a compressed tag.
func tagLines(tag string) string {
	var b strings.Builder
	for _, one := range strings.Split(tag, ".") {
		fmt.Fprintf(&b, "Tag: py3-none-%s\n", one)
	}
	return b.String()
}

var preRelease = regexp.MustCompile(`^(alpha|beta|rc)\.?([0-9]+)$`)

// pythonVersion returns a version as Python writes it: 0.1.0, 0.1.0rc1, or 0.0.0+REVISION.
func pythonVersion(version string) string {
	number, more, ok := strings.Cut(strings.TrimPrefix(version, "v"), "-")
	if !ok {
		return number
	}
	if m := preRelease.FindStringSubmatch(more); m != nil {
		return number + map[string]string{"alpha": "a", "beta": "b", "rc": "rc"}[m[1]] + m[2]
	}
	return number + "+" + strings.ToLower(strings.ReplaceAll(more, "-", "."))
}

// project is what pyproject.toml says of the package.
type project struct {
	name, summary, python string
	classifiers           []string
	scripts               []string            // NAME = MODULE:FUNCTION
	extras                map[string][]string // requirements by extra
}

func (p *project) file() string { return strings.ReplaceAll(p.name, "-", "_") }

var (
	section = regexp.MustCompile(`^\[([a-z.-]+)\]$`)
	setting = regexp.MustCompile(`^([A-Za-z0-9_-]+) = (.+)$`)
	quoted  = regexp.MustCompile(`"([^"]*)"`)
)

// readProject reads a pyproject.toml that has each setting in one line.
func readProject(file string) (*project, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	p := &project{extras: map[string][]string{}}
	at := ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if m := section.FindStringSubmatch(line); m != nil {
			at = m[1]
			continue
		}
		m := setting.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		var values []string
		for _, v := range quoted.FindAllStringSubmatch(m[2], -1) {
			values = append(values, v[1])
		}
		first := strings.Join(values[:min(1, len(values))], "")
		switch at + " " + m[1] {
		case "project name":
			p.name = first
		case "project description":
			p.summary = first
		case "project requires-python":
			p.python = first
		case "project classifiers":
			p.classifiers = values
		}
		switch at {
		case "project.optional-dependencies":
			p.extras[m[1]] = values
		case "project.scripts":
			p.scripts = append(p.scripts, m[1]+" = "+first)
		}
	}
	if p.name == "" || p.summary == "" || p.python == "" || len(p.scripts) == 0 {
		return nil, errors.New(file + ": the name, the description, requires-python or the scripts are not there, or not in one line each")
	}
	return p, nil
}

func (p *project) metadata(version string, readme []byte) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "Metadata-Version: 2.4\nName: %s\nVersion: %s\nSummary: %s\nLicense-Expression: Apache-2.0\nLicense-File: LICENSE\nLicense-File: THIRD_PARTY_LICENSES.txt\n", p.name, version, p.summary)
	b.WriteString("Project-URL: Source, https://github.com/sluicehq/sluice\n")
	for _, c := range p.classifiers {
		fmt.Fprintf(&b, "Classifier: %s\n", c)
	}
	fmt.Fprintf(&b, "Requires-Python: %s\nDescription-Content-Type: text/markdown\n", p.python)
	var names []string
	for name := range p.extras {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		fmt.Fprintf(&b, "Provides-Extra: %s\n", name)
		for _, requirement := range p.extras[name] {
			if what, when, ok := strings.Cut(requirement, ";"); ok {
				fmt.Fprintf(&b, "Requires-Dist: %s; (%s) and extra == \"%s\"\n", strings.TrimSpace(what), strings.TrimSpace(when), name)
				continue
			}
			fmt.Fprintf(&b, "Requires-Dist: %s; extra == \"%s\"\n", requirement, name)
		}
	}
	return append([]byte(b.String()+"\n"), readme...)
}
