package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/sluicehq/sluice/internal/proctest"
)

// fill fills the disk that holds dir.
func fill(t *testing.T, dir string) {
	t.Helper()
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
}

// smallDisk mounts a disk of 4 MiB, which only root can do. Without root the test bounds the size of files.
func smallDisk(t *testing.T) (dir string, ok bool) {
	dir = t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=4m,mode=0700"); err != nil {
		t.Logf("no disk can be mounted: %v", err)
		return "", false
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir, true
}

// Read-only commands need no disk space, with pools in use and without any pools.
func TestLookingWorksOnAFullDisk(t *testing.T) {
	t.Parallel()
	work := t.TempDir()
	file := filepath.Join(work, "sluice.yaml")
	const text = "resources:\n  api: {limits: [{name: h, size: 100/h, kind: rolling}]}\n  other: {limits: [{name: s, size: 5/s, kind: rolling}]}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	disk, mounted := smallDisk(t)
	if !mounted {
		disk = t.TempDir()
	}
	sluice := func(bounded bool, args ...string) (string, error) {
		args = append([]string{"sluice"}, append(args, "--config", file)...)
		if bounded { // every write to a file fails, as if the disk were full
			args = append([]string{"sh", "-c", `trap "" XFSZ; ulimit -f 0; exec "$@"`, "sh"}, args...)
		}
		out, err := proctest.Command(t, args[0], args[1:]...).CombinedOutput()
		return string(out), err
	}
	used, empty := "file:"+filepath.Join(disk, "used"), "file:"+filepath.Join(disk, "empty")
	for range 3 {
		if out, err := sluice(false, "acquire", "api", "--store", used, "--agent", "a"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if mounted {
		fill(t, disk)
	}
	for _, at := range []string{used, empty} {
		for _, what := range []string{"status", "doctor", "report", "why api", "pool api"} {
			for bounded := range 2 {
				if bounded == 0 && !mounted {
					continue
				}
				out, err := sluice(bounded == 1, append(strings.Fields(what), "--store", at)...)
				if err != nil || strings.Contains(out, "warning") {
					t.Errorf("%s on %s, %d: %v\n%s", what, at, bounded, err, out)
				}
				if at == used && what == "status" && !strings.Contains(out, "3 sent") {
					t.Errorf("%s does not know of 3 requests:\n%s", what, out)
				}
			}
		}
		if out, err := sluice(true, "acquire", "other", "--store", at); err == nil || !strings.Contains(out, "make room on that disk") {
			t.Errorf("%s: acquire: %v\n%s", at, err, out)
		}
	}
	if mounted {
		if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
			t.Fatal(err)
		}
		if out, err := sluice(false, "acquire", "other", "--store", empty); err != nil {
			t.Error(fmt.Errorf("with room again: %w\n%s", err, out))
		}
	}
}
