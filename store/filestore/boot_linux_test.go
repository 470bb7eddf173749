package filestore

import (
	"path/filepath"
	"strings"
	"testing"
)

// A unit of systemd can hide /proc/sys. The error must not send anybody to look for the state directory.
func TestHintWhereProcIsHidden(t *testing.T) {
	_, err := readBootID(filepath.Join(t.TempDir(), "boot_id"))
	if hint := hintFor(err, "/var/lib/sluice"); !strings.Contains(hint, "ProcSubset=pid") {
		t.Errorf("%v: the hint is %q", err, hint)
	}
}
