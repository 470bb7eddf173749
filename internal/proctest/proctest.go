// Package proctest helps tests that run other processes: it bounds every wait, and gives children the signals that a terminal
// gives them.
package proctest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"testing"
	"time"
)

// Patience is how long a wait may take: much longer than a busy machine needs, and much shorter than a test run.
const Patience = 90 * time.Second

// DefaultSignals gives the processes that this one starts the default action of SIGHUP and SIGINT. Under nohup, and in the
// background of a script, a test run ignores them, and children inherit that. This process goes on ignoring them.
var DefaultSignals = sync.OnceFunc(func() {
	for _, sig := range inherited {
		if signal.Ignored(sig) {
			// A signal that a program handles is back at its default in the programs that it starts.
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
})

// deadliner is a pipe, a terminal or a connection.
type deadliner interface {
	io.Reader
	SetReadDeadline(t time.Time) error
}

// bounded reads with a deadline of its own for each read.
type bounded struct {
	from deadliner
	wait time.Duration
}

func (b bounded) Read(p []byte) (int, error) {
	// The pipes of Windows have no deadlines: there the time of the whole test is the bound.
	if err := b.from.SetReadDeadline(time.Now().Add(b.wait)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return 0, err
	}
	return b.from.Read(p)
}

// Reader reads the output of a process, such as that of [exec.Cmd.StdoutPipe]. A read fails with [os.ErrDeadlineExceeded] when
// nothing comes within Patience. It panics if out has no deadlines.
func Reader(out io.Reader) *bufio.Reader { return reader(out, Patience) }

func reader(out io.Reader, wait time.Duration) *bufio.Reader {
	return bufio.NewReader(bounded{out.(deadliner), wait})
}

// Wait waits for the end of a process as [exec.Cmd.Wait] does, and kills it when it does not end within Patience.
func Wait(cmd *exec.Cmd) error { return wait(cmd, Patience) }

func wait(cmd *exec.Cmd, within time.Duration) error {
	late := time.AfterFunc(within, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	if !late.Stop() {
		return fmt.Errorf("%s did not end within %v and was killed: %w", cmd.Path, within, err)
	}
	return err
}

// Command is [exec.Command] for a process that ends by itself: it is killed when it does not end within Patience.
func Command(t testing.TB, name string, args ...string) *exec.Cmd {
	DefaultSignals()
	ctx, cancel := context.WithTimeout(context.Background(), Patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = Patience / 4 // a child of its may have its output open; a busy machine needs seconds to read the rest
	return cmd
}
