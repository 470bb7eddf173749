//go:build slow && linux

package api_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/built"
)

const (
	redocly      = "@redocly/cli@2.77.0"
	schemathesis = "schemathesis==4.32.5"
	within       = 10 * time.Minute
)

// description returns the path of openapi.yaml.
func description(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../daemon/api/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var sluiceBinary string

func TestMain(m *testing.M) { os.Exit(built.Main(m, &sluiceBinary)) }

// run runs a program in a directory, where it may leave files. It must succeed; run returns what it prints.
func run(t *testing.T, dir string, argv ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, out)
	}
	return string(out)
}

// A linter finds neither errors nor warnings in openapi.yaml.
func TestRedoclyFindsNothing(t *testing.T) {
	dir := t.TempDir()
	run(t, dir, "npm", "install", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", dir, redocly)
	out := run(t, dir, filepath.Join(dir, "node_modules", ".bin", "redocly"), "lint", "--format=stylish", description(t))
	if strings.Contains(out, "You have ") { // warnings, which are no failure of the linter
		t.Error(out)
	}
}

// A daemon answers what schemathesis makes of openapi.yaml only as it is described, and never with a failure of its own.
// Left out are streams, the routes for gates of the same version, and which values are taken: names, times and classes have
// rules that a schema does not say.
func TestSchemathesisFindsNothing(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "sluice.yaml")
	text := "resources:\n  api: {limits: [{name: minute, size: 1000000/min}]}\n  kept: {dead_letters: on, limits: [{name: hour, size: 1000000/h}]}\nroutes: {simple: [api/small]}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run(t, dir, "python3", "-m", "venv", filepath.Join(dir, "py"))
	run(t, dir, filepath.Join(dir, "py", "bin", "pip"), "install", "--quiet", "--disable-pip-version-check", schemathesis)
	cmd := exec.Command(sluiceBinary, "serve", "--json", "--config", config, "--listen", "127.0.0.1:0", "--store", "mem:")
	cmd.Env = built.Env(dir)
	line, _ := built.Serve(t, cmd)
	var said struct{ Listen []string }
	if err := json.Unmarshal(line, &said); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	run(t, dir, filepath.Join(dir, "py", "bin", "schemathesis"), "run", "--url", said.Listen[0], "--seed", "1", "--max-time", "60", "--max-examples", "15",
		"--phases", "examples,coverage,fuzzing", "--request-timeout", "60", "--exclude-path-regex", "^/v1/(store/|events)",
		"--exclude-checks", "ignored_auth,positive_data_acceptance,negative_data_rejection", "--continue-on-failure", "--no-color", description(t))
}
