//go:build linux || darwin || windows

package filestore

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/sluicehq/sluice/internal/oplog"
	"github.com/sluicehq/sluice/internal/statedir"
)

// journal is a copy of the state and the steps since. It is enough to undo a step that was cut off.
type journal struct {
	*mapped
	number uint64
	image  []byte
	log    []byte // consecutive entries, followed by zeros
}

// journalHead is the first page of a journal.
type journalHead struct {
	magic    [8]byte
	instance uint64
	number   uint64
	image    int64 // size of the image
	log      int64
	sum      uint32 // checksum of the image
	check    uint32 // checksum of all fields before it
}

var journalMagic = [8]byte{'S', 'L', 'U', 'I', 'C', 'E', 1, '\n'}

func (h *journalHead) own() uint32 {
	return crc32.Checksum(unsafe.Slice((*byte)(unsafe.Pointer(h)), unsafe.Offsetof(h.check)), castagnoli)
}

func journalPath(dir string, instance, number uint64) string {
	return filepath.Join(dir, fmt.Sprintf("journal-%016x-%06x", instance, number))
}

// leastLog is the minimum room for steps in a journal. The room grows with the state, so that the cost of copying
// the state per step stays constant.
const leastLog = 1 << 20

// writeJournal creates a new journal file that begins with a copy of the state.
func writeJournal(dir string, instance, number uint64, image []byte, room int64) (_ *journal, err error) {
	path := journalPath(dir, instance, number)
	f, err := statedir.OpenNoLink(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return nil, failed("make", path, err)
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(path)
		}
	}()
	log := roundUp(max(leastLog, int64(len(image))/2, 2*room))
	begin := page + roundUp(int64(len(image)))
	if err := allocate(f, 0, begin+log); err != nil {
		return nil, failed("make", path, err)
	}
	if _, err := f.WriteAt(image, page); err != nil {
		return nil, failed("write", path, err)
	}
	m, err := mapFile(f, begin+log)
	if err != nil {
		return nil, failed("map", path, err)
	}
	h := (*journalHead)(unsafe.Pointer(unsafe.SliceData(m.mem)))
	*h = journalHead{magic: journalMagic, instance: instance, number: number, image: int64(len(image)), log: log}
	h.sum = crc32.Checksum(m.mem[page:page+len(image)], castagnoli)
	h.check = h.own()
	return newJournal(m, h), nil
}

func newJournal(m *mapped, h *journalHead) *journal {
	begin := page + roundUp(h.image)
	return &journal{mapped: m, number: h.number, image: m.mem[page : page+h.image], log: m.mem[begin : begin+h.log]}
}

// openJournal maps the journal that the state refers to.
func openJournal(dir string, instance, number uint64) (_ *journal, err error) {
	path := journalPath(dir, instance, number)
	f, err := statedir.OpenNoLink(path, os.O_RDWR)
	if err != nil {
		if at, ok := errors.AsType[*fs.PathError](err); ok {
			err = at.Err
		}
		return nil, failed("open", path, fmt.Errorf("%w: %w", errDamaged, err))
	}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, failed("open", path, err)
	}
	if info.Size() < page {
		return nil, failed("open", path, fmt.Errorf("%w: %w", errDamaged, errShort))
	}
	m, err := mapFile(f, info.Size())
	if err != nil {
		return nil, failed("map", path, err)
	}
	h := (*journalHead)(unsafe.Pointer(unsafe.SliceData(m.mem)))
	switch {
	case h.magic != journalMagic || h.check != h.own() || h.instance != instance || h.number != number:
		err = errDamaged
	case page+roundUp(h.image)+h.log > info.Size():
		err = fmt.Errorf("%w: %w", errDamaged, errShort)
	}
	if err != nil {
		_ = m.close()
		return nil, failed("read", path, err)
	}
	return newJournal(m, h), nil
}

func (j *journal) head() *journalHead { return (*journalHead)(unsafe.Pointer(unsafe.SliceData(j.mem))) }

// intact reports whether the copy of the state matches its checksum.
func (j *journal) intact() bool {
	return crc32.Checksum(j.image, castagnoli) == j.head().sum
}

// replay calls apply for every step up to end. With partly, it stops without an error at the first step that it
// cannot read: the machine stopped before that step was on disk.
func (j *journal) replay(end int64, partly bool, apply func(*oplog.Entry) error) (int64, error) {
	var e oplog.Entry
	at := int64(0)
	for at < end {
		n, err := e.Next(j.log[at:end])
		if err != nil {
			if partly {
				return at, nil
			}
			return at, err
		}
		if err := apply(&e); err != nil {
			return at, err
		}
		at += int64(n)
	}
	return at, nil
}

// removeJournals removes the journals of an instance except number but.
func removeJournals(dir string, instance, but uint64) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	keep := filepath.Base(journalPath(dir, instance, but))
	for _, e := range list {
		if strings.HasPrefix(e.Name(), fmt.Sprintf("journal-%016x-", instance)) && e.Name() != keep {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				continue // it is in use; the next call tries again
			}
		}
	}
}

func roundUp(n int64) int64 { return (n + page - 1) / page * page }
