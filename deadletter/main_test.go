package deadletter_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/sluicehq/sluice/deadletter"
	"github.com/sluicehq/sluice/internal/proctest"
)

// claimEnv makes the test binary a process that claims an entry and waits to be ended.
const claimEnv = "DEADLETTER_TEST_CLAIM"

func TestMain(m *testing.M) {
	if dir := os.Getenv(claimEnv); dir != "" {
		claimAndWait(dir, os.Args[1])
	}
	os.Exit(m.Run())
}

func claimAndWait(dir, id string) {
	list, err := deadletter.Open(dir)
	if err == nil {
		_, err = list.Claim(id)
	}
	fmt.Println(err)
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// otherProcess starts a process that claims an entry.
func otherProcess(t *testing.T, dir, id string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(os.Args[0], id)
	cmd.Env = append(os.Environ(), claimEnv+"="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = proctest.Wait(cmd) })
	if said, err := proctest.Reader(out).ReadString('\n'); err != nil || said != "<nil>\n" {
		t.Fatalf("the other process could not claim: %q, %v", said, err)
	}
	return cmd
}
