package statedir_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/windows"

	"github.com/sluicehq/sluice/internal/statedir"
)

// A directory that Sluice creates belongs to its user alone. One that every user can change is refused.
func TestAccessLists(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	for range 2 {
		if err := statedir.Make(dir); err != nil {
			t.Fatal(err)
		}
	}
	sd, err := windows.SecurityDescriptorFromString("D:P(A;OICI;FA;;;WD)")
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := sd.DACL()
	if err != nil {
		t.Fatal(err)
	}
	const parts = windows.DACL_SECURITY_INFORMATION | windows.PROTECTED_DACL_SECURITY_INFORMATION
	if err := windows.SetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, parts, nil, nil, list, nil); err != nil {
		t.Fatal(err)
	}
	if err := statedir.Make(dir); !errors.Is(err, statedir.ErrWritable) {
		t.Errorf("one that everybody can change: %v", err)
	}
}

// Open files can be replaced, shortened and recognized.
func TestOpenFiles(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	for _, name := range []string{a, b} {
		if err := os.WriteFile(name, []byte(filepath.Base(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := statedir.Open(b, os.O_RDWR|os.O_APPEND)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close() //nolint:errcheck // it was only read
	if err := statedir.Truncate(f, 0); err != nil {
		t.Error(err)
	}
	if _, err := f.WriteString("more"); err != nil || statedir.Gone(f, b) {
		t.Errorf("%v, or it is gone", err)
	}
	if err := statedir.Replace(a, b); err != nil {
		t.Fatal(err)
	}
	if !statedir.Gone(f, b) {
		t.Error("it is not gone")
	}
	if text, err := os.ReadFile(b); err != nil || string(text) != "a" {
		t.Errorf("%q, %v", text, err)
	}
	if text := make([]byte, 4); func() bool { _, err := f.ReadAt(text, 0); return err != nil || string(text) != "more" }() {
		t.Errorf("of the old one: %q", text)
	}
}
