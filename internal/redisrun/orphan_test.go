//go:build unix

package redisrun

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/proctest"
)

const parentEnv = "REDISRUN_TEST_PARENT"

// beParent is the test binary as the parent of a server: it says the server's address
// and waits for its own end.
func beParent() {
	s, err := Start(Options{})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	fmt.Println(s.Addr())
	// Until the test closes the pipe, or is gone.
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = s.Stop()
	os.Exit(0)
}

func TestServersDieWithAKilledParent(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), parentEnv+"=1", "TMPDIR="+t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		in.Close()
		proctest.Wait(cmd)
	}()
	line, err := proctest.Reader(out).ReadString('\n')
	addr := strings.TrimSpace(line)
	if err != nil || strings.HasPrefix(addr, "error") {
		t.Fatalf("the parent: %s, %v", addr, err)
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.SetReadDeadline(time.Now().Add(proctest.Patience)); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "linux" { // no means: the parent ends it in order
		in.Close()
	} else if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	// The kernel closes the connection when the server is gone.
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the server speaks, or lives: %v", err)
	}
	// Its other sockets may take a moment longer.
	err = await(startWithin, "the server outlived its parent", func() (bool, error) {
		again, err := net.Dial("tcp", addr)
		if err != nil {
			return true, nil
		}
		again.Close()
		return false, errors.New("it takes connections")
	})
	if err != nil {
		t.Error(err)
	}
}
