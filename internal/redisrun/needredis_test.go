//go:build unix

package redisrun

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

// TestNeedRedis runs scripts/need-redis with a PATH of fakes that record their calls.
func TestNeedRedis(t *testing.T) {
	t.Parallel()
	const (
		root, user   = "echo 0", "echo 1000"
		linux, apple = "echo Linux", "echo Darwin"
		note         = `echo "${0##*/} $*" >>"$NOTES"; `
		// What installs puts a server beside itself.
		installs = note + `case "$*" in *install*) echo >"${0%/*}/redis-server"; chmod +x "${0%/*}/redis-server";; esac`
		fails    = note + "exit 1"
		runs     = note + `[ "$1" = -n ] && shift; exec "$@"`
	)
	for name, c := range map[string]struct {
		programs map[string]string
		env      string
		ok       bool
		notes    []string // how programs were called, in part
		says     string
	}{
		"there":          {map[string]string{"redis-server": "", "apt-get": fails}, "", true, nil, ""},
		"valkey":         {map[string]string{"valkey-server": "", "apt-get": fails}, "", true, nil, ""},
		"named":          {map[string]string{"my-redis": "", "apt-get": fails}, "my-redis", true, nil, ""},
		"named, missing": {map[string]string{"redis-server": "", "id": root, "uname": linux, "apt-get": fails}, "my-redis", false, nil, "SLUICE_REDIS_SERVER"},
		"root":           {map[string]string{"id": root, "uname": linux, "apt-get": installs}, "", true, []string{"update", "install -y redis-server redis-sentinel"}, ""},
		"sudo":           {map[string]string{"id": user, "uname": linux, "apt-get": installs, "sudo": runs}, "", true, []string{"sudo -n", "update", "sudo -n", "install"}, ""},
		"no sudo":        {map[string]string{"id": user, "uname": linux, "apt-get": installs}, "", false, nil, "only root"},
		"apt-get fails":  {map[string]string{"id": root, "uname": linux, "apt-get": fails}, "", false, []string{"update", "install"}, "by hand"},
		"brew":           {map[string]string{"uname": apple, "brew": installs}, "", true, []string{"brew install --quiet redis"}, ""},
		"no brew":        {map[string]string{"uname": apple}, "", false, nil, "brew"},
		"brew fails":     {map[string]string{"uname": apple, "brew": fails}, "", false, []string{"brew install"}, "by hand"},
		"installs none":  {map[string]string{"id": root, "uname": linux, "apt-get": note}, "", false, []string{"update", "install"}, "PATH"},
		"nothing":        {map[string]string{"id": root, "uname": linux}, "", false, nil, "by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, notes := t.TempDir(), filepath.Join(t.TempDir(), "notes")
			for program, text := range c.programs {
				fake(t, dir, program, text)
			}
			for _, program := range []string{"env", "chmod"} { // real ones
				path, err := exec.LookPath(program)
				if err != nil {
					t.Fatal(err)
				}
				fake(t, dir, program, "exec "+path+` "$@"`)
			}
			cmd := proctest.Command(t, "/bin/sh", filepath.Join("..", "..", "scripts", "need-redis"))
			cmd.Env = []string{"PATH=" + dir, "NOTES=" + notes, "SLUICE_REDIS_SERVER=" + c.env}
			out, err := cmd.CombinedOutput()
			if ok := err == nil; ok != c.ok {
				t.Errorf("success %v, want %v: %v\n%s", ok, c.ok, err, out)
			}
			if !strings.Contains(string(out), c.says) {
				t.Errorf("does not say %q:\n%s", c.says, out)
			}
			called, err := os.ReadFile(notes)
			if err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSpace(string(called)), "\n")
			if c.notes == nil && len(called) != 0 {
				t.Errorf("called:\n%s", called)
			}
			rest := strings.Join(lines, "\n")
			for _, part := range c.notes {
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Errorf("%q was not called, in that order:\n%s", part, called)
				}
				rest = after
			}
		})
	}
}

// fake writes a program.
func fake(tb testing.TB, dir, name, text string) {
	tb.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil {
		tb.Fatal(err)
	}
}
