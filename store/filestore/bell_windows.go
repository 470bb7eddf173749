package filestore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"

	"github.com/sluicehq/sluice/store"
)

// bell is how other processes tell this one that tickets of its were decided, or that it has to see to the time. It is an event
// that they set, which does not say of which ticket: whoever hears it looks at all of its own. Beside it there is a file that
// only its process can open, and that Windows removes when the process dies: so whoever rings notices.
type bell struct {
	event windows.Handle
	quit  windows.Handle // another event, which ends listening
	file  windows.Handle
	done  chan struct{}
}

func bellPath(dir string, process uint64) string {
	return filepath.Join(dir, fmt.Sprintf("bell-%012x", process))
}

// eventName is the same in all sessions of the machine.
func eventName(process uint64) *uint16 {
	name, _ := windows.UTF16PtrFromString(fmt.Sprintf(`Global\sluice-bell-%012x`, process)) // it has no zeros in it
	return name
}

// hang makes the bell of a process. heard is called, from one goroutine, when it rings: any ticket may have been decided.
func hang(dir string, process uint64, heard func(ids []store.ID, all bool)) (*bell, error) {
	path := bellPath(dir, process)
	b := &bell{done: make(chan struct{})}
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, failed("make", path, err)
	}
	// The bell that this process had before may not be gone yet.
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

// silence lets go of the bell, once. Its goroutine ends soon.
func (b *bell) silence() {
	_ = windows.CloseHandle(b.file) // which removes it
	_ = windows.SetEvent(b.quit)
}

func (b *bell) take() error {
	b.silence()
	<-b.done
	return nil
}

// ring tells a process to look after its tickets, if there are any. It reports whether the process is there to hear it.
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
	if err == nil { // its process could have it alone: the machine was stopped before it was removed
		_ = windows.CloseHandle(file)
		return false
	}
	return !errors.Is(err, windows.ERROR_FILE_NOT_FOUND) && !errors.Is(err, windows.ERROR_PATH_NOT_FOUND)
}
