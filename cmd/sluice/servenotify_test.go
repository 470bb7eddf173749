//go:build linux || darwin

package main

import (
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

// A service manager hears that the gate is ready when the gate listens, so systemctl start ends at the right time.
func TestServeTellsItsManagerThatItIsReady(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "sluice") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	at := filepath.Join(dir, "n")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: at, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	socket := filepath.Join(dir, "s")
	p := start(t, []string{"NOTIFY_SOCKET=" + at}, "serve", "--listen", "unix:"+socket, "--store", "mem:")
	if err := manager.SetReadDeadline(time.Now().Add(proctest.Patience)); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, err := manager.Read(said)
	if err != nil || string(said[:n]) != "READY=1" {
		t.Errorf("it says %q (%v)", said[:n], err)
	}
	c, err := net.Dial("unix", socket)
	if err != nil {
		t.Errorf("it is not there when it says so: %v", err)
	} else {
		_ = c.Close()
	}
	p.signal(os.Interrupt)
	p.ends(0)
}
