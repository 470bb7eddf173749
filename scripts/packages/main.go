// Command packages builds the packages that bring the binary to people without Go: wheels for Python and packages for npm. scripts/release
// builds the binaries. The same commit gives the same bytes on every machine with the same Go.
//
//	go run ./scripts/packages -version v0.1.0
package main

import (
	"context"
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

// build is one run of this program.
type build struct {
	version string // such as v0.1.0
	made    time.Time
	dir     string
	targets []target
}

// target is a platform, whose binary and licence texts are in dir.
type target struct {
	system, arch string
	dir          string
}

func (t target) binary() string {
	if t.system == "windows" {
		return "sluice.exe"
	}
	return "sluice"
}

// kinds are the kinds of packages, by the name that -only takes.
var kinds = map[string]func(*build) error{"wheels": (*build).wheels, "npm": (*build).npm}

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("packages", flag.ContinueOnError)
	version := flags.String("version", "", "such as v0.1.0; without it, the tag of this commit, else v0.0.0-REVISION")
	dir := flags.String("out", "dist", "where to write")
	targets := flags.String("targets", allTargets, "OS/ARCH, separated by commas")
	only := flags.String("only", "", "build only these kinds of packages, separated by commas: wheels, npm")
	built := flags.Bool("built", false, "take the binaries that scripts/release has built in the same directory")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := build{dir: *dir}
	var err error
	if b.version, b.made, err = commit.Of(ctx, *version); err != nil {
		return err
	}
	for _, t := range strings.Split(*targets, ",") {
		system, arch, ok := strings.Cut(strings.TrimSpace(t), "/")
		if !ok {
			return fmt.Errorf("target %q: must be OS/ARCH, such as linux/amd64", t)
		}
		b.targets = append(b.targets, target{system, arch, filepath.Join(b.dir, system+"_"+arch)})
	}
	var names []string
	for name := range kinds {
		if *only == "" || slices.Contains(strings.Split(*only, ","), name) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return fmt.Errorf("-only %s: there are no such packages", *only)
	}
	if !*built {
		cmd := exec.CommandContext(ctx, "go", "run", "./scripts/release", "-version", b.version, "-out", b.dir, "-targets", *targets) //nolint:gosec // our own program
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("scripts/release: %w", err)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if err := kinds[name](&b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}
