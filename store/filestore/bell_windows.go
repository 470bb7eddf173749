package filestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"

	"github.com/sluicehq/sluice/store"
)

// bell lets other processes notify this one: tickets of its own were decided, or it has to wake at some time. It is
// an event, which names no ticket, so the process checks all of its own. A file beside it is open only in its
// process, and Windows removes it when the process dies. So a process that rings notices.
type bell struct {
	event windows.Handle
	quit  windows.Handle // another event, which ends listen
	file  windows.Handle
	done  chan struct{}
}

func bellPath(dir string, process uint64) string {
	return filepath.Join(dir, fmt.Sprintf("bell-%012x", process))
}

// eventName returns the event's name, which is the same in all sessions of the machine.
func eventName(process uint64) *uint16 {
	name, _ := windows.UTF16PtrFromString(fmt.Sprintf(`Global\sluice-bell-%012x`, process)) // it has no zeros in it
	return name
}

// hang creates the bell of a process. It calls heard from one goroutine when the bell rings: any ticket may have
// been decided.
func hang(dir string, process uint64, heard func(ids []store.ID, all bool)) (*bell, error) {
	path := bellPath(dir, process)
	b := &bell{done: make(chan struct{})}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, failed("make", path, err)
	}
	// The previous bell of this process may still exist.
	if b.event, err = windows.CreateEvent(nil, 0, 0, eventName(process)); err != nil && !errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return nil, failed("make", path, os.NewSyscallError("CreateEvent", err))
	}
	if b.quit, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
		_ = windows.CloseHandle(b.event)
		return nil, failed("make", path, os.NewSyscallError("CreateEvent", err))
	}
	const gone = windows.FILE_ATTRIBUTE_NORMAL | windows.FILE_FLAG_DELETE_ON_CLOSE
	if b.file, err = windows.CreateFile(name, windows.GENERIC_WRITE|windows.DELETE, 0, nil, windows.OPEN_ALWAYS, gone, 0); err != nil {
		_ = errors.Join(windows.CloseHandle(b.event), windows.CloseHandle(b.quit))
		return nil, failed("make", path, os.NewSyscallError("CreateFile", err))
	}
	go b.listen(heard)
	return b, nil
}

func (b *bell) listen(heard func([]store.ID, bool)) {
	defer close(b.done)
	for {
		which, err := windows.WaitForMultipleObjects([]windows.Handle{b.quit, b.event}, false, windows.INFINITE)
		if err != nil || which != windows.WAIT_OBJECT_0+1 {
			break
		}
		heard(nil, true)
	}
	_ = errors.Join(windows.CloseHandle(b.event), windows.CloseHandle(b.quit)) // they are no longer needed
}

// silence releases the bell, once. Its goroutine ends soon.
func (b *bell) silence() {
	_ = windows.CloseHandle(b.file) // which removes the file
	_ = windows.SetEvent(b.quit)
}

func (b *bell) take() error {
	b.silence()
	<-b.done
	return nil
}

// ring notifies a process if ids is not empty. It reports whether the process is alive.
func ring(dir string, process uint64, ids []store.ID) (alive bool) {
	if len(ids) > 0 {
		if event, err := windows.OpenEvent(windows.EVENT_MODIFY_STATE, false, eventName(process)); err == nil {
			err = windows.SetEvent(event)
			_ = windows.CloseHandle(event)
			if err == nil {
				return true
			}
		}
	}
	name, err := windows.UTF16PtrFromString(bellPath(dir, process))
	if err != nil {
		return true
	}
	file, err := windows.CreateFile(name, windows.GENERIC_READ, windows.FILE_SHARE_READ|windows.FILE_SHARE_WRITE|windows.FILE_SHARE_DELETE, nil, windows.OPEN_EXISTING, 0, 0)
	if err == nil { // the file is not in use: the machine stopped before it was removed
		_ = windows.CloseHandle(file)
		return false
	}
	return !errors.Is(err, windows.ERROR_FILE_NOT_FOUND) && !errors.Is(err, windows.ERROR_PATH_NOT_FOUND)
}
