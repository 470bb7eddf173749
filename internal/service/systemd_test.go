//go:build slow

package service

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestSystemdTakesTheUnit(t *testing.T) {
	home := t.TempDir()
	text, err := (&systemd{home: home}).Text(&Spec{Args: []string{"/bin/sh", "serve", "--config", odd[3]}, Env: "/nowhere/service.env"}) // a program that is there
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, unit)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("systemd-analyze", "verify", "--user", "--man=no", file)
	cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+home)
	if said, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(said), unit+":") {
		t.Errorf("%v: %s", err, said)
	}
}
