package filestore_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"
)

func apart() *syscall.SysProcAttr { return nil }

// dead is the exit code of a process that kills itself, and of one that is killed.
const dead = 1234

func (c *child) killAll() {
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, uint32(c.cmd.Process.Pid))
	if err == nil {
		_ = windows.TerminateProcess(h, dead)
		_ = windows.CloseHandle(h)
	}
}

func killSelf() { _ = windows.TerminateProcess(windows.CurrentProcess(), dead) }

// killed reports whether a process was ended by TerminateProcess.
func killed(s *os.ProcessState) bool { return s.ExitCode() == dead }

var (
	ntdll          = windows.NewLazySystemDLL("ntdll.dll")
	suspendProcess = ntdll.NewProc("NtSuspendProcess")
	resumeProcess  = ntdll.NewProc("NtResumeProcess")
)

func (c *child) call(f *windows.LazyProc) {
	c.t.Helper()
	h, err := windows.OpenProcess(windows.PROCESS_SUSPEND_RESUME, false, uint32(c.cmd.Process.Pid))
	if err != nil {
		c.t.Fatal(err)
	}
	defer windows.CloseHandle(h) //nolint:errcheck // it was only used
	if status, _, _ := f.Call(uintptr(h)); status != 0 {
		c.t.Fatalf("%s: %#x", f.Name, status)
	}
}

// stop stops the process.
func (c *child) stop() {
	c.t.Helper()
	c.call(suspendProcess)
}

// goOn lets a process go on that was stopped.
func (c *child) goOn() {
	c.t.Helper()
	c.call(resumeProcess)
}

// dump ends a process.
func (c *child) dump() { c.killAll() }

// burnt is what this process has used of the processor.
func burnt() time.Duration {
	var begin, end, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(windows.CurrentProcess(), &begin, &end, &kernel, &user); err != nil {
		giveUp("%v", err)
	}
	ticks := func(f windows.Filetime) int64 { return int64(f.HighDateTime)<<32 | int64(f.LowDateTime) }
	return time.Duration(100 * (ticks(kernel) + ticks(user)))
}

// holdBell makes a bell, and holds it as a process would that is alive.
func holdBell(t *testing.T, path string) {
	t.Helper()
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		t.Fatal(err)
	}
	h, err := windows.CreateFile(name, windows.GENERIC_WRITE|windows.DELETE, 0, nil, windows.OPEN_ALWAYS, windows.FILE_FLAG_DELETE_ON_CLOSE, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = windows.CloseHandle(h) })
}
