package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"sync"
)

// Exit codes of commands that cannot be started, as in shells.
const (
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // plus the signal's number
)

// childExit ends the program with the child's exit code and prints nothing, because the child has already reported its
// error.
type childExit int

func (c childExit) Error() string { return fmt.Sprintf("the command ended with exit code %d", int(c)) }

// errNoInterpreter means that the file exists, but the program in its first line does not.
var errNoInterpreter = errors.New("its interpreter was not found")

// lookUp finds the program of a command line. It runs before any wait, so that a mistyped name does not show only after
// an hour in a queue.
func lookUp(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return "", cannotStart(name, err)
	}
	return path, nil
}

// cannotStart returns the failure for a command that did not start.
func cannotStart(name string, err error) *failure {
	switch {
	case errors.Is(err, exec.ErrDot):
		return &failure{
			code: exitNotFound, message: fmt.Sprintf("%q was found in the current directory, which is not searched", name),
			hint: "write it with its directory, such as ./NAME",
		}
	case errors.Is(err, errNoInterpreter):
		return &failure{
			code: exitNotFound, message: fmt.Sprintf("%q cannot be run: the program that its first line names was not found", name),
			hint: "install that program, or change what stands after #!",
		}
	case errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist):
		return &failure{
			code: exitNotFound, message: fmt.Sprintf("%q was not found", name),
			hint: "give a program that is in PATH, or its file; a shell's own commands need " + shellHint,
		}
	default:
		var search *exec.Error
		var start *fs.PathError
		if errors.As(err, &search) {
			err = search.Err
		} else if errors.As(err, &start) {
			err = start.Err
		}
		return &failure{
			code: exitNotExecutable, message: fmt.Sprintf("%q cannot be run: %v", name, err),
			hint: "give a file that is a program, or a script with #! that may be executed",
		}
	}
}

// keeper starts children one after the other, and passes signals on to the running one. The process itself survives the
// signals, because it has tickets to give back.
type keeper struct {
	signals chan os.Signal
	cancel  context.CancelCauseFunc
	done    chan struct{}

	mu    sync.Mutex
	child *os.Process
	asked os.Signal // the signal that asked to end; nil if none has
}

// newKeeper listens for signals until close. The context ends when a signal asks to end and no child runs.
func newKeeper(parent context.Context) (*keeper, context.Context) {
	ctx, cancel := context.WithCancelCause(parent)
	k := &keeper{signals: make(chan os.Signal, 16), cancel: cancel, done: make(chan struct{})}
	for _, sig := range relayed {
		// A process that was started to ignore a signal, as with nohup, keeps ignoring it, and so does the child.
		if !signal.Ignored(sig) {
			signal.Notify(k.signals, sig)
		}
	}
	go func() {
		defer close(k.done)
		for sig := range k.signals {
			k.pass(sig)
		}
	}()
	return k, ctx
}

func (k *keeper) close() {
	signal.Stop(k.signals)
	close(k.signals)
	<-k.done
	k.cancel(nil)
	letGo()
}

func (k *keeper) pass(sig os.Signal) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ends := asksToEnd(sig)
	if ends && k.asked == nil {
		k.asked = sig
	}
	switch {
	case k.child != nil && !reachedChild(sig):
		_ = k.child.Signal(sig) // the child may just have ended
	case k.child != nil:
	case ends:
		k.cancel(&caught{sig})
	default:
		alone(sig)
	}
}

// stopped reports whether a signal asked to end. Then no further child is started.
func (k *keeper) stopped() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.asked != nil
}

// run starts a child, waits for its end and returns its exit code. The child has this process's terminal, files and
// process group.
func (k *keeper) run(path string, argv, env []string) (int, error) {
	// The system ties the parent-death signal to the thread that started the child.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p, err := k.start(path, argv, env)
	if err != nil {
		return 0, err
	}
	code, err := waitFor(p)
	k.mu.Lock()
	k.child = nil
	k.mu.Unlock()
	_ = p.Release()
	if err != nil {
		return 0, &failure{code: exitInternal, message: "the command could not be waited for: " + err.Error()}
	}
	return code, nil
}

// start starts the child and records it in one step, so that no signal falls in between.
func (k *keeper) start(path string, argv, env []string) (*os.Process, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.asked != nil {
		return nil, &caught{k.asked}
	}
	p, err := os.StartProcess(path, argv, &os.ProcAttr{
		Env: env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: childAttr(),
	})
	if _, there := os.Stat(path); errors.Is(err, fs.ErrNotExist) && there == nil {
		err = errNoInterpreter
	}
	if err != nil {
		return nil, cannotStart(argv[0], err)
	}
	k.child = p
	return p, nil
}
