//go:build unix

package sdnotify

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestReadyIsTold(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") // a short path: that of a socket has room for 104 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = manager.Close() }()
	if err := Ready(socket); err != nil {
		t.Fatal(err)
	}
	if err := manager.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, err := manager.Read(said)
	if err != nil || string(said[:n]) != "READY=1" {
		t.Errorf("it says %q (%v)", said[:n], err)
	}
}

func TestWithoutAManagerThereIsNothingToTell(t *testing.T) {
	if err := Ready(""); err != nil {
		t.Error(err)
	}
	if err := Ready(filepath.Join(t.TempDir(), "gone")); err == nil {
		t.Error("a socket that is not there is no error")
	}
}
