package main

import (
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// relayed lists signals that are caught so that this process does not end before its child. The console sends them to
// both: Ctrl-C and Ctrl-Break arrive as os.Interrupt; closing the console, logging off and shutting down arrive as
// SIGTERM, and end both some seconds later.
var relayed = []os.Signal{os.Interrupt, syscall.SIGTERM}

// shellHint shows how to run a command of the shell itself.
const shellHint = "cmd /c ..."

func asksToEnd(os.Signal) bool { return true }

func reachedChild(os.Signal) bool { return true }

func alone(os.Signal) {}

func waitFor(p *os.Process) (int, error) {
	state, err := p.Wait()
	if err != nil {
		return 0, err
	}
	return state.ExitCode(), nil
}

// family is a job object that holds this process and every process that it starts. Windows ends them all when the last
// handle to the job is closed, which is this process's own.
var family = sync.OnceValue(func() windows.Handle {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return 0
	}
	if windows.AssignProcessToJobObject(h, windows.CurrentProcess()) != nil {
		_ = windows.CloseHandle(h)
		return 0
	}
	return h
})

// childAttr ends the child if this process is killed. Otherwise the child would go on without a slot, and its requests
// would not be held.
func childAttr() *syscall.SysProcAttr {
	limitJob(windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE | windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK)
	return nil
}

// letGo lets processes that a child has left behind live on when this process ends.
func letGo() { limitJob(windows.JOB_OBJECT_LIMIT_BREAKAWAY_OK) }

// limitJob sets the limits of the job, as far as possible: without a job, children outlive a killed process.
func limitJob(flags uint32) {
	if family() == 0 {
		return
	}
	var info windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	info.BasicLimitInformation.LimitFlags = flags
	_, _ = windows.SetInformationJobObject(family(), windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)))
}
