package filestore

import (
	"errors"
	"math/bits"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/windows"

	"github.com/sluicehq/sluice/internal/statedir"
)

// cheapClock is true: Windows returns the time since boot without a system call, and more precisely than Go's clock.
const cheapClock = true

var (
	queryCounter   = kernel32.NewProc("QueryPerformanceCounter")
	queryFrequency = kernel32.NewProc("QueryPerformanceFrequency")
	frequency      = func() uint64 {
		var perSecond uint64
		_, _, _ = queryFrequency.Call(uintptr(unsafe.Pointer(&perSecond))) // it never fails
		return max(perSecond, 1)
	}()
)

// bootMicros returns the time since boot, including sleep, in microseconds.
func bootMicros() int64 {
	var ticks uint64
	_, _, _ = queryCounter.Call(uintptr(unsafe.Pointer(&ticks))) // it never fails
	high, low := bits.Mul64(ticks, 1_000_000)
	micros, _ := bits.Div64(high%frequency, low, frequency)
	return int64(micros)
}

// bootNumber is the address at which every process can read the number of boots (BootId of KUSER_SHARED_DATA).
const bootNumber = 0x7ffe0000 + 0x2c4

func bootID() (id [16]byte, err error) {
	id[0] = 'W'
	err = windows.ReadProcessMemory(windows.CurrentProcess(), bootNumber, &id[4], 4, nil)
	return id, os.NewSyscallError("ReadProcessMemory", err)
}

// descriptor is the system's handle of an open file.
type descriptor = windows.Handle

func descriptorOf(f *os.File) descriptor { return windows.Handle(f.Fd()) }

// errTaken means that another open file has the lock.
const errTaken = windows.ERROR_LOCK_VIOLATION

// transient lists errors about resources that have run out, or that another program, such as a virus scanner, holds
// for a moment.
var transient = []error{
	windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY, windows.ERROR_NO_SYSTEM_RESOURCES,
	windows.ERROR_COMMITMENT_LIMIT, windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION,
}

func duplicate(h descriptor) (copied descriptor, err error) {
	self := windows.CurrentProcess()
	err = windows.DuplicateHandle(self, h, self, &copied, 0, false, windows.DUPLICATE_SAME_ACCESS)
	return copied, os.NewSyscallError("DuplicateHandle", err)
}

func closeDescriptor(h descriptor) { _ = windows.CloseHandle(h) }

// far is the byte that is locked. It lies behind the end of every file, because a locked byte cannot be read.
func far() *windows.Overlapped { return &windows.Overlapped{OffsetHigh: 1 << 30} }

func takeLock(h descriptor, how uint32) error {
	err := windows.LockFileEx(h, how, 0, 1, 0, far())
	if errors.Is(err, windows.ERROR_IO_PENDING) {
		return errTaken
	}
	return err
}

// tryLock takes the exclusive lock of an open file if it is free.
func tryLock(h descriptor) error {
	return takeLock(h, windows.LOCKFILE_FAIL_IMMEDIATELY|windows.LOCKFILE_EXCLUSIVE_LOCK)
}

// waitLock waits for the lock of an open file.
func waitLock(h descriptor) error { return takeLock(h, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// shareLock takes the shared lock of an open file, and reports whether no other process has it. It releases its own
// lock first: otherwise Windows would make the holder wait for itself.
func shareLock(h descriptor) (alone bool, err error) {
	unlock(h)
	if alone = tryLock(h) == nil; alone {
		unlock(h)
	}
	return alone, takeLock(h, windows.LOCKFILE_FAIL_IMMEDIATELY)
}

func unlock(h descriptor) { _ = windows.UnlockFileEx(h, 0, 1, 0, far()) }

// readStart reads the beginning of a file. It opens the file again: while a thread waits for the lock, Windows
// blocks other uses of that handle.
func readStart(f *os.File, buf []byte) (int, error) {
	again, err := statedir.OpenNoLink(f.Name(), os.O_RDONLY)
	if err != nil {
		return 0, err
	}
	defer again.Close() //nolint:errcheck // it was only read
	return again.ReadAt(buf, 0)
}

// movePool moves the files of a pool one by one, the state first, because Windows does not move a directory with
// open files. The members file stays: processes count each other by it.
func movePool(dir, aside string) error {
	if err := os.Mkdir(aside, 0o700); err != nil {
		return err
	}
	if err := os.Rename(filepath.Join(dir, "state"), filepath.Join(aside, "state")); err != nil {
		return errors.Join(err, os.Remove(aside))
	}
	list, err := os.ReadDir(dir)
	for _, e := range list {
		if strings.HasPrefix(e.Name(), "journal-") {
			err = errors.Join(err, os.Rename(filepath.Join(dir, e.Name()), filepath.Join(aside, e.Name())))
		}
	}
	return err
}

// onNetwork reports whether a path is on a network file system.
func onNetwork(path string) (bool, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return false, err
	}
	h, err := windows.CreateFile(name, windows.FILE_READ_ATTRIBUTES, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil,
		windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err != nil {
		return false, os.NewSyscallError("CreateFile", err)
	}
	defer windows.CloseHandle(h) //nolint:errcheck // it was only looked at
	var about [256]byte          // FILE_REMOTE_PROTOCOL_INFO: only files on a network have it
	return windows.GetFileInformationByHandleEx(h, windows.FileRemoteProtocolInfo, &about[0], uint32(len(about))) == nil, nil
}

// checkOwner rejects files of other users, and files that other users can change.
func checkOwner(f *os.File, path string) error {
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errForeign
	}
	if err == nil {
		err = statedir.CheckFile(f)
	}
	return failed("open", path, err)
}
