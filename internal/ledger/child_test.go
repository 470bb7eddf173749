package ledger_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/sluicehq/sluice/internal/ledger"
	"github.com/sluicehq/sluice/internal/proctest"
)

// child is a process that spends: until there is nothing left, or without end if it is to be killed. It prints what it
// has settled.
func child() bool {
	dir, endless := os.Getenv("LEDGER_TEST_DIR"), os.Getenv("LEDGER_TEST_ENDLESS") != ""
	if dir == "" {
		return false
	}
	l := ledger.NewDir(dir, false)
	p := pot("fleet", 100_000, ledger.Day, noon)
	out, ctx := bufio.NewWriter(os.Stdout), context.Background()
	for n := 0; ; n++ {
		taken, err := l.Take(ctx, order(noon, 100, ledger.Account{Pot: p, Force: endless}))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if taken.Full >= 0 {
			break
		}
		if err := l.Settle(ctx, taken.Receipt, 90, noon); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Fprintln(out, 90)
		if endless {
			_ = out.Flush() // nobody may be listening any more
		}
	}
	if err := out.Flush(); err != nil {
		os.Exit(1)
	}
	return true
}

func start(t *testing.T, dir string, endless bool) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(os.Args[0]) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), "LEDGER_TEST_DIR="+dir)
	if endless {
		cmd.Env = append(cmd.Env, "LEDGER_TEST_ENDLESS=1")
	}
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if cmd.ProcessState == nil {
			_ = cmd.Process.Kill()
			_ = proctest.Wait(cmd)
		}
	})
	return cmd, bufio.NewScanner(proctest.Reader(out))
}

// Processes share a budget: together they spend it, and no more.
func TestProcessesShareABudget(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var running []*exec.Cmd
	var outs []*bufio.Scanner
	for range 4 {
		cmd, out := start(t, dir, false)
		running, outs = append(running, cmd), append(outs, out)
	}
	sum := int64(0)
	for i, cmd := range running {
		for outs[i].Scan() {
			sum += 90
		}
		if err := proctest.Wait(cmd); err != nil {
			t.Error(err)
		}
	}
	l := closing(t, ledger.NewDir(dir, false))
	wantUsed(t, l, pot("fleet", 100_000, ledger.Day, noon), "", sum)
	if sum > 100_000 || sum < 100_000-4*100 {
		t.Errorf("%d were spent of 100000", sum)
	}
}

// A process that is killed leaves books that others can read and write. They contain what it has settled.
func TestKilledInTheMiddle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, sum, kills := pot("fleet", 100_000, ledger.Day, noon), int64(0), int64(0)
	for range 5 {
		cmd, out := start(t, dir, true)
		for range 50 {
			if !out.Scan() {
				t.Fatal("it has ended by itself")
			}
			sum += 90
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		kills++
		for out.Scan() { // what it had said by then
			sum += 90
		}
		_ = proctest.Wait(cmd) // it was killed
		l := ledger.NewDir(dir, false)
		got := used(t, l, p)[""]
		// The last of each may have been settled and not said, or reserved and not settled.
		if got < sum || got > sum+kills*(90+100) {
			t.Errorf("%d in the books after %d kills, and %d were settled", got, kills, sum)
		}
		taken := take(t, l, order(noon, 10, ledger.Account{Pot: p, Force: true}))
		settle(t, l, taken.Receipt, 10, noon.Add(time.Second))
		sum += 10
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}
