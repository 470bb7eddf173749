package built

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Edit is a change of a source file of the module for one build. The module itself stays as it is.
type Edit struct {
	File     string // from the root of the module
	Old, New string // Old is in the file exactly once; with an empty Old the file is new
}

// Overlay writes the changed files into a directory, and returns the flag that has the go command use them.
func Overlay(dir string, edits ...Edit) (flag string, err error) {
	module, err := filepath.Abs(root)
	if err != nil {
		return "", err
	}
	texts := map[string]string{}
	for _, e := range edits {
		at := filepath.Join(module, filepath.FromSlash(e.File))
		text, ok := texts[at]
		if !ok && e.Old != "" {
			b, err := os.ReadFile(at)
			if err != nil {
				return "", err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.Old); e.Old != "" && n != 1 {
			return "", fmt.Errorf("%s has %d times %q: the test has to follow the code", e.File, n, e.Old)
		}
		if e.Old == "" {
			texts[at] = e.New
		} else {
			texts[at] = strings.Replace(text, e.Old, e.New, 1)
		}
	}
	replace := map[string]string{}
	for at, text := range texts {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		if err := os.WriteFile(to, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[at] = to
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return "-overlay=" + overlay, os.WriteFile(overlay, list, 0o600)
}

// Changed builds the command with some changes into a directory, and returns where it is.
func Changed(dir string, edits ...Edit) (binary string, err error) {
	overlay, err := Overlay(dir, edits...)
	if err != nil {
		return "", err
	}
	binary = filepath.Join(dir, "sluice")
	cmd := exec.Command("go", "build", overlay, "-tags=grpcnotrace", "-ldflags=-s -w", "-o", binary, "./cmd/sluice")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("the changed sluice cannot be built: %w\n%s", err, out)
	}
	return binary, nil
}
