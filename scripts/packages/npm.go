package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// npmClient is the package that people install, without its version and without the packages that bring the binary.
const npmClient = "clients/typescript"

// npmPlatforms are the names of platforms in Node.js, of all that have a package: the one that people install names them.
var npmPlatforms = map[string]struct{ os, cpu string }{
	"linux/amd64": {"linux", "x64"}, "linux/arm64": {"linux", "arm64"}, "darwin/amd64": {"darwin", "x64"}, "darwin/arm64": {"darwin", "arm64"},
	"windows/amd64": {"win32", "x64"}, "windows/arm64": {"win32", "arm64"},
}

// npmFile is a file of a package.
type npmFile struct {
	name    string
	content []byte
	mode    int64
}

// npm writes a package for each platform that brings its binary, and the one with the client and the command that runs the binary. npm
// installs only the package of its own platform.
func (b *build) npm() error {
	text, err := os.ReadFile(filepath.Join(npmClient, "package.json"))
	if err != nil {
		return err
	}
	var about struct {
		Name       string          `json:"name"`
		License    string          `json:"license"`
		Repository json.RawMessage `json:"repository"`
		Files      []string        `json:"files"`
	}
	if err := json.Unmarshal(text, &about); err != nil {
		return err
	}
	version := strings.TrimPrefix(b.version, "v")
	brings := map[string]string{}
	for _, p := range npmPlatforms {
		brings[about.Name+"-"+p.os+"-"+p.cpu] = version
	}
	for _, t := range b.targets {
		p, ok := npmPlatforms[t.system+"/"+t.arch]
		if !ok {
			return fmt.Errorf("npm has no name for %s/%s", t.system, t.arch)
		}
		name := about.Name + "-" + p.os + "-" + p.cpu
		manifest, err := json.MarshalIndent(struct {
			Name        string          `json:"name"`
			Version     string          `json:"version"`
			Description string          `json:"description"`
			License     string          `json:"license"`
			Repository  json.RawMessage `json:"repository"`
			OS          []string        `json:"os"`
			CPU         []string        `json:"cpu"`
			Unplugged   bool            `json:"preferUnplugged"` // Yarn has to unpack it: the binary runs
		}{name, version, "The command sluice for " + p.os + " on " + p.cpu + ". Install " + about.Name + ", which runs it.", about.License, about.Repository, []string{p.os}, []string{p.cpu}, true}, "", "  ")
		if err != nil {
			return err
		}
		files := []npmFile{
			{"package.json", append(manifest, '\n'), 0o644},
			{"README.md", fmt.Appendf(nil, "# %s\n\nThe command `sluice` for one platform. Install [%s](https://github.com/sluicehq/sluice), which runs it.\n", name, about.Name), 0o644},
		}
		for _, from := range []struct {
			name, path string
			mode       int64
		}{
			{"bin/" + t.binary(), filepath.Join(t.dir, t.binary()), 0o755}, {"LICENSE", "LICENSE", 0o644},
			{"THIRD_PARTY_LICENSES.txt", filepath.Join(t.dir, "THIRD_PARTY_LICENSES.txt"), 0o644},
		} {
			content, err := os.ReadFile(from.path)
			if err != nil {
				return err
			}
			files = append(files, npmFile{from.name, content, from.mode})
		}
		if err := b.tarball(name, files); err != nil {
			return err
		}
	}
	files, err := npmSources(append(about.Files, "LICENSE", "README.md"))
	if err != nil {
		return err
	}
	manifest, err := npmManifest(text, version, brings)
	if err != nil {
		return err
	}
	return b.tarball(about.Name, append(files, npmFile{"package.json", manifest, 0o644}))
}

// npmManifest returns a package.json with another version, and with optional dependencies.
func npmManifest(text []byte, version string, optional map[string]string) ([]byte, error) {
	var was struct{ Version string }
	if err := json.Unmarshal(text, &was); err != nil {
		return nil, err
	}
	old, at := fmt.Appendf(nil, "\"version\": %q", was.Version), []byte("\n  \"main\":")
	if bytes.Count(text, old) != 1 || bytes.Count(text, at) != 1 {
		return nil, errors.New("package.json has no version, or no main")
	}
	list, err := json.MarshalIndent(optional, "  ", "  ")
	if err != nil {
		return nil, err
	}
	text = bytes.Replace(text, old, fmt.Appendf(nil, "\"version\": %q", version), 1)
	return bytes.Replace(text, at, append(fmt.Appendf(nil, "\n  \"optionalDependencies\": %s,", list), at...), 1), nil
}

// npmSources reads the files of the client, and of directories of it.
func npmSources(names []string) (files []npmFile, err error) {
	for _, name := range names {
		err := filepath.WalkDir(filepath.Join(npmClient, name), func(place string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := os.ReadFile(place)
			if err != nil {
				return err
			}
			rel, err := filepath.Rel(npmClient, place)
			mode := int64(0o644)
			if bytes.HasPrefix(content, []byte("#!")) {
				mode = 0o755
			}
			files = append(files, npmFile{filepath.ToSlash(rel), content, mode})
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return files, nil
}

// tarball writes a package as npm pack names it, sorted, and with the time of the commit.
func (b *build) tarball(name string, files []npmFile) (err error) {
	slices.SortFunc(files, func(a, b npmFile) int { return strings.Compare(a.name, b.name) })
	place := filepath.Join(b.dir, strings.NewReplacer("@", "", "/", "-").Replace(name)+"-"+strings.TrimPrefix(b.version, "v")+".tgz")
	if err := os.MkdirAll(b.dir, 0o755); err != nil { //nolint:gosec // it is published
		return err
	}
	f, err := os.Create(place)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err == nil {
			fmt.Println(place)
		}
	}()
	zipped, err := gzip.NewWriterLevel(f, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(zipped)
	for _, file := range files {
		h := &tar.Header{Name: path.Join("package", file.name), Mode: file.mode, Size: int64(len(file.content)), ModTime: b.made.Truncate(time.Second), Format: tar.FormatUSTAR}
		if err := w.WriteHeader(h); err != nil {
			return err
		}
		if _, err := w.Write(file.content); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), zipped.Close())
}
