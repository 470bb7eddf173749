package statedir

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// OpenNoLink opens a file as [os.OpenFile] does. It refuses a symbolic link. Other processes can remove and rename
// the file while it is open, as on other systems.
func OpenNoLink(name string, flags int) (*os.File, error) {
	fail := func(err error) (*os.File, error) { return nil, &fs.PathError{Op: "open", Path: name, Err: err} }
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return fail(err)
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	const attributes = windows.FILE_ATTRIBUTE_NORMAL | windows.FILE_FLAG_OPEN_REPARSE_POINT
	how := uint32(windows.OPEN_EXISTING)
	switch {
	case flags&(os.O_CREATE|os.O_EXCL) == os.O_CREATE|os.O_EXCL:
		how = windows.CREATE_NEW
	case flags&os.O_CREATE != 0:
		how = windows.OPEN_ALWAYS
	}
	h, err := windows.CreateFile(path, access(flags), share, nil, how, attributes, 0)
	if err != nil {
		if info, there := os.Lstat(name); errors.Is(err, windows.ERROR_ACCESS_DENIED) && there == nil && info.IsDir() {
			err = syscall.EISDIR
		}
		return fail(err)
	}
	var info windows.ByHandleFileInformation
	if err = windows.GetFileInformationByHandle(h, &info); err == nil && info.FileAttributes&windows.FILE_ATTRIBUTE_REPARSE_POINT != 0 {
		err = ErrLink
	}
	if err != nil {
		_ = windows.CloseHandle(h)
		return fail(err)
	}
	f := os.NewFile(uintptr(h), name)
	if flags&os.O_TRUNC != 0 {
		if err := f.Truncate(0); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

// Gone reports whether an open file is no longer the one at its path, because it was removed, moved or replaced. A
// lock on such a file excludes only processes that opened it before.
func Gone(f *os.File, name string) bool {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return true
	}
	const share = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	const attributes = windows.FILE_FLAG_OPEN_REPARSE_POINT | windows.FILE_FLAG_BACKUP_SEMANTICS
	h, err := windows.CreateFile(path, windows.FILE_READ_ATTRIBUTES, share, nil, windows.OPEN_EXISTING, attributes, 0)
	if err != nil {
		return true
	}
	defer windows.CloseHandle(h) //nolint:errcheck // it was only looked at
	var mine, there windows.ByHandleFileInformation
	if windows.GetFileInformationByHandle(windows.Handle(f.Fd()), &mine) != nil || windows.GetFileInformationByHandle(h, &there) != nil {
		return true
	}
	return mine.VolumeSerialNumber != there.VolumeSerialNumber || mine.FileIndexHigh != there.FileIndexHigh || mine.FileIndexLow != there.FileIndexLow
}

// Truncate shortens an open file by its path: a handle opened to append may not write elsewhere or truncate.
func Truncate(f *os.File, size int64) error { return os.Truncate(f.Name(), size) }

// Rename renames a file within its directory and replaces an existing one, which may be open if the file system is
// NTFS.
func Rename(from, to string) error {
	dir, err := os.OpenRoot(filepath.Dir(from)) // os.Rename fails if the other file is open
	if err != nil {
		return err
	}
	defer dir.Close() //nolint:errcheck // it was only used
	return dir.Rename(filepath.Base(from), filepath.Base(to))
}

// Replace is [Rename] for files whose names may be missing for a moment. It also replaces an open file on file
// systems other than NTFS.
func Replace(from, to string) error {
	err := Rename(from, to)
	if err != nil && !errors.Is(err, fs.ErrNotExist) && Discard(to) == nil {
		err = Rename(from, to)
	}
	return err
}

// Discard removes a file that may be open. Windows keeps an open file until it is closed, so Discard renames it
// first to free the name.
func Discard(name string) error {
	litter := fmt.Sprintf("%s.new-%016x", name, rand.Uint64())
	if err := os.Rename(name, litter); err != nil {
		return err
	}
	return os.Remove(litter)
}

// access returns the access rights for a handle opened with flags. A handle that appends must not be able to write
// elsewhere.
func access(flags int) uint32 {
	const appends = windows.FILE_APPEND_DATA | windows.FILE_WRITE_ATTRIBUTES | windows.FILE_WRITE_EA | windows.STANDARD_RIGHTS_WRITE | windows.SYNCHRONIZE
	var rights uint32
	if flags&(os.O_WRONLY|os.O_RDWR) != os.O_WRONLY {
		rights |= windows.GENERIC_READ
	}
	switch {
	case flags&os.O_APPEND != 0 && flags&os.O_TRUNC == 0:
		rights |= appends
	case flags&(os.O_WRONLY|os.O_RDWR|os.O_CREATE) != 0:
		rights |= windows.GENERIC_WRITE
	}
	return rights
}

// makeAll creates a directory that only its user, administrators and the system can use, whatever its parent
// directory grants to others.
func makeAll(dir string) error {
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	user, err := currentUser()
	if err != nil {
		return err
	}
	sd, err := windows.SecurityDescriptorFromString("D:P(A;OICI;FA;;;SY)(A;OICI;FA;;;BA)(A;OICI;FA;;;" + user.String() + ")")
	if err != nil {
		return err
	}
	path, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	err = windows.CreateDirectory(path, &windows.SecurityAttributes{Length: uint32(unsafe.Sizeof(windows.SecurityAttributes{})), SecurityDescriptor: sd})
	if errors.Is(err, windows.ERROR_ALREADY_EXISTS) {
		return os.MkdirAll(dir, 0o700) // returns an error if it is not a directory
	}
	if err != nil {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: err}
	}
	return nil
}

