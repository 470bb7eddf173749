package eventlog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/inspect"
)

// A log has a version. A log from before versions is read, and gets a version from the next writer. Readers and writers
// refuse a newer version and leave the log unchanged.
func TestALogHasAVersion(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, 0, string(line(send("a", 0))))
	if got, _ := all(t, dir); len(got) != 1 {
		t.Fatalf("a log without a version: %v", got)
	}
	f := newFiles(dir)
	defer f.close()
	if err := f.append(line(send("a", 1))); err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(dir, lock)
	text, err := os.ReadFile(at)
	if err != nil || string(text) != `{"sluice":"events","version":1}`+"\n" {
		t.Fatalf("%q, %v", text, err)
	}
	if got, _ := all(t, dir); len(got) != 2 {
		t.Errorf("got %v", got)
	}
	if err := os.WriteFile(at, []byte(`{"sluice":"events","version":2,"more":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var newer *NewerError
	if _, err := Read(dir, time.Time{}, func(inspect.Event) bool { return true }); !errors.As(err, &newer) || newer.Version != 2 || !strings.Contains(newer.Hint(), "newer version") {
		t.Errorf("it is read: %v", err)
	}
	later := newFiles(dir)
	defer later.close()
	if err := later.append(line(send("a", 2))); !errors.As(err, &newer) {
		t.Errorf("it is written: %v", err)
	}
}
