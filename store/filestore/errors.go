package filestore

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sluicehq/sluice/internal/flat"
	"github.com/sluicehq/sluice/internal/statedir"
	"github.com/sluicehq/sluice/store"
)

// Error says which operation failed on which file, and has a hint about what to do. It matches
// [store.ErrUnavailable].
type Error struct {
	Op   string // such as "open"
	Path string
	Err  error
	hint string
}

func (e *Error) Error() string { return fmt.Sprintf("%s %s: %v", e.Op, e.Path, e.Err) }

// Unwrap makes an Error match both store.ErrUnavailable and its cause.
func (e *Error) Unwrap() []error { return []error{store.ErrUnavailable, e.Err} }

// Hint says what to do about the error.
func (e *Error) Hint() string { return e.hint }

var (
	errForeign  = errors.New("this is not a state file of Sluice")
	errNewer    = errors.New("it was written by a newer version of Sluice")
	errOther    = errors.New("it was written by another version of Sluice")
	errDamaged  = errors.New("the state is damaged")
	errOwner    = statedir.ErrOwner
	errWritable = statedir.ErrWritable
	errNetwork  = errors.New("this is a network file system, where file locks cannot be relied on")
	errBoot     = errors.New("the machine's boot id cannot be read")
	errBusy     = errors.New("another process holds the lock and does not give it back")
)

// failed wraps an error of the system or the state as an Error. An error that already states its operation and path keeps
// them. It returns an existing Error unchanged.
func failed(op, path string, err error) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	if at, ok := errors.AsType[*fs.PathError](err); ok && err.Error() == at.Error() { // inside another error, it is not all that failed
		op, path, err = at.Op, at.Path, at.Err
	}
	return &Error{Op: op, Path: path, Err: err, hint: hintFor(err, path)}
}

// repairable reports whether an error is about the content of a pool's file, or about something else at its path.
func repairable(err error) bool {
	for _, kind := range []error{errDamaged, errForeign, errNewer, errOther, statedir.ErrLink, syscall.ELOOP, syscall.EISDIR, syscall.ENOTDIR} {
		if errors.Is(err, kind) {
			return true
		}
	}
	return false
}

// ofPool adds the repair command to an error about a pool's file.
func ofPool(name string, err error) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || !repairable(e.Err) {
		return err
	}
	switch repair := store.RepairCommand(name); {
	case errors.Is(e.Err, errNewer):
		e.hint = "use the newer version of Sluice, or another directory with --store file:PATH; if that version is gone: " + repair
	case errors.Is(e.Err, errOther):
		e.hint = "use the same version everywhere, or another directory with --store file:PATH; if the other version is gone: " + repair
	default:
		e.hint = repair
	}
	return err
}

func hintFor(err error, path string) string {
	switch {
	case errors.Is(err, errOwner), errors.Is(err, fs.ErrPermission):
		return "use a directory that you own: --store file:PATH; inside a shared volume, name a new directory, which Sluice creates"
	case errors.Is(err, errWritable):
		return "take their right away with " + takeAway(path) + ", or name a directory inside it, which Sluice makes: --store file:" + filepath.Join(path, "sluice")
	case errors.Is(err, statedir.ErrLink):
		return "remove the link " + path + ", or choose another directory with --store file:PATH; the directory itself may be a link"
	case errors.Is(err, errNetwork):
		return "choose a local directory with --store file:PATH; to share a quota between machines, use --store redis://HOST"
	case errors.Is(err, errBusy):
		return "is that process stopped? " + letGo + ": the lock dies with it"
	case errors.Is(err, errBoot):
		return "is /proc mounted, and /proc/sys in it? A systemd unit hides it with ProcSubset=pid: remove that line"
	case noRoom(err):
		return "make room on that disk: nothing was granted, and nothing that was charged is lost"
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE):
		return "raise the limit on open files (ulimit -n 1024): each resource takes 4"
	case errors.Is(err, syscall.EROFS):
		return "choose a directory that can be written with --store file:PATH"
	case errors.Is(err, fs.ErrNotExist):
		return "use another directory: --store file:PATH; if this one was removed while in use, start the program again"
	default:
		return "choose another directory with --store file:PATH"
	}
}

// noRoom reports whether the disk is full, or the user's disk quota is used up.
func noRoom(err error) bool {
	is := func(target error) bool { return errors.Is(err, target) }
	return is(flat.ErrFull) || is(syscall.ENOSPC) || is(syscall.EDQUOT) || is(syscall.EFBIG) || slices.ContainsFunc(full, is)
}