// Check refuses a directory in which other users could create or replace files. Administrators can do so everywhere.
func Check(dir string) error {
	sd, err := windows.GetNamedSecurityInfo(dir, windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err == nil {
		err = safe(sd)
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	return nil
}

// CheckFile refuses an open file that belongs to another user, or that other users could change.
func CheckFile(f *os.File) error {
	sd, err := windows.GetSecurityInfo(windows.Handle(f.Fd()), windows.SE_FILE_OBJECT, windows.OWNER_SECURITY_INFORMATION|windows.DACL_SECURITY_INFORMATION)
	if err != nil {
		return err
	}
	return safe(sd)
}

const deleteChild = 0x40 // FILE_DELETE_CHILD

// changes are the rights that let a user change a directory or a file.
const changes = windows.FILE_WRITE_DATA | windows.FILE_APPEND_DATA | deleteChild | windows.DELETE | windows.WRITE_DAC | windows.WRITE_OWNER |
	windows.GENERIC_WRITE | windows.GENERIC_ALL

// safe returns an error if another user owns the object or can change it.
func safe(sd *windows.SECURITY_DESCRIPTOR) error {
	user, err := currentUser()
	if err != nil {
		return err
	}
	owner, _, err := sd.Owner()
	if err != nil {
		return err
	}
	trusted := func(sid *windows.SID) bool {
		return sid.Equals(user) || sid.IsWellKnown(windows.WinBuiltinAdministratorsSid) || sid.IsWellKnown(windows.WinLocalSystemSid)
	}
	if !trusted(owner) {
		return ErrOwner
	}
	list, _, err := sd.DACL()
	if errors.Is(err, windows.ERROR_OBJECT_NOT_FOUND) || err == nil && list == nil {
		return ErrWritable // without a list, every user has all rights
	}
	if err != nil {
		return err
	}
	for i := range list.AceCount {
		var ace *windows.ACCESS_ALLOWED_ACE
		if err := windows.GetAce(list, uint32(i), &ace); err != nil {
			return err
		}
		if ace.Header.AceType != windows.ACCESS_ALLOWED_ACE_TYPE || ace.Header.AceFlags&windows.INHERIT_ONLY_ACE != 0 || ace.Mask&changes == 0 {
			continue
		}
		sid := (*windows.SID)(unsafe.Pointer(&ace.SidStart))
		if !trusted(sid) && !sid.IsWellKnown(windows.WinCreatorOwnerSid) && !sid.IsWellKnown(windows.WinCreatorOwnerRightsSid) {
			return ErrWritable
		}
	}
	return nil
}

func currentUser() (*windows.SID, error) {
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, err
	}
	return user.User.Sid, nil
}
