package deadletter

import (
	"crypto/cipher"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sluicehq/sluice/internal/statedir"
)

// Errors of a list.
var (
	ErrUnknown   = errors.New("unknown dead letter")
	ErrAmbiguous = errors.New("several dead letters begin like that")
	ErrClaimed   = errors.New("the dead letter is being retried")
	ErrDamaged   = errors.New("the dead letter cannot be read")
	ErrTooLarge  = errors.New("too large to be kept as a dead letter")
)

// ends are the file name endings of entries, by kind.
var ends = map[Kind]string{Command: ".json", HTTP: ".request"}

const (
	claimEnd  = ".claim"
	tempStart = ".tmp-"
	// tempOld is the age from which on a temporary file counts as left behind.
	tempOld = time.Hour
)

// List is a list of dead letters.
type List struct {
	dir  string
	seal cipher.AEAD // nil: entries are not encrypted
}

// Open opens the list in a directory. The first entry creates the directory. Open refuses a symbolic link.
func Open(dir string) (*List, error) {
	if err := statedir.NoLink(dir); err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	return &List{dir: dir}, nil
}

// Dir returns the directory of the list.
func (l *List) Dir() string { return l.dir }

// Add adds an entry to the list under a new id, and sets its time if it has none. If the list is full, Add drops the
// oldest entries and returns their ids.
func (l *List) Add(e Entry) (id string, dropped []string, err error) {
	if err := l.prepare(); err != nil {
		return "", nil, err
	}
	now := time.Now().UTC()
	if e.Time.IsZero() {
		e.Time = now
	}
	for {
		e.ID, e.Damaged = newID(now), ""
		data, err := l.encode(&e)
		if err != nil {
			return "", nil, err
		}
		at := stored{id: e.ID, kind: e.Kind()}
		err = l.write(at, data, true)
		if errors.Is(err, fs.ErrExist) {
			continue // another entry of the same millisecond; try another random id
		}
		if err != nil {
			return "", nil, err
		}
		return e.ID, l.trim(at), nil
	}
}

// prepare creates the directory. It makes an existing directory private if others can read it, and refuses one that
// others can write to.
func (l *List) prepare() error {
	if err := statedir.MakeInside(l.dir); err != nil {
		return err
	}
	info, err := os.Stat(l.dir)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(l.dir, 0o700)
	}
	return err
}

// write creates the file atomically, even if the machine crashes. If the file has to be new, the exclusive temporary
// file ensures that no two processes use the same id.
func (l *List) write(at stored, data []byte, isNew bool) error {
	temp := filepath.Join(l.dir, tempStart+at.id)
	flags := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if !isNew {
		flags = os.O_WRONLY | os.O_CREATE | os.O_TRUNC // the process that began it is gone: we hold the claim
	}
	f, err := statedir.Open(temp, flags)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if _, there := os.Lstat(l.file(at)); err == nil && isNew && there == nil {
		err = fs.ErrExist
	}
	if err == nil {
		err = statedir.Rename(temp, l.file(at))
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	syncDir(l.dir)
	return nil
}

// syncDir makes renames and removals durable. On systems without directory sync they become durable a little later.
func syncDir(dir string) {
	if d, err := os.Open(dir); err == nil {
		_ = d.Sync()
		_ = d.Close()
	}
}

func (l *List) file(at stored) string { return filepath.Join(l.dir, at.id+ends[at.kind]) }

// stored identifies the file of an entry.
type stored struct {
	id   string
	kind Kind
	size int64
}

// stored lists the files of entries, oldest first.
func (l *List) stored() ([]stored, error) {
	files, err := os.ReadDir(l.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []stored
	for _, f := range files {
		for kind, end := range ends {
			id, ours := strings.CutSuffix(f.Name(), end)
			if !ours || !isID(id) || !f.Type().IsRegular() {
				continue
			}
			if info, err := f.Info(); err == nil { // otherwise it was just removed
				list = append(list, stored{id, kind, info.Size()})
			}
		}
	}
	slices.SortFunc(list, func(a, b stored) int { return strings.Compare(a.id, b.id) })
	return list, nil
}

// Entries returns all entries, oldest first. Entries that cannot be read have Damaged set.
func (l *List) Entries() ([]Entry, error) {
	files, err := l.stored()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, 0, len(files))
	for _, f := range files {
		e, err := l.read(f)
		if errors.Is(err, ErrUnknown) {
			continue // removed meanwhile
		}
		if err != nil {
			e = damaged(f.id, err.Error())
		}
		entries = append(entries, e)
	}
	return entries, nil
}

// Get returns the entry with the given id, or the only entry whose id begins with it.
func (l *List) Get(id string) (Entry, error) {
	at, err := l.find(id)
	if err != nil {
		return Entry{}, err
	}
	return l.read(at)
}

// find finds an entry by its id, or by a unique start of it.
func (l *List) find(id string) (stored, error) {
	asked := id
	id = strings.ToLower(id)
	if !isPrefix(id) {
		return stored{}, fmt.Errorf("%w: %.80q", ErrUnknown, asked)
	}
	files, err := l.stored()
	if err != nil {
		return stored{}, err
	}
	var found []stored
	for _, f := range files {
		if strings.HasPrefix(f.id, id) {
			found = append(found, f)
		}
	}
	switch len(found) {
	case 0:
		return stored{}, fmt.Errorf("%w: %.80q", ErrUnknown, asked)
	case 1:
		return found[0], nil
	default:
		return stored{}, fmt.Errorf("%w: %.80q stands for %d of them", ErrAmbiguous, asked, len(found))
	}
}

func (l *List) read(at stored) (Entry, error) {
	f, err := statedir.Open(l.file(at), os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return Entry{}, fmt.Errorf("%w: %q", ErrUnknown, at.id)
	}
	if err != nil {
		return damaged(at.id, err.Error()), nil
	}
	defer func() { _ = f.Close() }()
	_, _, most := at.kind.bounds()
	data, err := io.ReadAll(io.LimitReader(f, most+2))
	switch {
	case err != nil:
		return damaged(at.id, err.Error()), nil
	case int64(len(data)) > most+1:
		return damaged(at.id, "it is larger than any entry"), nil
	}
	return l.decode(at, data), nil
}
