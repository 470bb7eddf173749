// Command release builds what is published: static binaries for every platform, archives, a bill of materials for each,
// checksums, and a Homebrew formula. The same commit gives the same bytes on every machine with the same Go.
//
//	go run ./scripts/release -version v0.1.0
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/scripts/commit"
)

// tags are those of make build: TAGS in the Makefile says why.
const tags = "grpcnotrace"

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// release is one run of this program.
type release struct {
	version string
	dir     string
	made    time.Time // of the commit: everything in the archives has this time
	files   []string  // published, without the checksums
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	version := flags.String("version", "", "such as v0.1.0; without it, the tag of this commit, else v0.0.0-REVISION")
	dir := flags.String("out", "dist", "where to write")
	targets := flags.String("targets", allTargets, "OS/ARCH, separated by commas")
	if err := flags.Parse(args); err != nil {
		return err
	}
	r := release{dir: *dir}
	var err error
	if r.version, r.made, err = commit.Of(ctx, *version); err != nil {
		return err
	}
	if err := os.MkdirAll(r.dir, 0o755); err != nil { //nolint:gosec // it is published
		return err
	}
	for _, t := range strings.Split(*targets, ",") {
		system, arch, ok := strings.Cut(strings.TrimSpace(t), "/")
		if !ok {
			return fmt.Errorf("target %q: must be OS/ARCH, such as linux/amd64", t)
		}
		if err := r.target(ctx, system, arch); err != nil {
			return fmt.Errorf("%s: %w", t, err)
		}
	}
	if err := r.formula(); err != nil {
		return err
	}
	return r.checksums()
}

// target builds for one platform: DIR/OS_ARCH/sluice, its archive, and its bill of materials.
func (r *release) target(ctx context.Context, system, arch string) error {
	binary := "sluice"
	if system == "windows" {
		binary += ".exe"
	}
	place := filepath.Join(r.dir, system+"_"+arch, binary)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags", tags, "-ldflags=-s -w -buildid= -X main.release="+r.version, "-o", place, "./cmd/sluice")
	cmd.Env = buildEnv(system, arch)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w", err)
	}
	parts, err := linkedIn(ctx, system, arch)
	if err != nil {
		return err
	}
	licences := filepath.Join(filepath.Dir(place), licenceOfAll)
	if err := create(licences, func(f *os.File) error { return writeLicences(f, parts, binary+" "+r.version) }); err != nil {
		return err
	}
	name := r.name(system, arch)
	content := []entry{{binary, place, 0o755}, {"LICENSE", "LICENSE", 0o644}, {licenceOfAll, licences, 0o644}, {"README.md", "README.md", 0o644}, {"openapi.yaml", "daemon/api/openapi.yaml", 0o644}}
	archive := name + ".tar.gz"
	pack := packTar
	switch system {
	case "windows":
		archive, pack = name+".zip", packZip
	case "linux":
		content = append(content, entry{"sluice.service", "deploy/systemd/sluice.service", 0o644})
	}
	if err := r.write(archive, func(f *os.File) error { return pack(f, name, content, r.made) }); err != nil {
		return err
	}
	return r.write(name+".cdx.json", func(f *os.File) error { return billOf(f, place, parts, r) })
}

// buildEnv is the environment in which everything for a platform is built.
func buildEnv(system, arch string) []string {
	return append(os.Environ(), "GOOS="+system, "GOARCH="+arch, "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0")
}

func (r *release) name(system, arch string) string {
	return "sluice_" + strings.TrimPrefix(r.version, "v") + "_" + system + "_" + arch
}

// write makes a file that is published.
func (r *release) write(name string, fill func(*os.File) error) error {
	path := filepath.Join(r.dir, name)
	if err := create(path, fill); err != nil {
		return err
	}
	r.files = append(r.files, name)
	fmt.Println(path)
	return nil
}

func create(path string, fill func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(f), f.Close()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// checksums are in the form that sha256sum -c reads.
func (r *release) checksums() error {
	names := slices.Clone(r.files)
	slices.Sort(names)
	return r.write("SHA256SUMS", func(f *os.File) error {
		for _, name := range names {
			sum, err := r.sum(name)
			if err != nil {
				return err
			}
			fmt.Fprintf(f, "%s  %s\n", sum, name)
		}
		return nil
	})
}

func (r *release) sum(name string) (string, error) {
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	return fmt.Sprintf("%x", sha256.Sum256(data)), err
}

// formula fills Homebrew's in, if all of its platforms were built.
func (r *release) formula() error {
	text, err := os.ReadFile("deploy/homebrew/sluice.rb.in")
	if err != nil {
		return err
	}
	out := strings.ReplaceAll(string(text), "@VERSION@", strings.TrimPrefix(r.version, "v"))
	for _, system := range []string{"darwin", "linux"} {
		for _, arch := range []string{"amd64", "arm64"} {
			archive := r.name(system, arch) + ".tar.gz"
			if !slices.Contains(r.files, archive) {
				return nil
			}
			sum, err := r.sum(archive)
			if err != nil {
				return err
			}
			out = strings.ReplaceAll(out, "@SHA256_"+system+"_"+arch+"@", sum)
		}
	}
	return r.write("sluice.rb", func(f *os.File) error {
		_, err := f.WriteString(out)
		return err
	})
}
